// Self-attention over at most 64 tokens on tensor cores: one block for each sequence and head. In the forward pass a warp
// has 16 queries, whose scores stay in registers, so that a softmax row is held by four lanes; in the backward pass two
// warps have 16 keys.
//
// Tiles are loaded by asynchronous copies, all at once: a block waits for memory once, not once for each row. They hold GEMM
// elements; rows are an odd number of 16-byte units apart, which avoids bank conflicts.

#define SHORT 64
#define LOG2_E 1.44269504f

// 2^x; 0 for large negative x, so that zero weights need no branch.
__device__ __forceinline__ float power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ bool has_quads(const elem* from, int from_step, int width) {
    return width % 4 == 0 && from_step % 4 == 0 && ((u64)from & (4 * sizeof(elem) - 1)) == 0;
}

// Starts loading the warp's N rows of a tile, four columns a lane, zeros past the end; `finish_rows` completes them.
template <int N>
__device__ __forceinline__ void begin_rows(elem* tile, int step, const elem* from, int from_step, int n_rows,
                                           int width) {
    int first = threadIdx.x / 32 * N, col = threadIdx.x % 32 * 4;
    if (!has_quads(from, from_step, width) || col >= step) return;
    bool is_real = col < width;
    u32 to = (u32)__cvta_generic_to_shared(tile + first * step + col);
    from += (u64)min(first, n_rows - 1) * from_step + (is_real ? col : 0);
#pragma unroll
    for (int i = 0; i < N; i++) {
        int bytes = is_real && first + i < n_rows ? 4 * sizeof(elem) : 0;
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                     :: "r"(to), "l"(from), "n"(4 * (int)sizeof(elem)), "r"(bytes) : "memory");
        to += step * sizeof(elem);
        if (first + i + 1 < n_rows) from += from_step;
    }
}

__device__ __forceinline__ void wait_for_rows() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Adds the bias to the loaded rows. A lane reads only what it has loaded itself.
template <int N>
__device__ __forceinline__ void finish_rows(elem* tile, int step, const elem* from, int from_step, const float* bias,
                                            int n_rows, int width) {
    int first = threadIdx.x / 32 * N, col = threadIdx.x % 32 * 4;
    if (col >= step) return;
    bool is_even = has_quads(from, from_step, width);
    float4 b = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (bias) b = quad(bias, col, width, width % 4 == 0 && ((u64)bias & 15) == 0);
    tile += first * step + col;
    if (is_even) {
        if (!bias && sizeof(elem) == 2) return;
#pragma unroll
        for (int i = 0; i < N; i++) {
            float4 x = load4(tile + i * step);
            if (first + i < n_rows) add4(x, b);
            store_rounded(tile + i * step, x);
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < N; i++) {
            float4 x = quad_by_one(from + (u64)(first + i) * from_step, col, first + i < n_rows ? width : 0);
            if (first + i < n_rows) add4(x, b);
            store_rounded(tile + i * step, x);
        }
    }
}

// The row sums of x · y for the warp's 8 rows; four lanes for each row.
__device__ __forceinline__ void row_products(float* along, const elem* x, const elem* y, int step, int n_rows,
                                             int width) {
    int row = threadIdx.x / 4, lane = threadIdx.x % 4;
    float sum = 0.0f;
    if (row < n_rows) {
        const elem *p = x + (u64)row * step, *q = y + (u64)row * step;
        if (has_quads(x, step, width) && has_quads(y, step, width)) {
#pragma unroll 4
            for (int col = lane * 4; col < width; col += 16) {
                float4 a = load4(p + col), b = load4(q + col);
                sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
            }
        } else {
#pragma unroll 1
            for (int col = lane; col < width; col += 4) sum += load(p + col) * load(q + col);
        }
    }
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
    if (lane == 0) along[row] = sum;
}

// A bit for each of the lane's 4 · N weights that dropout keeps. Row i and column j of the lane's block have position
// first + i · row_step + j · col_step.
template <int N>
__device__ __forceinline__ u32 kept_weights(const Mask& mask, u64 first, int row, u64 row_step, u64 col_step) {
    if (!mask.bound) return 0xFFFFFFFFu;
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    u32 kept = 0;
#pragma unroll 2
    for (int at = 0; at < 4 * N; at++) {
        u64 position = first + (row + g + at / 2 % 2 * 8) * row_step + (at / 4 * 8 + 2 * t + at % 2) * col_step;
        kept |= (u32)(mask_at(mask, position) != 0.0f) << at;
    }
    return kept;
}

