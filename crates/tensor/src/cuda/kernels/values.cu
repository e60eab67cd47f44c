// Operations by themselves, between products: everything in float, whatever products are made of. `add` says that the
// place holds a sum already, to which is added.

__device__ __forceinline__ void put_value(float* to, u64 i, float x, int add) { to[i] = add ? to[i] + x : x; }

__device__ __forceinline__ float warp_max(float x) {
    for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, step));
    return x;
}

extern "C" __global__ void add_two(const float* a, const float* b, float* to, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) to[i] = a[i] + b[i];
}

extern "C" __global__ void multiply_two(const float* a, const float* b, float* to, int add, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) put_value(to, i, a[i] * b[i], add);
}

// y = f(x), slopes beside it if asked for.
extern "C" __global__ void activate(const float* x, float* y, float* slopes, int kind, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) {
        float2 value = activation(kind, x[i]);
        y[i] = value.x;
        if (slopes) slopes[i] = value.y;
    }
}

// y = drop(x); both may be the same place.
extern "C" __global__ void drop(const float* x, float* y, Mask mask, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) y[i] = x[i] * mask_at(mask, i);
}

// The `count` columns from `first` on of rows of `width`; n values in all.
extern "C" __global__ void take_columns(const float* x, float* to, int width, int first, int count, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) to[i] = x[row_of(i, count) * width + first + column_of(i, count)];
}

// Lists of values in `places` places each, `per_row` places in a row, one warp a row: a place without a value holds the
// filler. Rows wider than their places have behind them whether each place holds a value.
extern "C" __global__ void slots(const float* values, const u32* starts, float* to, int places, int per_row, int width,
                                 float filler, int rows) {
    AFTER_OTHERS;
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    to += (u64)row * width;
    starts += (u64)row * (per_row / places);
    for (int at = threadIdx.x; at < per_row; at += 32) {
        int list = at / places;
        u32 value = starts[list] + at % places;
        bool is_there = value < starts[list + 1];
        to[at] = is_there ? values[value] : filler;
        if (width > per_row) to[per_row + at] = is_there ? 1.0f : 0.0f;
    }
}

// And back, to the values.
extern "C" __global__ void slots_back(const float* grad, const u32* starts, float* to, int places, int per_row,
                                      int width, int add, int rows) {
    AFTER_OTHERS;
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    grad += (u64)row * width;
    starts += (u64)row * (per_row / places);
    for (int at = threadIdx.x; at < per_row; at += 32) {
        int list = at / places;
        u32 value = starts[list] + at % places;
        if (value < starts[list + 1]) put_value(to, value, grad[at], add);
    }
}

// And back: all n values of rows of `width`, 0 beside the columns.
extern "C" __global__ void put_columns(const float* grad, float* to, int width, int first, int count, int add, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) {
        int col = column_of(i, width) - first;
        float x = col >= 0 && col < count ? grad[row_of(i, width) * count + col] : 0.0f;
        put_value(to, i, x, add);
    }
}

// Matrices [rows, cols], each transposed, through tiles of 32 · 32; a block a matrix and some of its tiles.
extern "C" __global__ void swap_axes(const float* from, float* to, int rows, int cols, int add) {
    AFTER_OTHERS;
    __shared__ float tile[32][33];
    int across = (cols + 31) / 32, n_tiles = (rows + 31) / 32 * across;
    u64 first = (u64)blockIdx.x * rows * cols;
    for (int at = blockIdx.y; at < n_tiles; at += gridDim.y) {
        int row0 = at / across * 32, col0 = at % across * 32;
        __syncthreads();
        for (int r = threadIdx.y; r < 32; r += 8) {
            int row = row0 + r, col = col0 + threadIdx.x;
            if (row < rows && col < cols) tile[r][threadIdx.x] = from[first + (u64)row * cols + col];
        }
        __syncthreads();
        for (int c = threadIdx.y; c < 32; c += 8) {
            int row = row0 + threadIdx.x, col = col0 + c;
            if (row < rows && col < cols) put_value(to, first + (u64)col * rows + row, tile[threadIdx.x][c], add);
        }
    }
}

// The sum of each sequence's rows, in order, each times its weight if there are some; their mean where asked for.
extern "C" __global__ void segment_sum(const float* x, const u32* starts, const float* weights, int mean, float* to,
                                       int cols, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) {
        u64 segment = row_of(i, cols);
        int col = column_of(i, cols);
        u32 begin = starts[segment], end = starts[segment + 1];
        float sum = 0.0f;
        for (u32 row = begin; row < end; row++) {
            float value = x[(u64)row * cols + col];
            sum += weights ? value * weights[row] : value;
        }
        to[i] = mean && end > begin ? sum / (float)(end - begin) : sum;
    }
}

// And back.
extern "C" __global__ void segment_spread(const float* grads, const u32* starts, const float* weights, int mean,
                                          float* to, int cols, int add, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) {
        u64 segment = row_of(i, cols);
        int col = column_of(i, cols);
        u32 begin = starts[segment], end = starts[segment + 1];
        float grad = mean && end > begin ? grads[i] / (float)(end - begin) : grads[i];
        for (u32 row = begin; row < end; row++)
            put_value(to, (u64)row * cols + col, weights ? grad * weights[row] : grad, add);
    }
}

// The softmax of each row; one warp a row.
extern "C" __global__ void softmax_rows(const float* x, float* y, int rows, int cols) {
    AFTER_OTHERS;
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

// The gradient in its own place becomes that of what went in.
extern "C" __global__ void softmax_rows_backward(float* grads, const float* y, int rows, int cols) {
    AFTER_OTHERS;
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float* grad = grads + (u64)row * cols;
    const float* out = y + (u64)row * cols;
    float along = 0.0f;
    for (int col = lane; col < cols; col += 32) along += grad[col] * out[col];
    along = warp_sum(along);
    for (int col = lane; col < cols; col += 32) grad[col] = out[col] * (grad[col] - along);
}

// LayerNorm and each row's mean and 1/σ; one warp a row.
extern "C" __global__ void norm_rows(const float* x, const float* scale, const float* shift, float* y, float2* stats,
                                     int rows, int cols) {
    AFTER_OTHERS;
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

extern "C" __global__ void norm_rows_backward(const float* dy, const float* x, const float2* stats, const float* scale,
                                              float* dx, int add, int rows, int cols) {
    AFTER_OTHERS;
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

// Partial sums over strips of rows: of the scale's and the shift's gradient.
extern "C" __global__ void norm_sums(const float* dy, const float* x, const float2* stats, float* partials, int rows,
                                     int cols, int strip) {
    AFTER_OTHERS;
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
