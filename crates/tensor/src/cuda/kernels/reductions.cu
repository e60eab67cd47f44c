// Column sums in two passes: partial sums over strips of rows, then their sum in a fixed order.

// Partial sums over strips of rows: a warp's lanes are columns, the block's 8 warps share the rows.
__device__ __forceinline__ void strip_sum(float sum, float* partials, int col, int cols) {
    __shared__ float sums[8][32];
    __syncthreads();
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || col >= cols) return;
    for (int warp = 1; warp < 8; warp++) sum += sums[warp][threadIdx.x];
    partials[col] = sum;
}

// One pass over a layer's gradient: multiplies it by the slopes in place, converts it to elem, and leaves partial column
// sums of it and of x · weights[row]. Null pointers leave their part out.
extern "C" __global__ void finish_linear_grad(float* x, const float* slopes, elem* copy, const float* weights, float* partials,
                                  int rows, int cols, int strip) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int col = blockIdx.x * 32 + threadIdx.x, end = min(rows, (int)(blockIdx.y + 1) * strip);
    float sum = 0.0f, weighted = 0.0f;
    if (col < cols) {
#pragma unroll 1
        for (int row = blockIdx.y * strip + threadIdx.y; row < end; row += 64) {
            float values[8], factors[8], shares[8];
            // All loads before any store; past the end the last row again.
#pragma unroll
            for (int r = 0; r < 8; r++) {
                int at = min(row + 8 * r, end - 1);
                u64 i = (u64)(u32)at * (u32)cols + col;
                values[r] = x[i];
                factors[r] = slopes ? slopes[i] : 1.0f;
                shares[r] = weights ? weights[at] : 0.0f;
            }
#pragma unroll
            for (int r = 0; r < 8; r++) {
                if (row + 8 * r >= end) break;
                u64 i = (u64)(u32)(row + 8 * r) * (u32)cols + col;
                float value = values[r] * factors[r];
                if (slopes) x[i] = value;
                if (copy) store(copy + i, value);
                sum += value;
                weighted += value * shares[r];
            }
        }
    }
    if (!partials) return;
    float* to = partials + (u64)blockIdx.y * (weights ? 2 : 1) * cols;
    strip_sum(sum, to, col, cols);
    if (weights) strip_sum(weighted, to + cols, col, cols);
}

// Partial column sums of elem values; a lane has four columns.
extern "C" __global__ void column_sums_elem(const elem* x, float* partials, int rows, int cols, int strip) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int col = 4 * (blockIdx.x * 32 + threadIdx.x), end = min(rows, (int)(blockIdx.y + 1) * strip);
    bool is_even = cols % 4 == 0;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
    for (int row = blockIdx.y * strip + threadIdx.y; row < end; row += 8)
        add4(sum, quad(x + (u64)row * cols, col, cols, is_even));
    sum = block_sum(sum);
    if (threadIdx.y == 0) put_quad(partials + (u64)blockIdx.y * cols, col, cols, is_even, sum);
}

// Partial sums of a gradient: rows `stride` apart; `first` is the number of columns of the preceding gradients.
struct PartialSums {
    const float* partials;
    float* to;
    int n_partials, stride, cols, first;
};

// to += the sum of the partials, in a fixed order, for each of many gradients: a lane has a column, and the 16 warps of a
// block share the partials.
extern "C" __global__ void add_partials(const PartialSums* all, int n_all, int n_cols) {
    WAIT_FOR_PREVIOUS_KERNELS;
    __shared__ float sums[16][32];
    int lane = threadIdx.x, warp = threadIdx.y, at = blockIdx.x * 32 + lane, which = -1;
    // The gradient of the block's first column, and from there that of the lane's column.
    for (int begin = 0; begin < n_all; begin += 32)
        which += __popc(__ballot_sync(0xFFFFFFFFu, begin + lane < n_all && all[begin + lane].first <= (int)blockIdx.x * 32));
    while (which + 1 < n_all && all[which + 1].first <= at) which++;
    PartialSums own = all[which];
    float sum = 0.0f;
    if (at < n_cols) {
        const float* from = own.partials + (at - own.first);
#pragma unroll 8
        for (int p = warp; p < own.n_partials; p += 16) sum += from[(u64)p * own.stride];
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || at >= n_cols) return;
    for (int other = 1; other < 16; other++) sum += sums[other][lane];
    own.to[at - own.first] += sum;
}
