// Attention over at most 64 tokens on the matrix units: one block a sequence and head, one warp 16 rows of it.
//
// A warp's scores never leave its registers. On the way there its rows are queries, so that a softmax is a matter of
// four lanes; on the way back they are keys, so that the gradients of keys and values need no exchange and only that of
// the queries reads another warp's numbers. Tiles hold what products are made of; their rows are an odd number of 16
// bytes apart, so that neighbours lie in different banks.

#define SHORT 64

// The warp's 16 rows of a tile, a lane four columns; with their bias, zeros behind the end. Where `other` is given, also
// the sum of each row's products with those of `other`.
__device__ __forceinline__ void load_rows(elem* tile, int step, const elem* from, int from_step, const float* bias,
                                          int n_rows, int width, const elem* other, float* along) {
    int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16, col = 4 * lane;
    bool is_even = width % 4 == 0 && from_step % 4 == 0 && ((u64)from & (4 * sizeof(elem) - 1)) == 0;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 b = bias ? quad(bias, col, width, false) : zero;
    for (int begin = first; begin < first + 16; begin += 8) {
        float4 x[8], y[8];
        if (is_even) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                bool is_real = begin + i < n_rows && col < width;
                x[i] = is_real ? load4(from + (u64)(begin + i) * from_step + col) : zero;
                if (other) y[i] = is_real ? load4(other + (u64)(begin + i) * from_step + col) : zero;
            }
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                int end = begin + i < n_rows ? width : 0;
                x[i] = quad(from + (u64)(begin + i) * from_step, col, end, false);
                if (other) y[i] = quad(other + (u64)(begin + i) * from_step, col, end, false);
            }
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int row = begin + i;
            float4 z = x[i];
            if (row < n_rows) grow(z, b);
            if (col < step) store_rounded(tile + row * step + col, z);
            if (other) {
                float sum = warp_sum(x[i].x * y[i].x + x[i].y * y[i].y + x[i].z * y[i].z + x[i].w * y[i].w);
                if (lane == 0) along[row] = sum;
            }
        }
    }
}

// Two neighbouring values of a row.
__device__ __forceinline__ void store_pair(elem* row, int col, int width, bool is_even, float x, float y) {
    if (is_even) {
        if (col < width) store2(row + col, x, y);
    } else {
        if (col < width) store(row + col, x);
        if (col + 1 < width) store(row + col + 1, y);
    }
}

// The warp's rows of weights · tile, each times its factor, into rows of `to`.
__device__ __forceinline__ void leave_product(elem* to, int to_step, const Weights& weights, const elem* tile, int step,
                                              int first, int n_rows, int width, float low, float high) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    bool is_even = width % 2 == 0 && to_step % 2 == 0 && ((u64)to & (2 * sizeof(elem) - 1)) == 0;
    elem *p = to + (u64)(first + g) * to_step, *q = p + 8 * (u64)to_step;
    bool has_low = first + g < n_rows, has_high = first + g + 8 < n_rows;
#pragma unroll 2
    for (int col = 0; col < width; col += 16) {
        float c[2][4] = {};
        weights.times(c, tile + col, step, n_rows);
#pragma unroll
        for (int n = 0; n < 2; n++) {
            int at = col + 8 * n + 2 * t;
            if (has_low) store_pair(p, at, width, is_even, c[n][0] * low, c[n][1] * low);
            if (has_high) store_pair(q, at, width, is_even, c[n][2] * high, c[n][3] * high);
        }
    }
}

