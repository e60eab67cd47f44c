// Self-attention on tensor cores in TF32: a block has 8 warps, each with 16 rows of a result and half of its columns.
// Lane 4 · g + t of a warp holds rows g and g + 8, columns 2 t and 2 t + 1 of every block of 8.

// c += A · B for 16 rows from `row` and N blocks of 8 columns from `col`, over k < depth. A is transposed if stored as
// [k][row], B if stored as [col][k]. Blocks from `end` on are left out.
template <int N, bool A_TRANSPOSED, bool B_TRANSPOSED>
__device__ __forceinline__ void block_product(float (&c)[N][4], const float* a, int a_step, const float* b, int b_step,
                                              int row, int col, int end, int depth) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll 1
    for (int k = 0; k < depth; k += 8) {
        float x[4];
        if (A_TRANSPOSED) {
            const float* p = a + (k + t) * a_step + row + g;
            x[0] = p[0], x[1] = p[8], x[2] = p[4 * a_step], x[3] = p[4 * a_step + 8];
        } else {
            const float* p = a + (row + g) * a_step + k + t;
            x[0] = p[0], x[1] = p[8 * a_step], x[2] = p[4], x[3] = p[8 * a_step + 4];
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            if (col + 8 * n >= end) continue;
            if (B_TRANSPOSED) {
                const float* p = b + (col + 8 * n + g) * b_step + k + t;
                mma(c[n], x, p[0], p[4]);
            } else {
                const float* p = b + (k + t) * b_step + col + 8 * n + g;
                mma(c[n], x, p[0], p[4 * b_step]);
            }
        }
    }
}

__device__ __forceinline__ void load_tile_tf32(float* tile, int step, const elem* from, int from_step,
                                               const float* bias, int n_rows, int width, float factor) {
    int quads = step / 4;
    bool is_even = width % 4 == 0 && from_step % 4 == 0 && ((u64)from & (4 * sizeof(elem) - 1)) == 0;
#pragma unroll 2
    for (int at = threadIdx.x; at < TILE * quads; at += 256) {
        int row = at / quads, col = at % quads * 4;
        float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (row < n_rows && col < width) {
            const elem* p = from + (u64)row * from_step + col;
            if (is_even) {
                float4 y = load4(p);
                x[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;
            } else {
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (col + i < width) x[i] = load(p + i);
            }
            if (bias) {
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (col + i < width) x[i] += bias[col + i];
            }
        }
        *(float4*)(tile + row * step + col) =
            make_float4(tf32(x[0] * factor), tf32(x[1] * factor), tf32(x[2] * factor), tf32(x[3] * factor));
    }
}

// Writes, or adds, the warp's part of a result of the head's width to rows of `to`.
template <int N>
__device__ __forceinline__ void store_block(elem* to, int to_step, const float (&c)[N][4], int row, int col, int end,
                                            int n_rows, int width, const float* factors, float factor, bool add) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int r = row + g + i / 2 * 8, at = col + 8 * n + 2 * t + i % 2;
            if (col + 8 * n >= end || r >= n_rows || at >= width) continue;
            elem* p = to + (u64)r * to_step + at;
            float value = c[n][i] * (factors ? 1.0f / factors[r] : factor);
            store(p, add ? value + load(p) : value);
        }
}

// The first column and the end of a warp's half of a result of the head's width.
__device__ __forceinline__ void half_width(int width, int half, int& col, int& end) {
    int blocks = (width + 7) / 8, left = (blocks + 1) / 2;
    col = half ? 8 * left : 0;
    end = half ? 8 * blocks : 8 * left;
}

