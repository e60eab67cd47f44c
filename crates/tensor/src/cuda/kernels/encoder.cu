// The parts of a transformer block between its products.
//
// A warp holds a row of up to 32 · N values, quad q of lane l standing in the four columns from 4 · (l + 32 · q).

// x' = x + drop(branch + bias) where there is a branch, and its LayerNorm; one warp a row.
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

// dx += the way back of a LayerNorm whose result has the gradient dy; branch = drop(dx) for what was added before it.
// Partial sums over the block's rows: of the scale's, the shift's and the branch's bias's gradient.
template <int N>
__device__ __forceinline__ void norm_backward(const elem* dy, const float* x, const float2* stats, const float* scale,
                                              float* dx, elem* branch, Mask mask, float* partials, int rows, int cols,
                                              int strip) {
    extern __shared__ float shared[];
    int lane = threadIdx.x, warp = threadIdx.y, n_warps = blockDim.y;
    bool is_even = cols % 4 == 0;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 d_scale[N / 4], d_shift[N / 4], d_bias[N / 4];
#pragma unroll
    for (int q = 0; q < N / 4; q++) d_scale[q] = d_shift[q] = d_bias[q] = zero;
    int end = min(rows, (int)(blockIdx.x + 1) * strip);
    for (int row = blockIdx.x * strip + warp; row < end; row += n_warps) {
        float2 stat = stats[row];
        u64 first = (u64)row * cols;
        float4 g[N / 4], normal[N / 4], before[N / 4];
        float sum = 0.0f, along = 0.0f;
        // All that is read, before anything is written.
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
            // Behind the end dy and scale are 0.
            grow(d_scale[q], make_float4(g[q].x * n.x, g[q].y * n.y, g[q].z * n.z, g[q].w * n.w));
            grow(d_shift[q], g[q]);
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
                grow(d_bias[q], grad);
            }
        }
    }
    // The warps' sums, one kind after another.
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
        residual_norm<N>(x, branch, bias, mask, x_new, y, stats, scale, shift, rows, cols);                           \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256, N == 8 ? 3 : 1)                                                 \
    norm_backward_##N(const elem* dy, const float* x, const float2* stats, const float* scale, float* dx,             \
                      elem* branch, Mask mask, float* partials, int rows, int cols, int strip) {                      \
        norm_backward<N>(dy, x, stats, scale, dx, branch, mask, partials, rows, cols, strip);                         \
    }

NORMS(8)
NORMS(32)

// to_k += the sum of partials[·, k · cols + ·], in order; one warp a column.
extern "C" __global__ void add_three(const float* partials, float* to0, float* to1, float* to2, int n_partials,
                                     int cols) {
    int at = blockIdx.x * blockDim.y + threadIdx.y;
    int kind = at / cols, col = at % cols;
    float* to = kind == 0 ? to0 : kind == 1 ? to1 : to2;
    if (kind > 2 || !to) return;
    float sum = 0.0f;
    for (int p = threadIdx.x; p < n_partials; p += 32) sum += partials[((u64)p * 3 + kind) * cols + col];
    sum = warp_sum(sum);
    if (threadIdx.x == 0) to[col] += sum;
}

// hidden = drop(gelu(pre + bias)). All widths are multiples of 4.
extern "C" __global__ void gelu_forward(const elem* pre, const float* bias, Mask mask, elem* hidden, int cols, u64 n) {
    for (u64 i = 4 * (blockIdx.x * (u64)blockDim.x + threadIdx.x); i < n; i += 4 * (u64)gridDim.x * blockDim.x) {
        float4 x = load4(pre + i), b = *(const float4*)(bias + column_of(i, cols));
        float4 y = make_float4(gelu(x.x + b.x).x, gelu(x.y + b.y).x, gelu(x.z + b.z).x, gelu(x.w + b.w).x);
        store4(hidden + i, masked(mask, i, y));
    }
}

