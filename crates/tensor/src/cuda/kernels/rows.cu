// Rows moved, summed and cut; columns put side by side; functions of one value.

#define FOR(i, n) for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < (n); i += gridDim.x * (u64)blockDim.x)

// to = from as elem.
extern "C" __global__ void to_elem(const float* from, elem* to, u64 n) {
    AFTER_OTHERS;
    FOR(i, n / 4) store4(to + 4 * i, load4(from + 4 * i));
    FOR(i, n % 4) store(to + n - 1 - i, from[n - 1 - i]);
}

// to += from.
extern "C" __global__ void add_to(float* to, const float* from, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) to[i] += from[i];
}

// Row indices[i] of from, as row i.
extern "C" __global__ void gather(const float* from, const u32* indices, float* to, int cols, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) to[i] = from[(u64)indices[row_of(i, cols)] * cols + column_of(i, cols)];
}

// Row i of from, as row indices[i]; no index stands twice.
extern "C" __global__ void spread(const float* from, const u32* indices, float* to, int cols, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) to[(u64)indices[i / cols] * cols + i % cols] = from[i];
}

// to[target] (+)= the sum of the rows of from that belong to it, in order: rows[starts[target]..starts[target + 1]], or
// those very rows where there is no list of them.
extern "C" __global__ void put(const float* from, const u32* starts, const u32* rows, float* to, int cols, int n_rows,
                               int add) {
    AFTER_OTHERS;
    FOR(i, (u64)n_rows * cols) {
        u32 target = row_of(i, cols);
        int col = column_of(i, cols);
        float sum = add ? to[i] : 0.0f;
        u32 end = starts[target + 1];
#pragma unroll 4
        for (u32 at = starts[target]; at < end; at++) sum += from[(u64)(rows ? rows[at] : at) * cols + col];
        to[i] = sum;
    }
}

extern "C" __global__ void repeat_row(const float* row, float* to, int cols, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) to[i] = row[column_of(i, cols)];
}

// Where the columns of up to four matrices of as many rows end in the rows of all of them side by side.
struct Ends {
    int end[4];
};

// Whether rows and all their parts may be moved two values at a time.
__device__ __forceinline__ bool has_pairs(const Ends& ends, int first, int width, const float* const (&places)[5]) {
    u64 bits = first | ends.end[0] | ends.end[1] | ends.end[2] | ends.end[3] | width;
    u64 at = (u64)places[0] | (u64)places[1] | (u64)places[2] | (u64)places[3] | (u64)places[4];
    return bits % 2 == 0 && at % 8 == 0;
}

// The parts side by side in rows of `width`, from column `first` on; one warp a row. All parts are read before any is
// written, as far as one step goes.
extern "C" __global__ void columns_in(const float* part0, const float* part1, const float* part2, const float* part3,
                                      Ends ends, float* whole, int first, int width, int rows) {
    AFTER_OTHERS;
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    const float* parts[4] = {part0, part1, part2, part3};
    int begins[4] = {first, ends.end[0], ends.end[1], ends.end[2]};
    float* to = whole + (u64)row * width;
    int begin = 0;
    if (has_pairs(ends, first, width, {part0, part1, part2, part3, whole})) {
        float2 pairs[4];
        begin = 64;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int cols = ends.end[i] - begins[i];
            if (2 * lane < cols) pairs[i] = *(const float2*)(parts[i] + (u64)row * cols + 2 * lane);
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (2 * lane < ends.end[i] - begins[i]) *(float2*)(to + begins[i] + 2 * lane) = pairs[i];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int cols = ends.end[i] - begins[i];
        for (int col = begin + lane; col < cols; col += 32) to[begins[i] + col] = parts[i][(u64)row * cols + col];
    }
}

