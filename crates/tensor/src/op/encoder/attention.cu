// Self-attention inside each sequence in float: one block for each sequence and head, attention weights not materialised.
//
// Tiles of 64 tokens are in shared memory. Thread (tx, ty) of 16 · 16 has rows ty + 16 · r of a tile; of scores it has
// columns tx + 16 · c, of rows of the head's width the four columns from 4 · tx and the four from 64 + 4 · tx.

#define TILE 64
#define P_STEP 68

// Loads rows of one part of the packed [T, 3D], with its bias, into a tile; zeros past the end.
__device__ __forceinline__ void load_tile(float* tile, int step, const elem* from, int from_step, const float* bias,
                                          int n_rows, int width, float factor) {
    int quads = step / 4;
    bool is_even = width % 4 == 0 && from_step % 4 == 0 && ((u64)from & (4 * sizeof(elem) - 1)) == 0;
    for (int at = threadIdx.x; at < TILE * quads; at += blockDim.x) {
        int row = at / quads, col = at % quads * 4;
        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row < n_rows && col < width) {
            const elem* p = from + (u64)row * from_step + col;
            if (is_even) {
                x = load4(p);
            } else {
                x.x = load(p);
                if (col + 1 < width) x.y = load(p + 1);
                if (col + 2 < width) x.z = load(p + 2);
                if (col + 3 < width) x.w = load(p + 3);
            }
            if (bias) {
                x.x += bias[col];
                if (col + 1 < width) x.y += bias[col + 1];
                if (col + 2 < width) x.z += bias[col + 2];
                if (col + 3 < width) x.w += bias[col + 3];
            }
        }
        *(float4*)(tile + row * step + col) = make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
    }
}

// s[r][c] = row (ty + 16 r) of a · row (tx + 16 c) of b.
__device__ __forceinline__ void rows_times_rows(const float* a, const float* b, int step, int tx, int ty,
                                                float (&s)[4][4]) {
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++) s[r][c] = 0.0f;
    for (int k = 0; k < step; k += 4) {
        float4 x[4], y[4];
#pragma unroll
        for (int r = 0; r < 4; r++) x[r] = *(const float4*)(a + (ty + 16 * r) * step + k);
#pragma unroll
        for (int c = 0; c < 4; c++) y[c] = *(const float4*)(b + (tx + 16 * c) * step + k);
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                s[r][c] += x[r].x * y[c].x + x[r].y * y[c].y + x[r].z * y[c].z + x[r].w * y[c].w;
    }
}

// o[r] += Σ_j p[ty + 16 r][j] · v[j], the thread's eight columns.
__device__ __forceinline__ void weights_times_rows(const float* p, const float* v, int step, int tx, int ty,
                                                   float4 (&o)[4][2]) {
    bool has0 = 4 * tx < step, has1 = 64 + 4 * tx < step;
    for (int j = 0; j < TILE; j += 4) {
        float4 w[4];
#pragma unroll
        for (int r = 0; r < 4; r++) w[r] = *(const float4*)(p + (ty + 16 * r) * P_STEP + j);
#pragma unroll
        for (int jj = 0; jj < 4; jj++) {
            const float* row = v + (j + jj) * step;
            float4 x0 = has0 ? *(const float4*)(row + 4 * tx) : make_float4(0, 0, 0, 0);
            float4 x1 = has1 ? *(const float4*)(row + 64 + 4 * tx) : make_float4(0, 0, 0, 0);
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float f = jj == 0 ? w[r].x : jj == 1 ? w[r].y : jj == 2 ? w[r].z : w[r].w;
                o[r][0].x += f * x0.x, o[r][0].y += f * x0.y, o[r][0].z += f * x0.z, o[r][0].w += f * x0.w;
                o[r][1].x += f * x1.x, o[r][1].y += f * x1.y, o[r][1].z += f * x1.z, o[r][1].w += f * x1.w;
            }
        }
    }
}

__device__ __forceinline__ float half_max(float x) {
    for (int step = 8; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, step));
    return x;
}

__device__ __forceinline__ float half_sum(float x) {
    for (int step = 8; step > 0; step >>= 1) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

// Columns 4 tx.. and 64 + 4 tx.. of a row of the head's width, (+)= x · factor.
__device__ __forceinline__ void store_row(elem* row, const float4 (&x)[2], int tx, int width, float factor, bool add) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int col = 64 * half + 4 * tx;
        float v[4] = {x[half].x, x[half].y, x[half].z, x[half].w};
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (col + i < width) store(row + col + i, v[i] * factor + (add ? load(row + col + i) : 0.0f));
    }
}

