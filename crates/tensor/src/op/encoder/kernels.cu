// The steps of a transformer block between its GEMMs.
//
// A warp holds a row of up to 32 · N values; quad q of lane l is the four columns from 4 · (l + 32 · q).

// x_new = x + dropout(branch + bias) if there is a branch, and its LayerNorm; one warp for each row.
template <int N>
__device__ __forceinline__ void residual_norm(const float* x, const elem* branch, const float* bias, Mask mask,
                                              float* x_new, elem* y, float2* stats, const float* scale,
                                              const float* shift, int rows, int cols) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    bool is_even = cols % 4 == 0;
    u64 first = (u64)row * cols;
    float4 v[N / 4];
    float sum = 0.0f;
#pragma unroll
    for (int q = 0; q < N / 4; q++) v[q] = quad(x + first, 4 * (lane + 32 * q), cols, is_even);
    if (branch) {
#pragma unroll
        for (int q = 0; q < N / 4; q++) {
            int col = 4 * (lane + 32 * q);
            float4 a = quad(branch + first, col, cols, is_even), b = quad(bias, col, cols, is_even);
            a = masked(mask, first + col, make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w));
            v[q] = make_float4(v[q].x + a.x, v[q].y + a.y, v[q].z + a.z, v[q].w + a.w);
            put_quad(x_new + first, col, cols, is_even, v[q]);
        }
    }
    if (!y) return;
#pragma unroll
    for (int q = 0; q < N / 4; q++) sum += sum_of(v[q]);
    float mean = warp_sum(sum) / cols, square = 0.0f;
#pragma unroll
    for (int q = 0; q < N / 4; q++) {
        int left = cols - 4 * (lane + 32 * q);
        v[q] = make_float4(left > 0 ? v[q].x - mean : 0.0f, left > 1 ? v[q].y - mean : 0.0f,
                           left > 2 ? v[q].z - mean : 0.0f, left > 3 ? v[q].w - mean : 0.0f);
        square += v[q].x * v[q].x + v[q].y * v[q].y + v[q].z * v[q].z + v[q].w * v[q].w;
    }
    float inv_std = rsqrtf(warp_sum(square) / cols + 1e-5f);
#pragma unroll
    for (int q = 0; q < N / 4; q++) {
        int col = 4 * (lane + 32 * q);
        float4 a = quad(scale, col, cols, is_even), b = quad(shift, col, cols, is_even);
        put_quad(y + first, col, cols, is_even,
                 make_float4(v[q].x * inv_std * a.x + b.x, v[q].y * inv_std * a.y + b.y, v[q].z * inv_std * a.z + b.z,
                             v[q].w * inv_std * a.w + b.w));
    }
    if (lane == 0) stats[row] = make_float2(mean, inv_std);
}

