// Concatenation, column slices and transposes.

// The end columns of up to four matrices in their concatenation.
struct Ends {
    int end[4];
};

// Whether rows and all their parts can be copied two values at a time.
__device__ __forceinline__ bool has_pairs(const Ends& ends, int first, int width, const float* const (&places)[5]) {
    u64 bits = first | ends.end[0] | ends.end[1] | ends.end[2] | ends.end[3] | width;
    u64 at = (u64)places[0] | (u64)places[1] | (u64)places[2] | (u64)places[3] | (u64)places[4];
    return bits % 2 == 0 && at % 8 == 0;
}

// Copies the parts to rows of `width`, from column `first` on; one warp for each row. In the vectorised part all loads come
// before any store.
extern "C" __global__ void concat_columns(const float* part0, const float* part1, const float* part2, const float* part3,
                                      Ends ends, float* whole, int first, int width, int rows) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    const float* parts[4] = {part0, part1, part2, part3};
    int begins[4] = {first, ends.end[0], ends.end[1], ends.end[2]};
    float* to = whole + (u64)row * width;
    int begin = 0;
    if (has_pairs(ends, first, width, {part0, part1, part2, part3, whole})) {
        float2 pairs[4];
        begin = 64;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int cols = ends.end[i] - begins[i];
            if (2 * lane < cols) pairs[i] = *(const float2*)(parts[i] + (u64)row * cols + 2 * lane);
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (2 * lane < ends.end[i] - begins[i]) *(float2*)(to + begins[i] + 2 * lane) = pairs[i];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int cols = ends.end[i] - begins[i];
        for (int col = begin + lane; col < cols; col += 32) to[begins[i] + col] = parts[i][(u64)row * cols + col];
    }
}

// The gradients of the parts; bit i of `add` accumulates into part i, and a null part is skipped.
extern "C" __global__ void concat_columns_backward(const float* whole, float* part0, float* part1, float* part2, float* part3,
                                       Ends ends, int first, int width, int add, int rows) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float* parts[4] = {part0, part1, part2, part3};
    int begins[4] = {first, ends.end[0], ends.end[1], ends.end[2]};
    const float* from = whole + (u64)row * width;
    int begin = 0;
    if (has_pairs(ends, first, width, {part0, part1, part2, part3, whole})) {
        float2 pairs[4];
        begin = 64;
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (parts[i] && 2 * lane < ends.end[i] - begins[i])
                pairs[i] = *(const float2*)(from + begins[i] + 2 * lane);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int cols = ends.end[i] - begins[i];
            if (!parts[i] || 2 * lane >= cols) continue;
            float2* to = (float2*)(parts[i] + (u64)row * cols + 2 * lane);
            float2 before = add >> i & 1 ? *to : make_float2(0.0f, 0.0f);
            *to = make_float2(before.x + pairs[i].x, before.y + pairs[i].y);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int cols = ends.end[i] - begins[i];
        if (!parts[i]) continue;
        for (int col = begin + lane; col < cols; col += 32) {
            float* to = parts[i] + (u64)row * cols + col;
            *to = (add >> i & 1 ? *to : 0.0f) + from[begins[i] + col];
        }
    }
}

// Columns first..first + count of rows of `width`; n values in all.
extern "C" __global__ void slice_columns(const float* x, float* to, int width, int first, int count, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) to[i] = x[row_of(i, count) * width + first + column_of(i, count)];
}

// The gradient of whole rows of `width`: 0 outside the columns.
extern "C" __global__ void slice_columns_backward(const float* grad, float* to, int width, int first, int count, int add, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        int col = column_of(i, width) - first;
        float x = col >= 0 && col < count ? grad[row_of(i, width) * count + col] : 0.0f;
        put_value(to, i, x, add);
    }
}

// Transposes matrices [rows, cols] in tiles of 32 · 32; a block has some tiles of one matrix.
extern "C" __global__ void swap_axes(const float* from, float* to, int rows, int cols, int add) {
    WAIT_FOR_PREVIOUS_KERNELS;
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