// And back; bit i of `add` says that part i has a sum already, and a part that is nowhere is left out.
extern "C" __global__ void columns_out(const float* whole, float* part0, float* part1, float* part2, float* part3,
                                       Ends ends, int first, int width, int add, int rows) {
    AFTER_OTHERS;
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float* parts[4] = {part0, part1, part2, part3};
    int begins[4] = {first, ends.end[0], ends.end[1], ends.end[2]};
    const float* from = whole + (u64)row * width;
    int begin = 0;
    if (has_pairs(ends, first, width, {part0, part1, part2, part3, whole})) {
        float2 pairs[4];
        begin = 64;
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (parts[i] && 2 * lane < ends.end[i] - begins[i])
                pairs[i] = *(const float2*)(from + begins[i] + 2 * lane);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int cols = ends.end[i] - begins[i];
            if (!parts[i] || 2 * lane >= cols) continue;
            float2* to = (float2*)(parts[i] + (u64)row * cols + 2 * lane);
            float2 before = add >> i & 1 ? *to : make_float2(0.0f, 0.0f);
            *to = make_float2(before.x + pairs[i].x, before.y + pairs[i].y);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int cols = ends.end[i] - begins[i];
        if (!parts[i]) continue;
        for (int col = begin + lane; col < cols; col += 32) {
            float* to = parts[i] + (u64)row * cols + col;
            *to = (add >> i & 1 ? *to : 0.0f) + from[begins[i] + col];
        }
    }
}

// x = f(x + bias), slopes beside it if asked for.
extern "C" __global__ void bias_activate(float* x, const float* bias, float* slopes, int kind, int cols, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) {
        float2 y = activation(kind, bias ? __fadd_rn(x[i], bias[column_of(i, cols)]) : x[i]);
        x[i] = y.x;
        if (slopes) slopes[i] = y.y;
    }
}

// f(x · w + b) for one value a row: in f32, whatever products are made of, since times are large.
extern "C" __global__ void outer(const float* x, const float* w, const float* bias, float* y, float* slopes, int kind,
                                 int cols, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) {
        int col = column_of(i, cols);
        float product = __fmul_rn(x[row_of(i, cols)], w[col]);
        float2 value = activation(kind, bias ? __fadd_rn(product, bias[col]) : product);
        y[i] = value.x;
        if (slopes) slopes[i] = value.y;
    }
}

// Partial sums over strips of rows: a warp's lanes are columns, the block's 8 warps share the rows.
__device__ __forceinline__ void strip_sum(float sum, float* partials, int col, int cols) {
    __shared__ float sums[8][32];
    __syncthreads();
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || col >= cols) return;
    for (int warp = 1; warp < 8; warp++) sum += sums[warp][threadIdx.x];
    partials[col] = sum;
}

// All that a layer's gradient needs before products read it, in one pass: times the slopes if there are some, in its
// place; as elem if there is a place for that; its partial sums, and those of x · weights[row] if there are weights.
extern "C" __global__ void settle(float* x, const float* slopes, elem* copy, const float* weights, float* partials,
                                  int rows, int cols, int strip) {
    AFTER_OTHERS;
    int col = blockIdx.x * 32 + threadIdx.x, end = min(rows, (int)(blockIdx.y + 1) * strip);
    float sum = 0.0f, weighted = 0.0f;
    if (col < cols) {
#pragma unroll 1
        for (int row = blockIdx.y * strip + threadIdx.y; row < end; row += 64) {
            float values[8], factors[8], shares[8];
            // All that is read, before anything is written; behind the end the last row again.
#pragma unroll
            for (int r = 0; r < 8; r++) {
                int at = min(row + 8 * r, end - 1);
                u64 i = (u64)(u32)at * (u32)cols + col;
                values[r] = x[i];
                factors[r] = slopes ? slopes[i] : 1.0f;
                shares[r] = weights ? weights[at] : 0.0f;
            }
#pragma unroll
            for (int r = 0; r < 8; r++) {
                if (row + 8 * r >= end) break;
                u64 i = (u64)(u32)(row + 8 * r) * (u32)cols + col;
                float value = values[r] * factors[r];
                if (slopes) x[i] = value;
                if (copy) store(copy + i, value);
                sum += value;
                weighted += value * shares[r];
            }
        }
    }
    if (!partials) return;
    float* to = partials + (u64)blockIdx.y * (weights ? 2 : 1) * cols;
    strip_sum(sum, to, col, cols);
    if (weights) strip_sum(weighted, to + cols, col, cols);
}

