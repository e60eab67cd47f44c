// Cross-attention for groups of many queries: a block has one head of 32 queries, or of 32 keys in the backward pass, with
// their operands in shared memory. A thread has four of the 32 rows, and up to four columns at once, 16 apart.
//
// Rows in shared memory are an odd number of values apart, which avoids bank conflicts.

#define CROSS_TILE 32
#define CROSS_TILE_THREADS 128

// Loads `n` rows of `width` values into shared memory, with zeros up to `rows` rows.
__device__ __forceinline__ void load_rows(float* to, int pitch, const float* from, int step, int n, int rows, int width) {
    for (int row = threadIdx.x / 32; row < rows; row += CROSS_TILE_THREADS / 32) {
        for (int col = threadIdx.x % 32; col < width; col += 32) {
            to[row * pitch + col] = row < n ? from[(u64)row * step + col] : 0.0f;
        }
    }
}

// scores[i][j] = scale · row i of the 32 of `own` · row j of the `n` of `all`.
__device__ __forceinline__ void tile_dots(const float* own, const float* all, int pitch, int n, int width, float scale,
                                          float* scores, int scores_pitch) {
    int row = threadIdx.x / 16 * 4;
    for (int j0 = threadIdx.x % 16; j0 < n; j0 += 64) {
        const float* at[4];
        float sums[4][4] = {};
#pragma unroll
        for (int c = 0; c < 4; c++) at[c] = all + min(j0 + 16 * c, n - 1) * pitch;
        for (int col = 0; col < width; col++) {
            float x[4];
#pragma unroll
            for (int r = 0; r < 4; r++) x[r] = own[(row + r) * pitch + col];
#pragma unroll
            for (int c = 0; c < 4; c++) {
                float y = at[c][col];
#pragma unroll
                for (int r = 0; r < 4; r++) sums[r][c] += x[r] * y;
            }
        }
#pragma unroll
        for (int c = 0; c < 4; c++) {
            if (j0 + 16 * c >= n) continue;
#pragma unroll
            for (int r = 0; r < 4; r++) scores[(row + r) * scores_pitch + j0 + 16 * c] = scale * sums[r][c];
        }
    }
}

// Row i of at most 32 of `to` (+)= scale · Σ_j weights[i · i_step + j · j_step] · row j of the `n` of `all`.
__device__ __forceinline__ void tile_weighted_sum(const float* weights, int i_step, int j_step, const float* all, int pitch, int n,
                                         int width, float scale, float* to, int to_step, int n_rows, int add) {
    int row = threadIdx.x / 16 * 4;
    if (row >= n_rows) return;
    for (int col0 = threadIdx.x % 16; col0 < width; col0 += 64) {
        int cols[4];
        float sums[4][4] = {};
#pragma unroll
        for (int c = 0; c < 4; c++) cols[c] = min(col0 + 16 * c, width - 1);
        for (int j = 0; j < n; j++) {
            float x[4];
#pragma unroll
            for (int r = 0; r < 4; r++) x[r] = weights[(row + r) * i_step + j * j_step];
#pragma unroll
            for (int c = 0; c < 4; c++) {
                float y = all[j * pitch + cols[c]];
#pragma unroll
                for (int r = 0; r < 4; r++) sums[r][c] += x[r] * y;
            }
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (row + r >= n_rows) continue;
#pragma unroll
            for (int c = 0; c < 4; c++) {
                int col = col0 + 16 * c;
                if (col < width) put_value(to, (u64)(row + r) * to_step + col, scale * sums[r][c], add);
            }
        }
    }
}

// The shared memory of a block.
struct Tiles {
    float *own, *scores, *all;
    int pitch, scores_pitch;
};

__device__ __forceinline__ Tiles tiles_of(float* shared, int n, int d_key, int d_value) {
    int pitch = max(d_key, d_value) | 1, scores_pitch = n | 1;
    float* scores = shared + CROSS_TILE * pitch;
    return {shared, scores, scores + CROSS_TILE * scores_pitch, pitch, scores_pitch};
}