// Stores two adjacent values of a row.
__device__ __forceinline__ void store_pair(elem* row, int col, int width, bool is_even, float x, float y) {
    if (is_even) {
        if (col < width) store2(row + col, x, y);
    } else {
        if (col < width) store(row + col, x);
        if (col + 1 < width) store(row + col + 1, y);
    }
}

// Stores the warp's rows of weights · tile, columns col.. to end, each row times its factor, in rows of `to`.
__device__ __forceinline__ void store_product(elem* to, int to_step, const Weights& weights, const elem* tile, int step,
                                              int first, int n_rows, int last, int col, int end, int width, float low,
                                              float high) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    bool is_even = width % 2 == 0 && to_step % 2 == 0 && ((u64)to & (2 * sizeof(elem) - 1)) == 0;
#ifdef BF16
    bool is_quad = has_quads(to, to_step, width);
#endif
    elem *p = to + (u64)(first + g) * to_step, *q = p + 8 * (u64)to_step;
    bool has_low = first + g < n_rows, has_high = first + g + 8 < n_rows;
#pragma unroll 1
    for (; col < end; col += 16) {
        float c[2][4] = {};
        weights.times(c, tile + col, step, last);
#ifdef BF16
        if (is_quad) {
            // Adjacent lanes exchange halves, so that each has four columns of one block: fewer and wider stores.
            int at = col + t % 2 * 8 + t / 2 * 4;
            uint2 rows[2];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float factor = half ? high : low;
                u32 left = pack2(c[0][2 * half] * factor, c[0][2 * half + 1] * factor);
                u32 right = pack2(c[1][2 * half] * factor, c[1][2 * half + 1] * factor);
                u32 other = __shfl_xor_sync(0xFFFFFFFFu, t % 2 ? left : right, 1);
                rows[half] = t % 2 ? make_uint2(other, right) : make_uint2(left, other);
            }
            if (has_low && at < width) *(uint2*)(p + at) = rows[0];
            if (has_high && at < width) *(uint2*)(q + at) = rows[1];
            continue;
        }
#endif
#pragma unroll
        for (int n = 0; n < 2; n++) {
            int at = col + 8 * n + 2 * t;
            if (has_low) store_pair(p, at, width, is_even, c[n][0] * low, c[n][1] * low);
            if (has_high) store_pair(q, at, width, is_even, c[n][2] * high, c[n][3] * high);
        }
    }
}

// With `BIASED` scores have a bias, at the position of their weight among all.
template <bool BIASED>
__device__ __forceinline__ void attend_short(const elem* qkv, const float* bias, const float* biases, const u32* starts,
                                             const u64* weight_starts, Mask mask, elem* out, float* logs, int n_heads,
                                             int width, int step, float scale) {
    extern __shared__ float4 aligned[];
    int size = blockDim.x / 2 * step;
    elem *q = (elem*)aligned, *k = q + size, *v = q;
    int sequence = blockIdx.x / n_heads, head = blockIdx.x % n_heads;
    int first = starts[sequence], n = starts[sequence + 1] - first;
    if (n <= 0) return;
    int d_model = n_heads * width, from_step = 3 * d_model;
    int row = threadIdx.x / 32 * 16, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const elem* base = qkv + (u64)first * from_step + head * width;
    const float* head_bias = bias + head * width;
    int last = blockDim.x / 2 - 16;
#pragma unroll 1
    for (int part = 0; part < 2; part++)
        begin_rows<16>(q + part * size, step, base + part * d_model, from_step, n, width);
    wait_for_rows();
#pragma unroll 1
    for (int part = 0; part < 2; part++)
        finish_rows<16>(q + part * size, step, base + part * d_model, from_step, head_bias + part * d_model, n, width);
    __syncthreads();
    float s[8][4] = {}, top[2] = {-1e30f, -1e30f}, total[2] = {0.0f, 0.0f};
    if (row < n) rows_by_rows<4>(s, q + row * step, k, step, width, 0, last);
    // The values reuse the memory of the queries; their load overlaps the softmax.
    __syncthreads();
    begin_rows<16>(v, step, base + 2 * d_model, from_step, n, width);
    // Columns from here on are past the end: their weights are 0.
    int end = n - 2 * t;
    u64 first_weight = weight_starts[sequence] * n_heads + (u64)head * n * n;
    if (BIASED) {
        // Scores are scaled below.
        float factor = 1.0f / scale;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int i = row + g + e / 2 * 8;
            if (i >= n) continue;
            const float* own = biases + first_weight + i * n + 2 * t + e % 2;
#pragma unroll
            for (int b = 0; b < 8; b++)
                if (8 * b + e % 2 < end) s[b][e] += own[8 * b] * factor;
        }
    }
