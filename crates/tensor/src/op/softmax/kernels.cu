// Softmax over rows.

// The softmax of each row; one warp for each row.
extern "C" __global__ void softmax_rows(const float* x, float* y, int rows, int cols) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    const float* from = x + (u64)row * cols;
    float* to = y + (u64)row * cols;
    float top = -1e30f, total = 0.0f;
    for (int col = lane; col < cols; col += 32) top = fmaxf(top, from[col]);
    top = warp_max(top);
    for (int col = lane; col < cols; col += 32) {
        float value = expf(from[col] - top);
        to[col] = value;
        total += value;
    }
    float share = 1.0f / warp_sum(total);
    for (int col = lane; col < cols; col += 32) to[col] *= share;
}

// Turns the gradient of the output into that of the input, in place.
extern "C" __global__ void softmax_rows_backward(float* grads, const float* y, int rows, int cols) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float* grad = grads + (u64)row * cols;
    const float* out = y + (u64)row * cols;
    float along = 0.0f;
    for (int col = lane; col < cols; col += 32) along += grad[col] * out[col];
    along = warp_sum(along);
    for (int col = lane; col < cols; col += 32) grad[col] = out[col] * (grad[col] - along);
}
