// LayerNorm over rows.

// LayerNorm, and each row's mean and 1/σ; one warp for each row.
extern "C" __global__ void layer_norm(const float* x, const float* scale, const float* shift, float* y, float2* stats,
                                     int rows, int cols) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    const float* from = x + (u64)row * cols;
    float* to = y + (u64)row * cols;
    float sum = 0.0f, square = 0.0f;
    for (int col = lane; col < cols; col += 32) sum += from[col];
    float mean = warp_sum(sum) / cols;
    for (int col = lane; col < cols; col += 32) {
        float off = from[col] - mean;
        square += off * off;
    }
    float inv_std = rsqrtf(warp_sum(square) / cols + 1e-5f);
    for (int col = lane; col < cols; col += 32) to[col] = (from[col] - mean) * inv_std * scale[col] + shift[col];
    if (lane == 0) stats[row] = make_float2(mean, inv_std);
}

extern "C" __global__ void layer_norm_backward(const float* dy, const float* x, const float2* stats, const float* scale,
                                              float* dx, int add, int rows, int cols) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float2 stat = stats[row];
    u64 first = (u64)row * cols;
    float sum = 0.0f, along = 0.0f;
    for (int col = lane; col < cols; col += 32) {
        float grad = dy[first + col] * scale[col];
        sum += grad;
        along += grad * (x[first + col] - stat.x) * stat.y;
    }
    sum = warp_sum(sum) / cols;
    along = warp_sum(along) / cols;
    for (int col = lane; col < cols; col += 32) {
        float grad = dy[first + col] * scale[col], normal = (x[first + col] - stat.x) * stat.y;
        put_value(dx, first + col, (grad - sum - normal * along) * stat.y, add);
    }
}

// Partial sums, over strips of rows, of the gradients of scale and shift.
extern "C" __global__ void layer_norm_param_grads(const float* dy, const float* x, const float2* stats, float* partials, int rows,
                                     int cols, int strip) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int col = blockIdx.x * 32 + threadIdx.x, end = min(rows, (int)(blockIdx.y + 1) * strip);
    float d_scale = 0.0f, d_shift = 0.0f;
    if (col < cols)
        for (int row = blockIdx.y * strip + threadIdx.y; row < end; row += 8) {
            u64 i = (u64)row * cols + col;
            float2 stat = stats[row];
            float grad = dy[i];
            d_scale += grad * (x[i] - stat.x) * stat.y;
            d_shift += grad;
        }
    float* to = partials + (u64)blockIdx.y * 2 * cols;
    strip_sum(d_scale, to, col, cols);
    strip_sum(d_shift, to + cols, col, cols);
}