#pragma unroll
    for (int b = 0; b < 8; b++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            s[b][e] = 8 * b + e % 2 < end ? s[b][e] : -1e30f;
            top[e / 2] = fmaxf(top[e / 2], s[b][e]);
        }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        top[half] = fmaxf(top[half], __shfl_xor_sync(0xFFFFFFFFu, top[half], 1));
        top[half] = fmaxf(top[half], __shfl_xor_sync(0xFFFFFFFFu, top[half], 2));
    }
    u32 kept = kept_weights<8>(mask, first_weight, row, n, 1);
    float keep = mask.bound ? mask.keep : 1.0f;
#pragma unroll
    for (int b = 0; b < 8; b++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float w = power_of_2((s[b][e] - top[e / 2]) * (scale * LOG2_E));
            total[e / 2] += w;
            s[b][e] = kept >> (4 * b + e) & 1 ? w * keep : 0.0f;
        }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        total[half] += __shfl_xor_sync(0xFFFFFFFFu, total[half], 1);
        total[half] += __shfl_xor_sync(0xFFFFFFFFu, total[half], 2);
        int i = row + g + 8 * half;
        if (t == 0 && i < n) logs[(u64)(first + i) * n_heads + head] = top[half] * scale + logf(total[half]);
    }
    wait_for_rows();
    finish_rows<16>(v, step, base + 2 * d_model, from_step, head_bias + 2 * d_model, n, width);
    __syncthreads();
    if (row >= n) return;
    Weights p;
    p.pack(s);
    store_product(out + (u64)first * d_model + head * width, d_model, p, v, step, row, n, last, 0, width, width,
                  1.0f / total[0], 1.0f / total[1]);
}

extern "C" __global__ void __launch_bounds__(128, SHORT_BLOCKS)
self_attention_forward_short(const elem* qkv, const float* bias, const u32* starts, const u64* weight_starts, Mask mask,
                        elem* out, float* logs, int n_heads, int width, int step, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend_short<false>(qkv, bias, nullptr, starts, weight_starts, mask, out, logs, n_heads, width, step, scale);
}

extern "C" __global__ void __launch_bounds__(128, SHORT_BLOCKS)
self_attention_forward_short_biased(const elem* qkv, const float* bias, const float* biases, const u32* starts,
                               const u64* weight_starts, Mask mask, elem* out, float* logs, int n_heads, int width,
                               int step, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend_short<true>(qkv, bias, biases, starts, weight_starts, mask, out, logs, n_heads, width, step, scale);
}

