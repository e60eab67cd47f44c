// The parts of a transformer block between its products.
//
// A warp holds a row of up to 32 · N values, value i of lane l standing in column l + 32 · i.

template <int N>
__device__ __forceinline__ void norm_row(float (&v)[N], int cols, float& mean, float& inv_std) {
    int lane = threadIdx.x;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) sum += v[i];
    mean = warp_sum(sum) / cols;
    float square = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) {
        float off = lane + 32 * i < cols ? v[i] - mean : 0.0f;
        square += off * off;
    }
    inv_std = rsqrtf(warp_sum(square) / cols + 1e-5f);
}

// x' = x + drop(branch + bias) where there is a branch, and its LayerNorm; one warp a row.
template <int N>
__device__ __forceinline__ void residual_norm(const float* x, const elem* branch, const float* bias, Mask mask,
                                              float* x_new, elem* y, float2* stats, const float* scale,
                                              const float* shift, int rows, int cols) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float v[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        int col = lane + 32 * i;
        u64 at = (u64)row * cols + col;
        v[i] = 0.0f;
        if (col < cols) {
            v[i] = x[at];
            if (branch) {
                float added = load(branch + at) + bias[col];
                if (mask.bound) added *= mask_at(mask, at);
                v[i] += added;
                x_new[at] = v[i];
            }
        }
    }
    if (!y) return;
    float mean, inv_std;
    norm_row<N>(v, cols, mean, inv_std);
#pragma unroll
    for (int i = 0; i < N; i++) {
        int col = lane + 32 * i;
        if (col < cols) store(y + (u64)row * cols + col, (v[i] - mean) * inv_std * scale[col] + shift[col]);
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
    float d_scale[N], d_shift[N], d_bias[N];
#pragma unroll
    for (int i = 0; i < N; i++) d_scale[i] = d_shift[i] = d_bias[i] = 0.0f;
    int end = min(rows, (int)(blockIdx.x + 1) * strip);
    for (int row = blockIdx.x * strip + warp; row < end; row += n_warps) {
        float2 stat = stats[row];
        float g[N], normal[N];
        float sum = 0.0f, along = 0.0f;
#pragma unroll
        for (int i = 0; i < N; i++) {
            int col = lane + 32 * i;
            g[i] = normal[i] = 0.0f;
            if (col < cols) {
                u64 at = (u64)row * cols + col;
                float grad = load(dy + at);
                normal[i] = (x[at] - stat.x) * stat.y;
                d_scale[i] += grad * normal[i];
                d_shift[i] += grad;
                g[i] = grad * scale[col];
            }
            sum += g[i];
            along += g[i] * normal[i];
        }
        sum = warp_sum(sum) / cols;
        along = warp_sum(along) / cols;
#pragma unroll
        for (int i = 0; i < N; i++) {
            int col = lane + 32 * i;
            if (col < cols) {
                u64 at = (u64)row * cols + col;
                float grad = dx[at] + (g[i] - sum - normal[i] * along) * stat.y;
                dx[at] = grad;
                if (branch) {
                    if (mask.bound) grad *= mask_at(mask, at);
                    store(branch + at, grad);
                    d_bias[i] += grad;
                }
            }
        }
    }
    // The warps' sums, one kind after another.
    float* out = partials + (u64)blockIdx.x * 3 * cols;
    for (int kind = 0; kind < 3; kind++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; i++) {
            int col = lane + 32 * i;
            float value = kind == 0 ? d_scale[i] : kind == 1 ? d_shift[i] : d_bias[i];
            if (col < cols) shared[warp * cols + col] = value;
        }
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
    extern "C" __global__ void __launch_bounds__(256, N == 8 ? 4 : 1) norm_backward_##N(const elem* dy, const float* x, const float2* stats,                 \
                                                 const float* scale, float* dx, elem* branch, Mask mask,              \
                                                 float* partials, int rows, int cols, int strip) {                    \
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
        float4 x = load4(pre + i);
        const float* b = bias + i % cols;
        float4 y = make_float4(gelu(x.x + b[0]).x, gelu(x.y + b[1]).x, gelu(x.z + b[2]).x, gelu(x.w + b[3]).x);
        if (mask.bound) {
            y.x *= mask_at(mask, i);
            y.y *= mask_at(mask, i + 1);
            y.z *= mask_at(mask, i + 2);
            y.w *= mask_at(mask, i + 3);
        }
        store4(hidden + i, y);
    }
}