// dx += the input gradient of a LayerNorm with output gradient dy; branch = dropout(dx) is the gradient of the branch before
// it. Partial sums over the block's rows of the gradients of scale, shift and the branch's bias.
template <int N>
__device__ __forceinline__ void norm_backward(const elem* dy, const float* x, const float2* stats, const float* scale,
                                              float* dx, elem* branch, Mask mask, float* partials, int rows,
                                              int cols) {
    extern __shared__ float shared[];
    int lane = threadIdx.x, warp = threadIdx.y, n_warps = blockDim.y;
    bool is_even = cols % 4 == 0;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 d_scale[N / 4], d_shift[N / 4], d_bias[N / 4];
#pragma unroll
    for (int q = 0; q < N / 4; q++) d_scale[q] = d_shift[q] = d_bias[q] = zero;
    // Grid-stride, so that warps differ by at most one row.
    for (int row = blockIdx.x * n_warps + warp; row < rows; row += gridDim.x * n_warps) {
        float2 stat = stats[row];
        u64 first = (u64)row * cols;
        float4 g[N / 4], normal[N / 4], before[N / 4];
        float sum = 0.0f, along = 0.0f;
        // All loads before any store.
#pragma unroll
        for (int q = 0; q < N / 4; q++) {
            int col = 4 * (lane + 32 * q);
            g[q] = quad(dy + first, col, cols, is_even);
            normal[q] = quad(x + first, col, cols, is_even);
            before[q] = quad(dx + first, col, cols, is_even);
        }
#pragma unroll
        for (int q = 0; q < N / 4; q++) {
            float4 a = quad(scale, 4 * (lane + 32 * q), cols, is_even), n = normal[q];
            n = make_float4((n.x - stat.x) * stat.y, (n.y - stat.x) * stat.y, (n.z - stat.x) * stat.y,
                            (n.w - stat.x) * stat.y);
            // Past the end dy and scale are 0.
            add4(d_scale[q], make_float4(g[q].x * n.x, g[q].y * n.y, g[q].z * n.z, g[q].w * n.w));
            add4(d_shift[q], g[q]);
            g[q] = make_float4(g[q].x * a.x, g[q].y * a.y, g[q].z * a.z, g[q].w * a.w);
            sum += sum_of(g[q]);
            along += sum_of(make_float4(g[q].x * n.x, g[q].y * n.y, g[q].z * n.z, g[q].w * n.w));
            normal[q] = n;
        }
        sum = warp_sum(sum) / cols;
        along = warp_sum(along) / cols;
#pragma unroll
        for (int q = 0; q < N / 4; q++) {
            int col = 4 * (lane + 32 * q);
            float4 n = normal[q];
            float4 grad = make_float4(before[q].x + (g[q].x - sum - n.x * along) * stat.y,
                                      before[q].y + (g[q].y - sum - n.y * along) * stat.y,
                                      before[q].z + (g[q].z - sum - n.z * along) * stat.y,
                                      before[q].w + (g[q].w - sum - n.w * along) * stat.y);
            put_quad(dx + first, col, cols, is_even, grad);
            if (branch && col < cols) {
                grad = masked(mask, first + col, grad);
                put_quad(branch + first, col, cols, is_even, grad);
                add4(d_bias[q], grad);
            }
        }
    }
    // Sums over the warps, one gradient after another.
    float* out = partials + (u64)blockIdx.x * 3 * cols;
    for (int kind = 0; kind < 3; kind++) {
        __syncthreads();
#pragma unroll
        for (int q = 0; q < N / 4; q++)
            put_quad(shared + warp * cols, 4 * (lane + 32 * q), cols, is_even,
                     kind == 0 ? d_scale[q] : kind == 1 ? d_shift[q] : d_bias[q]);
        __syncthreads();
        for (int col = warp * 32 + lane; col < cols; col += 32 * n_warps) {
            float total = 0.0f;
            for (int w = 0; w < n_warps; w++) total += shared[w * cols + col];
            out[kind * cols + col] = total;
        }
    }
}

#define NORMS(N)                                                                                                      \
    extern "C" __global__ void residual_norm_##N(const float* x, const elem* branch, const float* bias, Mask mask,    \
                                                 float* x_new, elem* y, float2* stats, const float* scale,            \
                                                 const float* shift, int rows, int cols) {                            \
        WAIT_FOR_PREVIOUS_KERNELS;                                                                                                 \
        residual_norm<N>(x, branch, bias, mask, x_new, y, stats, scale, shift, rows, cols);                           \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256, N == 8 ? 3 : 1)                                                 \
    norm_backward_##N(const elem* dy, const float* x, const float2* stats, const float* scale, float* dx,             \
                      elem* branch, Mask mask, float* partials, int rows, int cols) {                                 \
        WAIT_FOR_PREVIOUS_KERNELS;                                                                                                 \
        norm_backward<N>(dy, x, stats, scale, dx, branch, mask, partials, rows, cols);                                \
    }

NORMS(8)
NORMS(32)