// Two warps share 16 keys: each computes the scores of half of the queries, and half of the columns of every result. They
// exchange scores through shared memory. With `BIASED` the gradients of the biases replace them.
template <bool BIASED>
__device__ __forceinline__ void attend_backward_short(const elem* qkv, const float* bias, float* biases,
                                                      const u32* starts, const u64* weight_starts, Mask mask,
                                                      const elem* out, const elem* d_out, const float* logs, elem* d_qkv,
                                                      int n_heads, int width, int step, float scale) {
    extern __shared__ float4 aligned[];
    int n_rows = blockDim.x / 4, last = n_rows - 16, size = n_rows * step;
    elem *q = (elem*)aligned, *k = q + size, *v = k + size, *grad = v + n_rows * max(step, TILE_STRIDE);
    __shared__ float2 pairs[SHORT];
    float *along = (float*)pairs, *log_totals = along + SHORT;
    int sequence = blockIdx.x / n_heads, head = blockIdx.x % n_heads;
    int first = starts[sequence], n = starts[sequence + 1] - first;
    if (n <= 0) return;
    int d_model = n_heads * width, from_step = 3 * d_model;
    int row = threadIdx.x / 64 * 16, half = threadIdx.x / 32 % 2, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const elem* base = qkv + (u64)first * from_step + head * width;
    elem* d_base = d_qkv + (u64)first * from_step + head * width;
    const float* head_bias = bias + head * width;
    u64 own = (u64)first * d_model + head * width;
#pragma unroll 1
    for (int part = 0; part < 3; part++)
        begin_rows<8>(q + part * size, step, base + part * d_model, from_step, n, width);
    begin_rows<8>(grad, step, d_out + own, d_model, n, width);
    row_products(along, d_out + own, out + own, d_model, n, width);
    if (threadIdx.x < n && threadIdx.x < SHORT)
        log_totals[threadIdx.x] = logs[(u64)(first + threadIdx.x) * n_heads + head];
    wait_for_rows();
#pragma unroll 1
    for (int part = 0; part < 3; part++)
        finish_rows<8>(q + part * size, step, base + part * d_model, from_step, head_bias + part * d_model, n, width);
    finish_rows<8>(grad, step, d_out + own, d_model, nullptr, n, width);
    __syncthreads();
    float s[4][4] = {}, ds[4][4] = {};
    bool has_rows = row < n;
    if (has_rows) {
        rows_by_rows<2>(s, k + row * step, q, step, width, 2 * half, last);
        rows_by_rows<2>(ds, v + row * step, grad, step, width, 2 * half, last);
        u64 first_weight = weight_starts[sequence] * n_heads + (u64)head * n * n;
        u32 kept = kept_weights<4>(mask, first_weight + (u64)(32 * half) * n, row, 1, n);
        float keep = mask.bound ? mask.keep : 1.0f;
        // Columns from here on are past the end.
        int end = n - 2 * t - 32 * half;
#pragma unroll
        for (int b = 0; b < 4; b++) {
            int at = 32 * half + 8 * b + 2 * t;
            float2 log_total = *(const float2*)(log_totals + at), sums = *(const float2*)(along + at);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                bool is_real = 8 * b + e % 2 < end && row + g + e / 2 * 8 < n;
                float* own = biases + first_weight + (at + e % 2) * n + row + g + e / 2 * 8;
                if (BIASED && is_real) s[b][e] += *own * (1.0f / scale);
                float power = s[b][e] * (scale * LOG2_E) - (e % 2 ? log_total.y : log_total.x) * LOG2_E;
                float w = power_of_2(is_real ? power : -1e30f);
                float factor = kept >> (4 * b + e) & 1 ? keep : 0.0f;
                s[b][e] = w * factor;
                ds[b][e] = is_real ? w * (ds[b][e] * factor - (e % 2 ? sums.y : sums.x)) : 0.0f;
                if (BIASED && is_real) *own = ds[b][e];
            }
        }
    }
    // The weights reuse the memory of the values, the gradients of the scores that of the output gradient.
    __syncthreads();
    if (has_rows) store_weights(v, row, 32 * half, s);
    __syncthreads();
    int middle = (width + 31) / 32 * 16, col = half ? middle : 0, end = half ? width : min(middle, width);
    Weights p;
    if (has_rows) {
        p.load_from(v, row);
        store_product(d_base + 2 * d_model, from_step, p, grad, step, row, n, last, col, end, width, 1.0f, 1.0f);
    }
    __syncthreads();
    if (has_rows) store_weights(grad, row, 32 * half, ds);
    __syncthreads();
    if (!has_rows) return;
    p.load_from(grad, row);
    store_product(d_base + d_model, from_step, p, q, step, row, n, last, col, end, width, scale, scale);
    p.load_transposed(grad, row, n);
    store_product(d_base, from_step, p, k, step, row, n, last, col, end, width, scale, scale);
}

extern "C" __global__ void __launch_bounds__(256, SHORT_BLOCKS_BACK)
self_attention_backward_short(const elem* qkv, const float* bias, const u32* starts, const u64* weight_starts, Mask mask,
                         const elem* out, const elem* d_out, const float* logs, elem* d_qkv, int n_heads, int width,
                         int step, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend_backward_short<false>(qkv, bias, nullptr, starts, weight_starts, mask, out, d_out, logs, d_qkv, n_heads, width,
                                 step, scale);
}

extern "C" __global__ void __launch_bounds__(256, SHORT_BLOCKS_BACK)
self_attention_backward_short_biased(const elem* qkv, const float* bias, float* biases, const u32* starts,
                                const u64* weight_starts, Mask mask, const elem* out, const elem* d_out,
                                const float* logs, elem* d_qkv, int n_heads, int width, int step, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend_backward_short<true>(qkv, bias, biases, starts, weight_starts, mask, out, d_out, logs, d_qkv, n_heads, width,
                                step, scale);
}