extern "C" __global__ void __launch_bounds__(CROSS_TILE_THREADS)
cross_attention_tile_forward(const float* q, const float* k, const float* v, const Group* groups, Mask mask, float* weights,
                    float* out, Strides steps, int n_heads, int d_key, int d_value, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    extern __shared__ float4 aligned[];
    Group group = groups[blockIdx.x];
    int head = blockIdx.y % n_heads, first = blockIdx.y / n_heads * CROSS_TILE, lane = threadIdx.x % 32;
    int n = group.n_keys, n_own = min(CROSS_TILE, group.n_queries - first);
    if (n_own <= 0) return;
    Tiles tiles = tiles_of((float*)aligned, n, d_key, d_value);
    load_rows(tiles.own, tiles.pitch, q + (u64)(group.first_query + first) * steps.q + head * d_key, steps.q, n_own, CROSS_TILE,
          d_key);
    load_rows(tiles.all, tiles.pitch, k + (u64)group.first_key * steps.k + head * d_key, steps.k, n, n, d_key);
    __syncthreads();
    tile_dots(tiles.own, tiles.all, tiles.pitch, n, d_key, scale, tiles.scores, tiles.scores_pitch);
    __syncthreads();
    load_rows(tiles.all, tiles.pitch, v + (u64)group.first_key * steps.v + head * d_value, steps.v, n, n, d_value);
    for (int row = threadIdx.x / 32; row < n_own; row += CROSS_TILE_THREADS / 32) {
        float* scores = tiles.scores + row * tiles.scores_pitch;
        u64 at = group.first_weight + ((u64)head * group.n_queries + first + row) * n;
        float top = -1e30f, total = 0.0f;
        for (int j = lane; j < n; j += 32) top = fmaxf(top, scores[j]);
        for (int step = 16; step > 0; step >>= 1) top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFu, top, step));
        for (int j = lane; j < n; j += 32) {
            float x = expf(scores[j] - top);
            scores[j] = x;
            total += x;
        }
        float share = 1.0f / warp_sum(total);
        for (int j = lane; j < n; j += 32) {
            float x = scores[j] * share;
            weights[at + j] = x;
            scores[j] = mask.bound ? x * mask_at(mask, at + j) : x;
        }
    }
    __syncthreads();
    tile_weighted_sum(tiles.scores, tiles.scores_pitch, 1, tiles.all, tiles.pitch, n, d_value, 1.0f,
             out + (u64)(group.first_query + first) * steps.out + head * d_value, steps.out, n_own, 0);
}

