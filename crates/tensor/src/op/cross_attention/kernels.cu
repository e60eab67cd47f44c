// Attention between two packed batches: the queries of a group attend to the keys of the same group. Attention weights are
// stored as [heads, queries, keys] of each group. A block belongs to a group; large groups have several (blockIdx.y).
//
// Warps are independent: no shared memory and no block synchronisation.

struct Group {
    int first_query, n_queries, first_key, n_keys;
    u64 first_weight;
};

// The row strides of queries, keys, values and outputs.
struct Strides {
    int q, k, v, out;
};

// Columns that a lane sums at once, 32 apart.
#define LANE_COLS 4

// Σ row[col] · rows[j][col] for four rows j0.. of `n`, in all lanes; past the end the last row again.
__device__ __forceinline__ void four_dots(const float* row, const float* rows, int step, int j0, int n, int width,
                                          float (&sums)[4]) {
    const float* at[4];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        at[r] = rows + (u64)min(j0 + r, n - 1) * step;
        sums[r] = 0.0f;
    }
    for (int col = threadIdx.x; col < width; col += 32) {
        float x = row[col];
#pragma unroll
        for (int r = 0; r < 4; r++) sums[r] += x * at[r][col];
    }
#pragma unroll
    for (int r = 0; r < 4; r++) sums[r] = warp_sum(sums[r]);
}

// to[col] (+)= scale · Σ_j weight(j) · rows[j][col]; weight(j) is evaluated by one lane.
template <typename Weight>
__device__ __forceinline__ void weighted_sum(Weight weight, const float* rows, int step, int n, int width, float scale,
                                    float* to, int add) {
    int lane = threadIdx.x;
    for (int col0 = 0; col0 < width; col0 += 32 * LANE_COLS) {
        float sums[LANE_COLS] = {};
        for (int j0 = 0; j0 < n; j0 += 32) {
            float own = j0 + lane < n ? weight(j0 + lane) : 0.0f;
            int end = min(32, n - j0);
            for (int j = 0; j < end; j++) {
                float factor = __shfl_sync(0xFFFFFFFFu, own, j);
                const float* row = rows + (u64)(j0 + j) * step;
#pragma unroll
                for (int c = 0; c < LANE_COLS; c++) {
                    int col = col0 + lane + 32 * c;
                    if (col < width) sums[c] += factor * row[col];
                }
            }
        }
#pragma unroll
        for (int c = 0; c < LANE_COLS; c++) {
            int col = col0 + lane + 32 * c;
            if (col < width) put_value(to, col, scale * sums[c], add);
        }
    }
}

// One warp for each query and head. A lane reads only the weights it has written: those of keys lane + 32 · i.
extern "C" __global__ void cross_attention_forward(const float* q, const float* k, const float* v, const Group* groups, Mask mask,
                                          float* weights, float* out, Strides steps, int n_heads, int d_key, int d_value,
                                          float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    Group group = groups[blockIdx.x];
    int n = group.n_keys, n_pairs = group.n_queries * n_heads, lane = threadIdx.x;
    for (int pair = blockIdx.y * blockDim.y + threadIdx.y; pair < n_pairs; pair += gridDim.y * blockDim.y) {
        int i = pair / n_heads, head = pair % n_heads;
        const float* query = q + (u64)(group.first_query + i) * steps.q + head * d_key;
        const float* keys = k + (u64)group.first_key * steps.k + head * d_key;
        const float* values = v + (u64)group.first_key * steps.v + head * d_value;
        u64 first = group.first_weight + ((u64)head * group.n_queries + i) * n;
        float* own = weights + first;
        float top = -1e30f, total = 0.0f;
        for (int j0 = 0; j0 < n; j0 += 4) {
            float sums[4];
            four_dots(query, keys, steps.k, j0, n, d_key, sums);
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float score = scale * sums[r];
                top = fmaxf(top, score);
                if (j0 + r < n && (j0 + r) % 32 == lane) own[j0 + r] = score;
            }
        }
        for (int j = lane; j < n; j += 32) {
            float x = expf(own[j] - top);
            own[j] = x;
            total += x;
        }
        float share = 1.0f / warp_sum(total);
        for (int j = lane; j < n; j += 32) own[j] *= share;
        auto weight = [&](int j) { return mask.bound ? own[j] * mask_at(mask, first + j) : own[j]; };
        float* to = out + (u64)(group.first_query + i) * steps.out + head * d_value;
        weighted_sum(weight, values, steps.v, n, d_value, 1.0f, to, 0);
    }
}