// grads = drop(grads · slope(pre + bias)) in their place, with partial sums over strips of rows.
// Where there are pools instead, block y is a pool, every row of it has the gradient means / rows of the pool, and the
// result takes the place of pre.
__device__ __forceinline__ void gelu_strip(elem* grads, const elem* means, elem* pre, const float* bias, Mask mask,
                                           float* partials, int first, int end, int cols) {
    int col = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (col >= cols) return;
    float4 b = *(const float4*)(bias + col);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f), mean = sum;
    if (means && first < end) {
        float share = 1.0f / (end - first);
        mean = load4(means + (u64)blockIdx.y * cols + col);
        mean = make_float4(mean.x * share, mean.y * share, mean.z * share, mean.w * share);
    }
#pragma unroll 4
    for (int row = first; row < end; row++) {
        u64 i = (u64)row * cols + col;
        float4 x = load4(pre + i);
        float4 grad = means ? mean : load4(grads + i);
        grad.x *= gelu(x.x + b.x).y;
        grad.y *= gelu(x.y + b.y).y;
        grad.z *= gelu(x.z + b.z).y;
        grad.w *= gelu(x.w + b.w).y;
        if (mask.bound) {
            grad.x *= mask_at(mask, i);
            grad.y *= mask_at(mask, i + 1);
            grad.z *= mask_at(mask, i + 2);
            grad.w *= mask_at(mask, i + 3);
        }
        sum = make_float4(sum.x + grad.x, sum.y + grad.y, sum.z + grad.z, sum.w + grad.w);
        store4((means ? pre : grads) + i, grad);
    }
    *(float4*)(partials + (u64)blockIdx.y * cols + col) = sum;
}

extern "C" __global__ void gelu_backward(elem* grads, elem* pre, const float* bias, Mask mask, float* partials,
                                         int rows, int cols, int strip) {
    int first = blockIdx.y * strip;
    gelu_strip(grads, nullptr, pre, bias, mask, partials, first, min(rows, first + strip), cols);
}

extern "C" __global__ void gelu_means_backward(const elem* means, elem* pre, const float* bias, Mask mask,
                                               float* partials, const u32* pools, int cols) {
    gelu_strip(nullptr, means, pre, bias, mask, partials, pools[blockIdx.y], pools[blockIdx.y + 1], cols);
}

// The mean of drop(gelu(pre + bias)) over the rows of each pool.
extern "C" __global__ void gelu_means(const elem* pre, const float* bias, Mask mask, const u32* pools, elem* means,
                                      int cols) {
    int col = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (col >= cols) return;
    int first = pools[blockIdx.y], end = pools[blockIdx.y + 1];
    float4 b = *(const float4*)(bias + col);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
    for (int row = first; row < end; row++) {
        u64 i = (u64)row * cols + col;
        float4 x = load4(pre + i);
        float4 y = make_float4(gelu(x.x + b.x).x, gelu(x.y + b.y).x, gelu(x.z + b.z).x, gelu(x.w + b.w).x);
        if (mask.bound) {
            y.x *= mask_at(mask, i);
            y.y *= mask_at(mask, i + 1);
            y.z *= mask_at(mask, i + 2);
            y.w *= mask_at(mask, i + 3);
        }
        sum = make_float4(sum.x + y.x, sum.y + y.y, sum.z + y.z, sum.w + y.w);
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