// GELU: a lane has four columns, and the 8 warps of a block share its rows. All widths are multiples of 4.
//
// FORWARD: to = dropout(gelu(pre + bias)). MEANS: only its sum. BACKWARD: dropout(grads · gelu'(pre + bias)), in place and
// summed. SHARED: the same with one gradient for all rows, written over pre.
enum { FORWARD, MEANS, BACKWARD, SHARED };

template <int KIND, bool DROPS>
__device__ __forceinline__ float4 gelu_rows(const elem* pre, const elem* grads, float4 shared_grad, elem* to, float4 b,
                                            Mask mask, int first, int end, int cols, int col) {
    constexpr bool IS_BACK = KIND == BACKWARD || KIND == SHARED;
    // As many rows at once as registers allow, with as many more being loaded.
    constexpr int N = DROPS || (sizeof(elem) == 4 && IS_BACK) ? 2 : 4;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    int row = first + threadIdx.y;
    if (row >= end) return sum;
    Packed x[N], grad[N], next_x[N], next_grad[N];
    // Past the end the last row again, so that no load depends on a branch.
    auto load_rows = [&](int from, Packed(&xs)[N], Packed(&gs)[N]) {
#pragma unroll
        for (int r = 0; r < N; r++) {
            u64 at = (u64)(u32)min(from + 8 * r, end - 1) * (u32)cols + col;
            xs[r] = *(const Packed*)(pre + at);
            if (KIND == BACKWARD) gs[r] = *(const Packed*)(grads + at);
        }
    };
    load_rows(row, x, grad);
#pragma unroll 1
    while (true) {
        int next = row + 8 * N;
        // None of them is written below, except repeated last rows, whose values are not used.
        if (next < end) load_rows(next, next_x, next_grad);
#pragma unroll
        for (int r = 0; r < N; r++) {
            if (row + 8 * r >= end) break;
            u64 at = (u64)(u32)(row + 8 * r) * (u32)cols + col;
            float4 v = unpack(x[r]), g = KIND == BACKWARD ? unpack(grad[r]) : shared_grad, y;
            add4(v, b);
            if (IS_BACK)
                y = make_float4(g.x * gelu_slope(v.x), g.y * gelu_slope(v.y), g.z * gelu_slope(v.z),
                                g.w * gelu_slope(v.w));
            else
                y = make_float4(gelu_value(v.x), gelu_value(v.y), gelu_value(v.z), gelu_value(v.w));
            if (DROPS) y = dropped(mask, at, y);
            if (KIND != FORWARD) add4(sum, y);
            if (KIND != MEANS) store4(to + at, y);
        }
        row = next;
        if (row >= end) return sum;
#pragma unroll
        for (int r = 0; r < N; r++) x[r] = next_x[r], grad[r] = next_grad[r];
    }
}

// With or without dropout, decided once rather than for every value.
template <int KIND>
__device__ __forceinline__ float4 gelu_strip(const elem* pre, const elem* grads, float4 shared_grad, elem* to,
                                             const float* bias, const Mask& mask, int first, int end, int cols,
                                             int col) {
    if (col >= cols) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 b = *(const float4*)(bias + col);
    if (mask.bound) return gelu_rows<KIND, true>(pre, grads, shared_grad, to, b, mask, first, end, cols, col);
    return gelu_rows<KIND, false>(pre, grads, shared_grad, to, b, mask, first, end, cols, col);
}

#define GELU_COLUMN (4 * (int)(blockIdx.x * 32 + threadIdx.x))

extern "C" __global__ void __launch_bounds__(256, 4)
gelu_forward(const elem* pre, const float* bias, Mask mask, elem* hidden, int rows, int cols, int strip) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int first = blockIdx.y * strip;
    float4 none = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    gelu_strip<FORWARD>(pre, nullptr, none, hidden, bias, mask, first, min(rows, first + strip), cols, GELU_COLUMN);
}