// The gradients of the scores, and of the queries unless dq is null; one warp for each query and head.
extern "C" __global__ void cross_attention_queries_backward(const float* d_out, const float* k, const float* v,
                                                   const Group* groups, Mask mask, const float* weights,
                                                   float* d_scores, float* dq, int add, Strides steps, int n_heads,
                                                   int d_key, int d_value, float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    Group group = groups[blockIdx.x];
    int n = group.n_keys, n_pairs = group.n_queries * n_heads, lane = threadIdx.x;
    for (int pair = blockIdx.y * blockDim.y + threadIdx.y; pair < n_pairs; pair += gridDim.y * blockDim.y) {
        int i = pair / n_heads, head = pair % n_heads;
        const float* grad = d_out + (u64)(group.first_query + i) * steps.out + head * d_value;
        const float* keys = k + (u64)group.first_key * steps.k + head * d_key;
        const float* values = v + (u64)group.first_key * steps.v + head * d_value;
        u64 first = group.first_weight + ((u64)head * group.n_queries + i) * n;
        const float* own = weights + first;
        float* scores = d_scores + first;
        float along = 0.0f;
        for (int j0 = 0; j0 < n; j0 += 4) {
            float sums[4];
            four_dots(grad, values, steps.v, j0, n, d_value, sums);
#pragma unroll
            for (int r = 0; r < 4; r++) {
                int j = j0 + r;
                if (j >= n || j % 32 != lane) continue;
                float d_weight = mask.bound ? sums[r] * mask_at(mask, first + j) : sums[r];
                scores[j] = d_weight;
                along += d_weight * own[j];
            }
        }
        along = warp_sum(along);
        for (int j = lane; j < n; j += 32) scores[j] = own[j] * (scores[j] - along);
        if (!dq) continue;
        auto weight = [&](int j) { return scores[j]; };
        float* to = dq + (u64)(group.first_query + i) * steps.q + head * d_key;
        weighted_sum(weight, keys, steps.k, n, d_key, scale, to, add);
    }
}

// The gradients of keys and values, unless null, after the kernel above; one warp for each key and head. Bits of `add`
// accumulate into those of the keys (0) and the values (1); if both have one buffer, the values come second.
extern "C" __global__ void cross_attention_keys_backward(const float* d_out, const float* q, const Group* groups, Mask mask,
                                                const float* weights, const float* d_scores, float* dk, float* dv,
                                                int add, Strides steps, int n_heads, int d_key, int d_value,
                                                float scale) {
    WAIT_FOR_PREVIOUS_KERNELS;
    Group group = groups[blockIdx.x];
    int n = group.n_queries, n_keys = group.n_keys, n_pairs = n_keys * n_heads;
    for (int pair = blockIdx.y * blockDim.y + threadIdx.y; pair < n_pairs; pair += gridDim.y * blockDim.y) {
        int j = pair / n_heads, head = pair % n_heads;
        u64 first = group.first_weight + (u64)head * n * n_keys + j;
        if (dk) {
            auto weight = [&](int i) { return d_scores[first + (u64)i * n_keys]; };
            const float* queries = q + (u64)group.first_query * steps.q + head * d_key;
            float* to = dk + (u64)(group.first_key + j) * steps.k + head * d_key;
            weighted_sum(weight, queries, steps.q, n, d_key, scale, to, add & 1);
        }
        if (dv) {
            auto weight = [&](int i) {
                u64 at = first + (u64)i * n_keys;
                return mask.bound ? weights[at] * mask_at(mask, at) : weights[at];
            };
            const float* grads = d_out + (u64)group.first_query * steps.out + head * d_value;
            float* to = dv + (u64)(group.first_key + j) * steps.v + head * d_value;
            weighted_sum(weight, grads, steps.out, n, d_value, 1.0f, to, add & 2);
        }
    }
}