template <bool BIASED>
__device__ __forceinline__ void attend_mma(const elem* qkv, const float* bias, const float* biases, const u32* starts,
                                           const u64* weight_starts, Mask mask, elem* out, float* logs, int n_heads,
                                           int width, int step, float scale) {
    extern __shared__ float shared[];
    float *q = shared, *k = q + TILE * step, *v = k + TILE * step;
    // The weights reuse the memory of the keys.
    float *p = k, *top = v + TILE * step, *total = top + TILE, *shrink = total + TILE;
    int sequence = blockIdx.x / n_heads, head = blockIdx.x % n_heads;
    int first = starts[sequence], n = starts[sequence + 1] - first;
    int d_model = n_heads * width, from_step = 3 * d_model, depth = step - 4;
    int warp = threadIdx.x / 32, row = warp / 2 * 16, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    int col, end;
    half_width(width, warp % 2, col, end);
    const elem* base = qkv + (u64)first * from_step + head * width;
    const float* head_bias = bias + head * width;
    u64 first_weight = weight_starts[sequence] * n_heads + (u64)head * n * n;
    for (int i0 = 0; i0 < n; i0 += TILE) {
        __syncthreads();
        load_tile_tf32(q, step, base + (u64)i0 * from_step, from_step, head_bias, min(n - i0, TILE), width, scale);
        if (threadIdx.x < TILE) top[threadIdx.x] = -1e30f, total[threadIdx.x] = 0.0f;
        float o[8][4] = {};
        for (int j0 = 0; j0 < n; j0 += TILE) {
            __syncthreads();
            const elem* at = base + (u64)j0 * from_step;
            int cols = min(n - j0, TILE);
            load_tile_tf32(k, step, at + d_model, from_step, head_bias + d_model, cols, width, 1.0f);
            load_tile_tf32(v, step, at + 2 * d_model, from_step, head_bias + 2 * d_model, cols, width, 1.0f);
            __syncthreads();
            float s[4][4] = {};
            block_product<4, false, true>(s, q, step, k, step, row, warp % 2 * 32, TILE, depth);
            __syncthreads();
#pragma unroll
            for (int b = 0; b < 4; b++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    p[(row + g + i / 2 * 8) * P_STEP + warp % 2 * 32 + 8 * b + 2 * t + i % 2] = s[b][i];
            __syncthreads();
            // Four threads for each row, each with every fourth column.
            int r = threadIdx.x / 4, lane = threadIdx.x % 4;
            float values[16], largest = top[r], sum = 0.0f;
#pragma unroll
            for (int c = 0; c < 16; c++) {
                values[c] = p[r * P_STEP + 4 * c + lane];
                if (BIASED && i0 + r < n && 4 * c + lane < cols)
                    values[c] += biases[first_weight + (u64)(i0 + r) * n + j0 + 4 * c + lane];
                if (4 * c + lane < cols) largest = fmaxf(largest, values[c]);
            }
            largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 2));
#pragma unroll
            for (int c = 0; c < 16; c++) {
                int j = 4 * c + lane;
                float w = j < cols ? __expf(values[c] - largest) : 0.0f;
                sum += w;
                if (mask.bound) w *= mask_at(mask, first_weight + (u64)(i0 + r) * n + j0 + j);
                p[r * P_STEP + j] = tf32(w);
            }
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
            if (lane == 0) {
                shrink[r] = __expf(top[r] - largest);
                total[r] = total[r] * shrink[r] + sum;
                top[r] = largest;
            }
            __syncthreads();
            if (j0 > 0) {
                float low = shrink[row + g], high = shrink[row + g + 8];
#pragma unroll
                for (int b = 0; b < 8; b++) o[b][0] *= low, o[b][1] *= low, o[b][2] *= high, o[b][3] *= high;
            }
            block_product<8, false, false>(o, p, P_STEP, v, step, row, col, end, TILE);
        }
        int rows = min(n - i0, TILE);
        store_block<8>(out + (u64)(first + i0) * d_model + head * width, d_model, o, row, col, end, rows, width, total,
                       1.0f, false);
        if (threadIdx.x < rows)
            logs[(u64)(first + i0 + threadIdx.x) * n_heads + head] = top[threadIdx.x] + logf(total[threadIdx.x]);
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
self_attention_forward_mma(const elem* qkv, const float* bias, const u32* starts, const u64* weight_starts, Mask mask,
                      elem* out, float* logs, int n_heads, int width, int step, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend_mma<false>(qkv, bias, nullptr, starts, weight_starts, mask, out, logs, n_heads, width, step, scale);
}

extern "C" __global__ void __launch_bounds__(256, 2)
self_attention_forward_mma_biased(const elem* qkv, const float* bias, const float* biases, const u32* starts,
                             const u64* weight_starts, Mask mask, elem* out, float* logs, int n_heads, int width, int step,
                             float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend_mma<true>(qkv, bias, biases, starts, weight_starts, mask, out, logs, n_heads, width, step, scale);
}

template <bool BIASED>
__device__ __forceinline__ void attend_backward_mma(const elem* qkv, const float* bias, float* biases, const u32* starts,
                                                    const u64* weight_starts, Mask mask, const elem* out,
                                                    const elem* d_out, const float* logs, elem* d_qkv, int n_heads,
                                                    int width, int step, float scale) {
    extern __shared__ float shared[];
    float *q = shared, *k = q + TILE * step, *v = k + TILE * step, *grad = v + TILE * step;
    // The weights reuse the memory of the values.
    float *p = v, *along = grad + TILE * step;
    int sequence = blockIdx.x / n_heads, head = blockIdx.x % n_heads;
    int first = starts[sequence], n = starts[sequence + 1] - first;
    int d_model = n_heads * width, from_step = 3 * d_model, depth = step - 4;
    int warp = threadIdx.x / 32, row = warp / 2 * 16, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    int col, end;
    half_width(width, warp % 2, col, end);
    const elem* base = qkv + (u64)first * from_step + head * width;
    elem* d_base = d_qkv + (u64)first * from_step + head * width;
    const float* head_bias = bias + head * width;
    u64 first_weight = weight_starts[sequence] * n_heads + (u64)head * n * n;
    for (int j0 = 0; j0 < n; j0 += TILE) {
        const elem* at_key = base + (u64)j0 * from_step;
        int cols = min(n - j0, TILE);
        __syncthreads();
        load_tile_tf32(k, step, at_key + d_model, from_step, head_bias + d_model, cols, width, 1.0f);
        for (int i0 = 0; i0 < n; i0 += TILE) {
            __syncthreads();
            int rows = min(n - i0, TILE);
            u64 first_row = (u64)(first + i0) * d_model + head * width;
            load_tile_tf32(v, step, at_key + 2 * d_model, from_step, head_bias + 2 * d_model, cols, width, 1.0f);
            load_tile_tf32(q, step, base + (u64)i0 * from_step, from_step, head_bias, rows, width, scale);
            load_tile_tf32(grad, step, d_out + first_row, d_model, nullptr, rows, width, 1.0f);
            // Σ d_out · out of each row, by four threads.
            int at_row = threadIdx.x / 4;
            float sum = 0.0f;
            if (at_row < rows) {
#pragma unroll 4
                for (int c = threadIdx.x % 4; c < width; c += 4) {
                    u64 place = first_row + (u64)at_row * d_model + c;
                    sum += load(d_out + place) * load(out + place);
                }
            }
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
            if (threadIdx.x % 4 == 0) along[at_row] = sum;
            __syncthreads();
            float s[4][4] = {}, dw[4][4] = {};
            block_product<4, false, true>(s, q, step, k, step, row, warp % 2 * 32, TILE, depth);
            block_product<4, false, true>(dw, grad, step, v, step, row, warp % 2 * 32, TILE, depth);
            __syncthreads();
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int r = row + g + 8 * half;
                float log_total = r < rows ? logs[(u64)(first + i0 + r) * n_heads + head] : 0.0f;
#pragma unroll
                for (int b = 0; b < 4; b++)
#pragma unroll
                    for (int i = 2 * half; i < 2 * half + 2; i++) {
                        int c = warp % 2 * 32 + 8 * b + 2 * t + i % 2;
                        bool has_bias = BIASED && r < rows && c < cols;
                        u64 at = first_weight + (u64)(i0 + r) * n + j0 + c;
                        if (has_bias) s[b][i] += biases[at];
                        float w = r < rows && c < cols ? __expf(s[b][i] - log_total) : 0.0f;
                        float factor = mask.bound ? mask_at(mask, at) : 1.0f;
                        p[r * P_STEP + c] = tf32(w * factor);
                        float ds = w * (dw[b][i] * factor - along[r]);
                        if (has_bias) biases[at] = ds;
                        s[b][i] = tf32(ds);
                    }
            }
            __syncthreads();
            {
                float dv[8][4] = {};
                block_product<8, true, false>(dv, p, P_STEP, grad, step, row, col, end, TILE);
                store_block<8>(d_base + (u64)j0 * from_step + 2 * d_model, from_step, dv, row, col, end, cols, width,
                               nullptr, 1.0f, i0 > 0);
            }
            __syncthreads();
#pragma unroll
            for (int b = 0; b < 4; b++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    p[(row + g + i / 2 * 8) * P_STEP + warp % 2 * 32 + 8 * b + 2 * t + i % 2] = s[b][i];
            __syncthreads();
            {
                // The queries in shared memory are scaled already.
                float dk[8][4] = {};
                block_product<8, true, false>(dk, p, P_STEP, q, step, row, col, end, TILE);
                store_block<8>(d_base + (u64)j0 * from_step + d_model, from_step, dk, row, col, end, cols, width,
                               nullptr, 1.0f, i0 > 0);
            }
            {
                float dq[8][4] = {};
                block_product<8, false, false>(dq, p, P_STEP, k, step, row, col, end, TILE);
                store_block<8>(d_base + (u64)i0 * from_step, from_step, dq, row, col, end, rows, width, nullptr, scale,
                               j0 > 0);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
self_attention_backward_mma(const elem* qkv, const float* bias, const u32* starts, const u64* weight_starts, Mask mask,
                       const elem* out, const elem* d_out, const float* logs, elem* d_qkv, int n_heads, int width,
                       int step, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend_backward_mma<false>(qkv, bias, nullptr, starts, weight_starts, mask, out, d_out, logs, d_qkv, n_heads, width,
                               step, scale);
}

extern "C" __global__ void __launch_bounds__(256, 2)
self_attention_backward_mma_biased(const elem* qkv, const float* bias, float* biases, const u32* starts,
                              const u64* weight_starts, Mask mask, const elem* out, const elem* d_out, const float* logs,
                              elem* d_qkv, int n_heads, int width, int step, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    attend_backward_mma<true>(qkv, bias, biases, starts, weight_starts, mask, out, d_out, logs, d_qkv, n_heads, width,
                              step, scale);
}