// The mean over the rows of each pool.
extern "C" __global__ void __launch_bounds__(256, 4)
gelu_means(const elem* pre, const float* bias, Mask mask, const u32* pools, elem* means, int cols) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int col = GELU_COLUMN, first = pools[blockIdx.y], end = pools[blockIdx.y + 1];
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    sum = block_sum(gelu_strip<MEANS>(pre, nullptr, sum, nullptr, bias, mask, first, end, cols, col));
    float share = 1.0f / max(end - first, 1);
    if (threadIdx.y == 0 && col < cols)
        store4(means + (u64)blockIdx.y * cols + col,
               make_float4(sum.x * share, sum.y * share, sum.z * share, sum.w * share));
}

// With partial sums over strips of rows.
extern "C" __global__ void __launch_bounds__(256, 4)
gelu_backward(elem* grads, const elem* pre, const float* bias, Mask mask, float* partials, int rows, int cols,
              int strip) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int col = GELU_COLUMN, first = blockIdx.y * strip, end = min(rows, first + strip);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    sum = block_sum(gelu_strip<BACKWARD>(pre, grads, sum, grads, bias, mask, first, end, cols, col));
    if (threadIdx.y == 0 && col < cols) store4(partials + (u64)blockIdx.y * cols + col, sum);
}

// The gradient of a row is that of its pool's mean, divided by the rows of the pool; partial sums over pools.
extern "C" __global__ void __launch_bounds__(256, 4)
gelu_means_backward(const elem* means, elem* pre, const float* bias, Mask mask, float* partials, const u32* pools,
                    int cols) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int col = GELU_COLUMN, first = pools[blockIdx.y], end = pools[blockIdx.y + 1];
    float4 grad = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (col < cols) grad = load4(means + (u64)blockIdx.y * cols + col);
    float share = 1.0f / max(end - first, 1);
    grad = make_float4(grad.x * share, grad.y * share, grad.z * share, grad.w * share);
    float4 sum = block_sum(gelu_strip<SHARED>(pre, nullptr, grad, pre, bias, mask, first, end, cols, col));
    if (threadIdx.y == 0 && col < cols) store4(partials + (u64)blockIdx.y * cols + col, sum);
}

// values = fed + bias (0 for an empty pool) + the mean row of x; with the grid of GELU.
extern "C" __global__ void pool_means(const float* x, const elem* fed, const float* bias, const u32* pools,
                                      float* values, int cols) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int col = GELU_COLUMN, first = pools[blockIdx.y], end = pools[blockIdx.y + 1];
    bool is_even = cols % 4 == 0;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (int row = first + threadIdx.y; row < end; row += 8) add4(sum, quad(x + (u64)row * cols, col, cols, is_even));
    sum = block_sum(sum);
    if (threadIdx.y > 0) return;
    float share = 1.0f / max(end - first, 1);
    u64 at = (u64)blockIdx.y * cols;
    sum = make_float4(sum.x * share, sum.y * share, sum.z * share, sum.w * share);
    if (fed && first < end) {
        float4 value = quad(fed + at, col, cols, is_even);
        add4(value, quad(bias, col, cols, is_even));
        add4(sum, value);
    }
    put_quad(values + at, col, cols, is_even, sum);
}

// dx = each row's share of its pool's gradient; the gradients also as elem, zero for an empty pool.
extern "C" __global__ void pool_means_backward(const float* grads, const u32* pools, float* dx, elem* copy, int cols) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int col = GELU_COLUMN, first = pools[blockIdx.y], end = pools[blockIdx.y + 1];
    bool is_even = cols % 4 == 0;
    u64 at = (u64)blockIdx.y * cols;
    float4 grad = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (first < end) grad = quad(grads + at, col, cols, is_even);
    if (threadIdx.y == 0) put_quad(copy + at, col, cols, is_even, grad);
    float share = 1.0f / max(end - first, 1);
    grad = make_float4(grad.x * share, grad.y * share, grad.z * share, grad.w * share);
    for (int row = first + threadIdx.y; row < end; row += 8) put_quad(dx + (u64)row * cols, col, cols, is_even, grad);
}