// The gradients of the scores, and of the queries unless dq is null.
extern "C" __global__ void __launch_bounds__(CROSS_TILE_THREADS)
cross_attention_tile_queries_backward(const float* d_out, const float* k, const float* v, const Group* groups, Mask mask,
                             const float* weights, float* d_scores, float* dq, int add, Strides steps, int n_heads,
                             int d_key, int d_value, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    extern __shared__ float4 aligned[];
    Group group = groups[blockIdx.x];
    int head = blockIdx.y % n_heads, first = blockIdx.y / n_heads * CROSS_TILE, lane = threadIdx.x % 32;
    int n = group.n_keys, n_own = min(CROSS_TILE, group.n_queries - first);
    if (n_own <= 0) return;
    Tiles tiles = tiles_of((float*)aligned, n, d_key, d_value);
    load_rows(tiles.own, tiles.pitch, d_out + (u64)(group.first_query + first) * steps.out + head * d_value, steps.out, n_own,
          CROSS_TILE, d_value);
    load_rows(tiles.all, tiles.pitch, v + (u64)group.first_key * steps.v + head * d_value, steps.v, n, n, d_value);
    __syncthreads();
    tile_dots(tiles.own, tiles.all, tiles.pitch, n, d_value, 1.0f, tiles.scores, tiles.scores_pitch);
    __syncthreads();
    if (dq) load_rows(tiles.all, tiles.pitch, k + (u64)group.first_key * steps.k + head * d_key, steps.k, n, n, d_key);
    for (int row = threadIdx.x / 32; row < n_own; row += CROSS_TILE_THREADS / 32) {
        float* scores = tiles.scores + row * tiles.scores_pitch;
        u64 at = group.first_weight + ((u64)head * group.n_queries + first + row) * n;
        float along = 0.0f;
        for (int j = lane; j < n; j += 32) {
            float d_weight = mask.bound ? scores[j] * mask_at(mask, at + j) : scores[j];
            scores[j] = d_weight;
            along += d_weight * weights[at + j];
        }
        along = warp_sum(along);
        for (int j = lane; j < n; j += 32) {
            float d_score = weights[at + j] * (scores[j] - along);
            scores[j] = d_score;
            d_scores[at + j] = d_score;
        }
    }
    __syncthreads();
    if (!dq) return;
    tile_weighted_sum(tiles.scores, tiles.scores_pitch, 1, tiles.all, tiles.pitch, n, d_key, scale,
             dq + (u64)(group.first_query + first) * steps.q + head * d_key, steps.q, n_own, add);
}

// The gradients of keys and values, as in `cross_attention_keys_backward`, after the kernel above. If both have one buffer,
// the thread that adds the second has written the first.
extern "C" __global__ void __launch_bounds__(CROSS_TILE_THREADS)
cross_attention_tile_keys_backward(const float* d_out, const float* q, const Group* groups, Mask mask, const float* weights,
                          const float* d_scores, float* dk, float* dv, int add, Strides steps, int n_heads, int d_key,
                          int d_value, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    extern __shared__ float4 aligned[];
    Group group = groups[blockIdx.x];
    int head = blockIdx.y % n_heads, first = blockIdx.y / n_heads * CROSS_TILE, lane = threadIdx.x % 32;
    int n = group.n_queries, n_keys = group.n_keys, n_own = min(CROSS_TILE, n_keys - first);
    if (n_own <= 0) return;
    // The weights of the 32 keys for each query, and the queries or their output gradients.
    float *shares = (float*)aligned, *all = shares + n * (CROSS_TILE + 1);
    int pitch = max(d_key, d_value) | 1;
    u64 corner = group.first_weight + (u64)head * n * n_keys + first;
    if (dk) {
        for (int i = threadIdx.x / 32; i < n; i += CROSS_TILE_THREADS / 32) {
            shares[i * (CROSS_TILE + 1) + lane] = lane < n_own ? d_scores[corner + (u64)i * n_keys + lane] : 0.0f;
        }
        load_rows(all, pitch, q + (u64)group.first_query * steps.q + head * d_key, steps.q, n, n, d_key);
        __syncthreads();
        tile_weighted_sum(shares, 1, CROSS_TILE + 1, all, pitch, n, d_key, scale,
                 dk + (u64)(group.first_key + first) * steps.k + head * d_key, steps.k, n_own, add & 1);
        __syncthreads();
    }
    if (dv) {
        for (int i = threadIdx.x / 32; i < n; i += CROSS_TILE_THREADS / 32) {
            u64 at = corner + (u64)i * n_keys + lane;
            float x = lane < n_own ? weights[at] : 0.0f;
            shares[i * (CROSS_TILE + 1) + lane] = mask.bound ? x * mask_at(mask, at) : x;
        }
        load_rows(all, pitch, d_out + (u64)group.first_query * steps.out + head * d_value, steps.out, n, n, d_value);
        __syncthreads();
        tile_weighted_sum(shares, 1, CROSS_TILE + 1, all, pitch, n, d_value, 1.0f,
                 dv + (u64)(group.first_key + first) * steps.v + head * d_value, steps.v, n_own, add & 2);
    }
}
