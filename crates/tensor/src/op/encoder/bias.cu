// Biases of attention: the rows of a table, spread over the pairs of tokens of each sequence, and the sums of their gradients.
// One block for each sequence and column of the table. Each pair of classes with a row of its own is shared by a few lanes.

struct RelationSizes {
    u32 sequences, classes, tokens, pairs;
};

// The relations of one sequence; `Relations::words` lays them out.
struct SequenceRelations {
    // Of each class the first of its `members`, which are tokens of the sequence.
    const u32 *member_starts, *members;
    // The class of each token; two classes in the halves of a word.
    const u32 *classes, *pairs;
    int n_pairs, first_pair, lanes;

    __device__ __forceinline__ SequenceRelations(const u32* words, const RelationSizes& sizes, int sequence, int first,
                                                 int n) {
        const u32 *class_starts = words, *pair_starts = class_starts + sizes.sequences + 1;
        member_starts = pair_starts + sizes.sequences + 1;
        members = member_starts + sizes.classes + 1;
        classes = members + sizes.tokens;
        pairs = classes + sizes.tokens;
        int first_class = class_starts[sequence], n_classes = class_starts[sequence + 1] - first_class;
        first_pair = pair_starts[sequence];
        n_pairs = pair_starts[sequence + 1] - first_pair;
        member_starts += first_class;
        classes += first;
        pairs += first_pair;
        // As many lanes as a pair of classes has pairs of tokens on average.
        int members_each = n / max(n_classes, 1);
        lanes = 1;
        while (lanes < 32 && lanes < members_each * members_each) lanes *= 2;
    }
};

// The pairs of tokens of a pair of classes.
struct TokenPairs {
    const u32 *high, *low;
    int n_low, count;
    bool are_ordered;

    __device__ __forceinline__ TokenPairs(const SequenceRelations& of, int pair) {
        int a = of.pairs[pair] >> 16, b = of.pairs[pair] & 0xFFFFu;
        high = of.members + of.member_starts[a];
        low = of.members + of.member_starts[b];
        n_low = of.member_starts[b + 1] - of.member_starts[b];
        count = (of.member_starts[a + 1] - of.member_starts[a]) * n_low;
        // Of one class all pairs are there in both orders.
        are_ordered = a != b;
    }
};

// The biases of all blocks, `block_size` values each: of head h and sequence s the n · n from n_heads · weight_starts[s] + h · n · n.
extern "C" __global__ void __launch_bounds__(256)
spread_biases(const float* table, const u32* words, RelationSizes sizes, const u32* starts, const u64* weight_starts,
              float* biases, int n_heads, u64 block_size) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int sequence = blockIdx.x, col = blockIdx.y, cols = gridDim.y;
    int first = starts[sequence], n = starts[sequence + 1] - first;
    SequenceRelations of(words, sizes, sequence, first, n);
    float* to = biases + col / n_heads * block_size + weight_starts[sequence] * n_heads + (u64)(col % n_heads) * n * n;
    float not_related = table[col], same = table[cols + col];
    for (int i = threadIdx.x / 32; i < n; i += 8) {
        u32 own = of.classes[i];
        for (int j = threadIdx.x % 32; j < n; j += 32) to[(u64)i * n + j] = of.classes[j] == own ? same : not_related;
    }
    __syncthreads();
    for (int pair = threadIdx.x / of.lanes; pair < of.n_pairs; pair += 256 / of.lanes) {
        TokenPairs tokens(of, pair);
        float bias = table[(u64)(2 + of.first_pair + pair) * cols + col];
        for (int at = threadIdx.x % of.lanes; at < tokens.count; at += of.lanes) {
            int i = tokens.high[at / tokens.n_low], j = tokens.low[at % tokens.n_low];
            to[(u64)i * n + j] = bias;
            to[(u64)j * n + i] = bias;
        }
    }
}

// The gradients of the table's rows from those of one block's biases, which become 0. Rows that belong to one sequence are written;
// of the first two rows each sequence has a partial sum.
extern "C" __global__ void __launch_bounds__(256)
sum_bias_gradients(float* d_biases, const u32* words, RelationSizes sizes, const u32* starts, const u64* weight_starts,
                   float* d_table, float* partials, int first_col, int cols) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int sequence = blockIdx.x, head = blockIdx.y, n_heads = gridDim.y, col = first_col + head;
    int first = starts[sequence], n = starts[sequence + 1] - first;
    SequenceRelations of(words, sizes, sequence, first, n);
    float* from = d_biases + weight_starts[sequence] * n_heads + (u64)head * n * n;
    int group = threadIdx.x / of.lanes, n_groups = 256 / of.lanes;
    for (int begin = 0; begin < of.n_pairs; begin += n_groups) {
        int pair = begin + group;
        float sum = 0.0f;
        if (pair < of.n_pairs) {
            TokenPairs tokens(of, pair);
            for (int at = threadIdx.x % of.lanes; at < tokens.count; at += of.lanes) {
                int i = tokens.high[at / tokens.n_low], j = tokens.low[at % tokens.n_low];
                float *one = from + (u64)i * n + j, *other = from + (u64)j * n + i;
                sum += *one;
                *one = 0.0f;
                if (tokens.are_ordered) {
                    sum += *other;
                    *other = 0.0f;
                }
            }
        }
        for (int step = of.lanes / 2; step > 0; step >>= 1) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
        if (pair < of.n_pairs && threadIdx.x % of.lanes == 0)
            d_table[(u64)(2 + of.first_pair + pair) * cols + col] = sum;
    }
    __syncthreads();
    float not_related = 0.0f, same = 0.0f;
    for (int i = threadIdx.x / 32; i < n; i += 8) {
        u32 own = of.classes[i];
        for (int j = threadIdx.x % 32; j < n; j += 32) {
            float x = from[(u64)i * n + j];
            if (of.classes[j] == own) same += x;
            else not_related += x;
        }
    }
    __shared__ float2 sums[8];
    not_related = warp_sum(not_related), same = warp_sum(same);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = make_float2(not_related, same);
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < 8; warp++) not_related += sums[warp].x, same += sums[warp].y;
    float* to = partials + (u64)sequence * 2 * cols + col;
    to[0] = not_related, to[cols] = same;
}