// With `BIASED` scores have a bias, at the position of their weight among all.
template <bool BIASED>
__device__ __forceinline__ void attend(const elem* qkv, const float* bias, const float* biases, const u32* starts,
                                       const u64* weight_starts, Mask mask, elem* out, float* logs, int n_heads, int width,
                                       int step, float scale) {
    extern __shared__ float shared[];
    float *q = shared, *k = q + TILE * step, *v = k + TILE * step, *p = v + TILE * step;
    int sequence = blockIdx.x / n_heads, head = blockIdx.x % n_heads;
    int first = starts[sequence], n = starts[sequence + 1] - first;
    int d_model = n_heads * width, from_step = 3 * d_model;
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const elem* base = qkv + (u64)first * from_step + head * width;
    const float* head_bias = bias + head * width;
    u64 first_weight = weight_starts[sequence] * n_heads + (u64)head * n * n;
    for (int i0 = 0; i0 < n; i0 += TILE) {
        __syncthreads();
        load_tile(q, step, base + (u64)i0 * from_step, from_step, head_bias, min(n - i0, TILE), width, scale);
        float4 o[4][2] = {};
        float top[4], total[4];
#pragma unroll
        for (int r = 0; r < 4; r++) top[r] = -1e30f, total[r] = 0.0f;
        for (int j0 = 0; j0 < n; j0 += TILE) {
            __syncthreads();
            const elem* at = base + (u64)j0 * from_step;
            load_tile(k, step, at + d_model, from_step, head_bias + d_model, min(n - j0, TILE), width, 1.0f);
            load_tile(v, step, at + 2 * d_model, from_step, head_bias + 2 * d_model, min(n - j0, TILE), width, 1.0f);
            __syncthreads();
            float s[4][4];
            rows_times_rows(q, k, step, tx, ty, s);
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float largest = top[r];
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    if (j0 + tx + 16 * c >= n) s[r][c] = -1e30f;
                    else if (BIASED && i0 + ty + 16 * r < n)
                        s[r][c] += biases[first_weight + (u64)(i0 + ty + 16 * r) * n + j0 + tx + 16 * c];
                    largest = fmaxf(largest, s[r][c]);
                }
                largest = half_max(largest);
                float shrink = expf(top[r] - largest), sum = 0.0f;
                top[r] = largest;
                int i = i0 + ty + 16 * r;
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    int j = j0 + tx + 16 * c;
                    float w = j < n ? expf(s[r][c] - largest) : 0.0f;
                    sum += w;
                    if (mask.bound) w *= mask_at(mask, first_weight + (u64)i * n + j);
                    p[(ty + 16 * r) * P_STEP + tx + 16 * c] = w;
                }
                total[r] = total[r] * shrink + half_sum(sum);
#pragma unroll
                for (int h = 0; h < 2; h++)
                    o[r][h] = make_float4(o[r][h].x * shrink, o[r][h].y * shrink, o[r][h].z * shrink,
                                          o[r][h].w * shrink);
            }
            __syncthreads();
            weights_times_rows(p, v, step, tx, ty, o);
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            int i = i0 + ty + 16 * r;
            if (i >= n) continue;
            store_row(out + (u64)(first + i) * d_model + head * width, o[r], tx, width, 1.0f / total[r], false);
            if (tx == 0) logs[(u64)(first + i) * n_heads + head] = top[r] + logf(total[r]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
self_attention_forward(const elem* qkv, const float* bias, const u32* starts, const u64* weight_starts, Mask mask, elem* out,
                  float* logs, int n_heads, int width, int step, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend<false>(qkv, bias, nullptr, starts, weight_starts, mask, out, logs, n_heads, width, step, scale);
}

extern "C" __global__ void __launch_bounds__(256)
self_attention_forward_biased(const elem* qkv, const float* bias, const float* biases, const u32* starts,
                         const u64* weight_starts, Mask mask, elem* out, float* logs, int n_heads, int width, int step,
                         float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend<true>(qkv, bias, biases, starts, weight_starts, mask, out, logs, n_heads, width, step, scale);
}

// The gradient of qkv. The outer loop is over tiles of keys and values; this block alone accumulates the gradient of the
// queries, in order. With `BIASED` the gradients of the biases replace them.
template <bool BIASED>
__device__ __forceinline__ void attend_backward(const elem* qkv, const float* bias, float* biases, const u32* starts,
                                                const u64* weight_starts, Mask mask, const elem* out, const elem* d_out,
                                                const float* logs, elem* d_qkv, int n_heads, int width, int step,
                                                float scale) {
    extern __shared__ float shared[];
    float *q = shared, *k = q + TILE * step, *v = k + TILE * step, *g = v + TILE * step, *p = g + TILE * step;
    float* along = p + TILE * P_STEP;
    int sequence = blockIdx.x / n_heads, head = blockIdx.x % n_heads;
    int first = starts[sequence], n = starts[sequence + 1] - first;
    int d_model = n_heads * width, from_step = 3 * d_model;
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const elem* base = qkv + (u64)first * from_step + head * width;
    elem* d_base = d_qkv + (u64)first * from_step + head * width;
    const float* head_bias = bias + head * width;
    u64 first_weight = weight_starts[sequence] * n_heads + (u64)head * n * n;
    for (int j0 = 0; j0 < n; j0 += TILE) {
        __syncthreads();
        const elem* at = base + (u64)j0 * from_step;
        load_tile(k, step, at + d_model, from_step, head_bias + d_model, min(n - j0, TILE), width, 1.0f);
        load_tile(v, step, at + 2 * d_model, from_step, head_bias + 2 * d_model, min(n - j0, TILE), width, 1.0f);
        float4 dk[4][2] = {}, dv[4][2] = {};
        for (int i0 = 0; i0 < n; i0 += TILE) {
            __syncthreads();
            int rows = min(n - i0, TILE);
            load_tile(q, step, base + (u64)i0 * from_step, from_step, head_bias, rows, width, scale);
            u64 row = (u64)(first + i0) * d_model + head * width;
            load_tile(g, step, d_out + row, d_model, nullptr, rows, width, 1.0f);
            // Σ d_out · out of each row, by four threads.
            int at_row = threadIdx.x / 4;
            float sum = 0.0f;
            if (at_row < rows)
                for (int col = threadIdx.x % 4; col < width; col += 4) {
                    u64 place = row + (u64)at_row * d_model + col;
                    sum += load(d_out + place) * load(out + place);
                }
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
            if (threadIdx.x % 4 == 0) along[at_row] = sum;
            __syncthreads();
            float s[4][4], dw[4][4];
            rows_times_rows(q, k, step, tx, ty, s);
            rows_times_rows(g, v, step, tx, ty, dw);
            // Transposed, so that the products below read rows: p[j][i].
#pragma unroll
            for (int r = 0; r < 4; r++) {
                int i = i0 + ty + 16 * r;
                float log_total = i < n ? logs[(u64)(first + i) * n_heads + head] : 0.0f;
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    int j = j0 + tx + 16 * c;
                    bool has_bias = BIASED && i < n && j < n;
                    u64 at = first_weight + (u64)i * n + j;
                    if (has_bias) s[r][c] += biases[at];
                    float w = i < n && j < n ? expf(s[r][c] - log_total) : 0.0f;
                    float factor = mask.bound ? mask_at(mask, at) : 1.0f;
                    p[(tx + 16 * c) * P_STEP + ty + 16 * r] = w * factor;
                    s[r][c] = w * (dw[r][c] * factor - along[ty + 16 * r]);
                    if (has_bias) biases[at] = s[r][c];
                }
            }
            __syncthreads();
            weights_times_rows(p, g, step, tx, ty, dv);
            __syncthreads();
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < 4; c++) p[(tx + 16 * c) * P_STEP + ty + 16 * r] = s[r][c];
            __syncthreads();
            weights_times_rows(p, q, step, tx, ty, dk);
            __syncthreads();
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < 4; c++) p[(ty + 16 * r) * P_STEP + tx + 16 * c] = s[r][c];
            __syncthreads();
            float4 dq[4][2] = {};
            weights_times_rows(p, k, step, tx, ty, dq);
#pragma unroll
            for (int r = 0; r < 4; r++) {
                int i = i0 + ty + 16 * r;
                if (i < n) store_row(d_base + (u64)i * from_step, dq[r], tx, width, scale, j0 > 0);
            }
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            int j = j0 + ty + 16 * r;
            if (j >= n) continue;
            // The queries in shared memory are scaled already.
            store_row(d_base + (u64)j * from_step + d_model, dk[r], tx, width, 1.0f, false);
            store_row(d_base + (u64)j * from_step + 2 * d_model, dv[r], tx, width, 1.0f, false);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
self_attention_backward(const elem* qkv, const float* bias, const u32* starts, const u64* weight_starts, Mask mask,
                   const elem* out, const elem* d_out, const float* logs, elem* d_qkv, int n_heads, int width, int step,
                   float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend_backward<false>(qkv, bias, nullptr, starts, weight_starts, mask, out, d_out, logs, d_qkv, n_heads, width, step,
                           scale);
}

extern "C" __global__ void __launch_bounds__(256)
self_attention_backward_biased(const elem* qkv, const float* bias, float* biases, const u32* starts,
                          const u64* weight_starts, Mask mask, const elem* out, const elem* d_out, const float* logs,
                          elem* d_qkv, int n_heads, int width, int step, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend_backward<true>(qkv, bias, biases, starts, weight_starts, mask, out, d_out, logs, d_qkv, n_heads, width, step,
                          scale);
}