// Of elem, a lane four columns.
extern "C" __global__ void column_sums_elem(const elem* x, float* partials, int rows, int cols, int strip) {
    AFTER_OTHERS;
    int col = 4 * (blockIdx.x * 32 + threadIdx.x), end = min(rows, (int)(blockIdx.y + 1) * strip);
    bool is_even = cols % 4 == 0;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
    for (int row = blockIdx.y * strip + threadIdx.y; row < end; row += 8)
        grow(sum, quad(x + (u64)row * cols, col, cols, is_even));
    sum = block_sum(sum);
    if (threadIdx.y == 0) put_quad(partials + (u64)blockIdx.y * cols, col, cols, is_even, sum);
}

// Partial sums of a gradient: rows `step` apart, whose columns stand behind `first` columns of others.
struct PartialSums {
    const float* partials;
    float* to;
    int n_partials, step, cols, first;
};

// to += the sum of the partials, always in the same order, for each of many: a block's lanes are columns, its 16 warps
// share the partials.
extern "C" __global__ void add_partials(const PartialSums* all, int n_all, int n_cols) {
    AFTER_OTHERS;
    __shared__ float sums[16][32];
    int lane = threadIdx.x, warp = threadIdx.y, at = blockIdx.x * 32 + lane, which = -1;
    // The last that begins at the block's first column or before it, and from there the lane's own.
    for (int begin = 0; begin < n_all; begin += 32)
        which += __popc(__ballot_sync(0xFFFFFFFFu, begin + lane < n_all && all[begin + lane].first <= (int)blockIdx.x * 32));
    while (which + 1 < n_all && all[which + 1].first <= at) which++;
    PartialSums own = all[which];
    float sum = 0.0f;
    if (at < n_cols) {
        const float* from = own.partials + (at - own.first);
#pragma unroll 8
        for (int p = warp; p < own.n_partials; p += 16) sum += from[(u64)p * own.step];
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || at >= n_cols) return;
    for (int other = 1; other < 16; other++) sum += sums[other][lane];
    own.to[at - own.first] += sum;
}

// The mean binary cross-entropy, summed in double by one block; gradients of its logits beside it.
extern "C" __global__ void bce(const float* logits, const float* targets, float* loss, float* grads, int n,
                               double count) {
    AFTER_OTHERS;
    __shared__ double sums[256];
    double sum = 0.0;
    for (int i = threadIdx.x; i < n; i += 256) {
        float x = logits[i], y = targets[i];
        sum += (double)(fmaxf(x, 0.0f) - x * y + log1pf(expf(-fabsf(x))));
        grads[i] = (1.0f / (1.0f + expf(-x)) - y) * (float)(1.0 / count);
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) *loss = (float)(sums[0] / count);
}

// grads *= *by.
extern "C" __global__ void scale_by(float* grads, const float* by, u64 n) {
    AFTER_OTHERS;
    FOR(i, n) grads[i] *= *by;
}

// Sets the flag where a gradient or the loss is NaN or infinite; the loss goes to its place in the report.
extern "C" __global__ void find_bad(const float* grads, const float* loss, float* report, u32* flag, u64 n) {
    AFTER_OTHERS;
    bool bad = false;
    FOR(i, n) bad |= !isfinite(grads[i]);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *report = *loss;
        bad |= !isfinite(*loss);
    }
    if (bad) *flag = 1;
}

struct Update {
    float grad_share, keep_square, square_share, root_correction, eps, step_size, weight_decay;
};

// Adam over all parameters at once, unless a gradient was bad, which is reported.
extern "C" __global__ void adam(float* weights, const float* grads, float* means, float* squares, elem* copies,
                                const u32* flag, u32* report, Update update, u64 n) {
    AFTER_OTHERS;
    if (blockIdx.x == 0 && threadIdx.x == 0) *report = *flag;
    if (*flag) return;
    FOR(i, n) {
        float weight = weights[i];
        float grad = grads[i] + update.weight_decay * weight;
        float mean = means[i] + update.grad_share * (grad - means[i]);
        float square = update.keep_square * squares[i] + update.square_share * grad * grad;
        float root = sqrtf(square) / update.root_correction + update.eps;
        weight -= update.step_size * (mean / root);
        means[i] = mean;
        squares[i] = square;
        weights[i] = weight;
#ifdef BF16
        store(copies + i, weight);
#endif
    }
}