extern "C" __global__ void __launch_bounds__(128, SHORT_BLOCKS)
attention_forward_short(const elem* qkv, const float* bias, const u32* starts, const u64* weight_starts, Mask mask,
                        elem* out, float* logs, int n_heads, int width, int step, float scale) {
    extern __shared__ float4 aligned[];
    int size = blockDim.x / 2 * step;
    elem *q = (elem*)aligned, *k = q + size, *v = SHORT_TILES == 3 ? k + size : q;
    int sequence = blockIdx.x / n_heads, head = blockIdx.x % n_heads;
    int first = starts[sequence], n = starts[sequence + 1] - first;
    int d_model = n_heads * width, from_step = 3 * d_model;
    int row = threadIdx.x / 32 * 16, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const elem* base = qkv + (u64)first * from_step + head * width;
    const float* head_bias = bias + head * width;
    load_rows(q, step, base, from_step, head_bias, n, width, nullptr, nullptr);
    load_rows(k, step, base + d_model, from_step, head_bias + d_model, n, width, nullptr, nullptr);
    if (v != q) load_rows(v, step, base + 2 * d_model, from_step, head_bias + 2 * d_model, n, width, nullptr, nullptr);
    __syncthreads();
    float s[8][4] = {}, top[2] = {-1e30f, -1e30f}, total[2] = {0.0f, 0.0f};
    if (row < n) rows_by_rows(s, q + row * step, k, step, n, width);
    if (v == q) {
        __syncthreads();
        load_rows(v, step, base + 2 * d_model, from_step, head_bias + 2 * d_model, n, width, nullptr, nullptr);
        __syncthreads();
    }
    if (row >= n) return;
#pragma unroll
    for (int b = 0; b < 8; b++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (8 * b + 2 * t + e % 2 < n) top[e / 2] = fmaxf(top[e / 2], s[b][e]);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        top[half] = fmaxf(top[half], __shfl_xor_sync(0xFFFFFFFFu, top[half], 1));
        top[half] = fmaxf(top[half], __shfl_xor_sync(0xFFFFFFFFu, top[half], 2));
    }
    u64 first_weight = weight_starts[sequence] * n_heads + (u64)head * n * n;
#pragma unroll
    for (int b = 0; b < 8; b++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int i = row + g + e / 2 * 8, j = 8 * b + 2 * t + e % 2;
            float w = j < n ? __expf((s[b][e] - top[e / 2]) * scale) : 0.0f;
            total[e / 2] += w;
            if (mask.bound) w *= mask_at(mask, first_weight + (u64)i * n + j);
            s[b][e] = w;
        }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        total[half] += __shfl_xor_sync(0xFFFFFFFFu, total[half], 1);
        total[half] += __shfl_xor_sync(0xFFFFFFFFu, total[half], 2);
        int i = row + g + 8 * half;
        if (t == 0 && i < n) logs[(u64)(first + i) * n_heads + head] = top[half] * scale + logf(total[half]);
    }
    Weights p;
    p.pack(s);
    leave_product(out + (u64)first * d_model + head * width, d_model, p, v, step, row, n, width, 1.0f / total[0],
                  1.0f / total[1]);
}

extern "C" __global__ void __launch_bounds__(128, SHORT_BLOCKS_BACK)
attention_backward_short(const elem* qkv, const float* bias, const u32* starts, const u64* weight_starts, Mask mask,
                         const elem* out, const elem* d_out, const float* logs, elem* d_qkv, int n_heads, int width,
                         int step, float scale) {
    extern __shared__ float4 aligned[];
    int size = blockDim.x / 2 * step;
    elem *q = (elem*)aligned, *k = q + size, *v = k + size, *grad = v + size;
    // The gradients of the scores take the place of those of the result.
    elem* turned = grad;
    __shared__ float along[SHORT], log_totals[SHORT];
    int sequence = blockIdx.x / n_heads, head = blockIdx.x % n_heads;
    int first = starts[sequence], n = starts[sequence + 1] - first;
    int d_model = n_heads * width, from_step = 3 * d_model;
    int row = threadIdx.x / 32 * 16, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const elem* base = qkv + (u64)first * from_step + head * width;
    elem* d_base = d_qkv + (u64)first * from_step + head * width;
    const float* head_bias = bias + head * width;
    u64 own = (u64)first * d_model + head * width;
    load_rows(q, step, base, from_step, head_bias, n, width, nullptr, nullptr);
    load_rows(k, step, base + d_model, from_step, head_bias + d_model, n, width, nullptr, nullptr);
    load_rows(v, step, base + 2 * d_model, from_step, head_bias + 2 * d_model, n, width, nullptr, nullptr);
    load_rows(grad, step, d_out + own, d_model, nullptr, n, width, out + own, along);
    if (threadIdx.x < n && threadIdx.x < SHORT)
        log_totals[threadIdx.x] = logs[(u64)(first + threadIdx.x) * n_heads + head];
    __syncthreads();
    Weights p;
    if (row < n) {
        float s[8][4] = {}, ds[8][4] = {};
        rows_by_rows(s, k + row * step, q, step, n, width);
        rows_by_rows(ds, v + row * step, grad, step, n, width);
        u64 first_weight = weight_starts[sequence] * n_heads + (u64)head * n * n;
#pragma unroll
        for (int b = 0; b < 8; b++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int j = row + g + e / 2 * 8, i = 8 * b + 2 * t + e % 2;
                bool is_real = i < n && j < n;
                float w = is_real ? __expf(s[b][e] * scale - log_totals[i]) : 0.0f;
                float factor = mask.bound && is_real ? mask_at(mask, first_weight + (u64)i * n + j) : 1.0f;
                s[b][e] = w * factor;
                ds[b][e] = is_real ? w * (ds[b][e] * factor - along[i]) : 0.0f;
            }
        p.pack(s);
        leave_product(d_base + 2 * d_model, from_step, p, grad, step, row, n, width, 1.0f, 1.0f);
        p.pack(ds);
        leave_product(d_base + d_model, from_step, p, q, step, row, n, width, scale, scale);
    }
    __syncthreads();
    if (row < n) p.leave(turned, row);
    __syncthreads();
    if (row >= n) return;
    p.take_turned(turned, row, n);
    leave_product(d_base, from_step, p, k, step, row, n, width, scale, scale);
}