// grads = drop(grads · slope(pre + bias)) in their place, with partial sums over strips of rows.
// Where there are pools instead, block y is a pool, every row of it has the gradient means / rows of the pool, and the
// result takes the place of pre.
template <bool MEANS>
__device__ __forceinline__ void gelu_strip(elem* grads, const elem* means, elem* pre, const float* bias, Mask mask,
                                           float* partials, int first, int end, int cols) {
    int col = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (col >= cols) return;
    float4 b = *(const float4*)(bias + col);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f), mean = sum;
    if (MEANS && first < end) {
        float share = 1.0f / (end - first);
        mean = load4(means + (u64)blockIdx.y * cols + col);
        mean = make_float4(mean.x * share, mean.y * share, mean.z * share, mean.w * share);
    }
    for (int row = first; row < end; row += 4) {
        float4 x[4], grad[4];
        // All that is read, before anything is written.
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (row + r >= end) break;
            x[r] = load4(pre + (u64)(row + r) * cols + col);
            grad[r] = MEANS ? mean : load4(grads + (u64)(row + r) * cols + col);
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (row + r >= end) break;
            u64 i = (u64)(row + r) * cols + col;
            grad[r].x *= gelu(x[r].x + b.x).y;
            grad[r].y *= gelu(x[r].y + b.y).y;
            grad[r].z *= gelu(x[r].z + b.z).y;
            grad[r].w *= gelu(x[r].w + b.w).y;
            grad[r] = masked(mask, i, grad[r]);
            grow(sum, grad[r]);
            store4((MEANS ? pre : grads) + i, grad[r]);
        }
    }
    *(float4*)(partials + (u64)blockIdx.y * cols + col) = sum;
}

extern "C" __global__ void gelu_backward(elem* grads, elem* pre, const float* bias, Mask mask, float* partials,
                                         int rows, int cols, int strip) {
    int first = blockIdx.y * strip;
    gelu_strip<false>(grads, nullptr, pre, bias, mask, partials, first, min(rows, first + strip), cols);
}

extern "C" __global__ void gelu_means_backward(const elem* means, elem* pre, const float* bias, Mask mask,
                                               float* partials, const u32* pools, int cols) {
    gelu_strip<true>(nullptr, means, pre, bias, mask, partials, pools[blockIdx.y], pools[blockIdx.y + 1], cols);
}

// The mean of drop(gelu(pre + bias)) over the rows of each pool.
extern "C" __global__ void gelu_means(const elem* pre, const float* bias, Mask mask, const u32* pools, elem* means,
                                      int cols) {
    int col = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (col >= cols) return;
    int first = pools[blockIdx.y], end = pools[blockIdx.y + 1];
    float4 b = *(const float4*)(bias + col);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (int row = first; row < end; row++) {
        u64 i = (u64)row * cols + col;
        float4 x = load4(pre + i);
        float4 y = make_float4(gelu(x.x + b.x).x, gelu(x.y + b.y).x, gelu(x.z + b.z).x, gelu(x.w + b.w).x);
        grow(sum, masked(mask, i, y));
    }
    float share = 1.0f / max(end - first, 1);
    store4(means + (u64)blockIdx.y * cols + col,
           make_float4(sum.x * share, sum.y * share, sum.z * share, sum.w * share));
}

// values = fed + bias (0 for an empty pool) + the mean row of x; one block a pool.
extern "C" __global__ void pool_means(const float* x, const elem* fed, const float* bias, const u32* pools,
                                      float* values, int cols) {
    int first = pools[blockIdx.x], end = pools[blockIdx.x + 1];
    float share = 1.0f / max(end - first, 1);
    for (int col = threadIdx.x; col < cols; col += blockDim.x) {
        float sum = 0.0f;
#pragma unroll 8
        for (int row = first; row < end; row++) sum += x[(u64)row * cols + col];
        u64 at = (u64)blockIdx.x * cols + col;
        float value = sum * share;
        if (fed && first < end) value += load(fed + at) + bias[col];
        values[at] = value;
    }
}

// dx = each row's share of its pool's gradient, and the gradients themselves as elem, zero for an empty pool.
extern "C" __global__ void pool_means_backward(const float* grads, const u32* pools, float* dx, elem* copy, int cols) {
    int first = pools[blockIdx.x], end = pools[blockIdx.x + 1];
    float share = 1.0f / max(end - first, 1);
    for (int col = threadIdx.x; col < cols; col += blockDim.x) {
        u64 at = (u64)blockIdx.x * cols + col;
        float grad = first < end ? grads[at] : 0.0f;
        store(copy + at, grad);
        for (int row = first; row < end; row++) dx[(u64)row * cols + col] = grad * share;
    }
}
