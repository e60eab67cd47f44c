// Linear layers with at most 64 outputs, on tensor cores. cuBLASLt is tuned for more outputs and 16-byte aligned rows; here
// rows of any even width are read once, and one pass computes the whole backward.
//
// Tiles are 64 by 64; a block has 4 warps, each with 16 rows of a result. All widths are even.

#define MAX_OUTPUTS 64

// Two adjacent values, as stored.
template <typename T>
struct Pair {
    float2 bits;
    __device__ __forceinline__ float2 values() const { return bits; }
    __device__ __forceinline__ void clear() { bits = make_float2(0.0f, 0.0f); }
    __device__ __forceinline__ void store_to(elem* p) const { store2_rounded(p, bits.x, bits.y); }
};
#ifdef BF16
template <>
struct Pair<elem> {
    u32 bits;
    __device__ __forceinline__ float2 values() const {
        return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xFFFF0000u));
    }
    __device__ __forceinline__ void clear() { bits = 0; }
    __device__ __forceinline__ void store_to(elem* p) const { *(u32*)p = bits; }
};
#endif

// A thread's part of a tile: two columns of every fourth row, 0 past the end. All loads are issued before any value is used.
template <typename T>
struct Part {
    Pair<T> x[16];
    // Whether its columns exist; else they are 0.
    bool is_real;

    __device__ __forceinline__ void load(const T* from, int step, int n_rows, int cols) {
        int col = 2 * (threadIdx.x % 32), row = threadIdx.x / 32;
        is_real = col < cols;
        from += (u64)row * step + (is_real ? col : 0);
#pragma unroll
        for (int i = 0; i < 16; i++) {
            x[i].clear();
            if (row + 4 * i < n_rows) x[i] = *(const Pair<T>*)(from + (u64)(4 * i) * step);
        }
    }

    __device__ __forceinline__ void store_to(elem* tile) const {
        tile += threadIdx.x / 32 * TILE_STRIDE + 2 * (threadIdx.x % 32);
        if (is_real) {
#pragma unroll
            for (int i = 0; i < 16; i++) x[i].store_to(tile + 4 * i * TILE_STRIDE);
        } else {
#pragma unroll
            for (int i = 0; i < 16; i++) store2(tile + 4 * i * TILE_STRIDE, 0.0f, 0.0f);
        }
    }
};

// y = x · wᵀ + bias, with ReLU and its derivatives if asked for; 64 rows for each block.
template <typename T>
__device__ __forceinline__ void skinny_rows(const T* x, const elem* w, const float* bias, float* y, float* slopes,
                                            int with_relu, int rows, int n, int k) {
    extern __shared__ float4 aligned[];
    elem *xs = (elem*)aligned, *ws = xs + MAX_OUTPUTS * TILE_STRIDE;
    float* shifts = (float*)(ws + MAX_OUTPUTS * TILE_STRIDE);
    int first = blockIdx.x * MAX_OUTPUTS, row = threadIdx.x / 32 * 16, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    if (threadIdx.x < MAX_OUTPUTS) shifts[threadIdx.x] = bias && threadIdx.x < n ? bias[threadIdx.x] : 0.0f;
    float c[8][4] = {};
    Part<T> own;
    Part<elem> weights;
    x += (u64)first * k;
    rows -= first;
    own.load(x, k, rows, min(k, MAX_OUTPUTS));
    weights.load(w, k, n, min(k, MAX_OUTPUTS));
#pragma unroll 1
    for (int begin = 0; begin < k; begin += MAX_OUTPUTS) {
        int cols = min(k - begin, MAX_OUTPUTS), next = begin + MAX_OUTPUTS;
        if (begin > 0) __syncthreads();
        own.store_to(xs);
        weights.store_to(ws);
        __syncthreads();
        if (next < k) {
            own.load(x + next, k, rows, min(k - next, MAX_OUTPUTS));
            weights.load(w + next, k, n, min(k - next, MAX_OUTPUTS));
        }
        rows_by_rows<4>(c, xs + row * TILE_STRIDE, ws, TILE_STRIDE, cols, 0, MAX_OUTPUTS - 16);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int at = row + g + 8 * half;
        if (at >= rows) break;
        u64 place = (u64)(first + at) * n + 2 * t;
        float *to = y + place, *slope = slopes ? slopes + place : nullptr;
#pragma unroll
        for (int b = 0; b < 8; b++) {
            float low = c[b][2 * half] + shifts[8 * b + 2 * t], high = c[b][2 * half + 1] + shifts[8 * b + 2 * t + 1];
            // NaN stays NaN.
            bool falls = with_relu && low <= 0.0f, is_high_zero = with_relu && high <= 0.0f;
            if (8 * b >= n - 2 * t) break;
            *(float2*)(to + 8 * b) = make_float2(falls ? 0.0f : low, is_high_zero ? 0.0f : high);
            if (slope) *(float2*)(slope + 8 * b) = make_float2(!falls, !is_high_zero);
        }
    }
}

extern "C" __global__ void __launch_bounds__(128, 4)
skinny_linear_forward(const void* x, int is_f32, const elem* w, const float* bias, float* y, float* slopes,
               int with_relu, int rows, int n, int k) {
    WAIT_FOR_PREVIOUS_KERNELS;
    if (is_f32) skinny_rows((const float*)x, w, bias, y, slopes, with_relu, rows, n, k);
    else skinny_rows((const elem*)x, w, bias, y, slopes, with_relu, rows, n, k);
}

// The backward over a strip of rows, for 64 columns of x: dx (+)= dy · w unless that is null, and partial sums dyᵀ · x
// followed by the column sums of dy; dy is the gradient times the slopes.
template <typename T>
__device__ __forceinline__ void skinny_strip(const float* grads, const float* slopes, const T* x, const elem* w,
                                             float* dx, int add, float* partials, int rows, int n, int k, int strip) {
    extern __shared__ float4 aligned[];
    elem *dys = (elem*)aligned, *xs = dys + MAX_OUTPUTS * TILE_STRIDE, *ws = xs + MAX_OUTPUTS * TILE_STRIDE;
    int begin = blockIdx.x * MAX_OUTPUTS, cols = min(k - begin, MAX_OUTPUTS), end = min(rows, (int)(blockIdx.y + 1) * strip);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = 16 * warp, g = lane / 4, t = lane % 4;
    if (dx) {
        Part<elem> weights;
        weights.load(w + begin, k, n, cols);
        weights.store_to(ws);
    }
    float d_weight[4][2][4] = {};
    float2 d_bias = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int first = blockIdx.y * strip; first < end; first += MAX_OUTPUTS) {
        int left = end - first;
        Part<float> dy;
        dy.load(grads + (u64)first * n, n, left, n);
        if (slopes) {
            Part<float> slope;
            slope.load(slopes + (u64)first * n, n, left, n);
#pragma unroll
            for (int i = 0; i < 16; i++) {
                float2 a = dy.x[i].values(), b = slope.x[i].values();
                dy.x[i].bits = make_float2(a.x * b.x, a.y * b.y);
            }
        }
#pragma unroll
        for (int i = 0; i < 16; i++) {
            float2 v = dy.x[i].values();
            d_bias = make_float2(d_bias.x + v.x, d_bias.y + v.y);
        }
        Part<T> own_x;
        own_x.load(x + (u64)first * k + begin, k, left, cols);
        __syncthreads();
        dy.store_to(dys);
        own_x.store_to(xs);
        __syncthreads();
        Weights factor;
        factor.load_transposed(dys, own, MAX_OUTPUTS);
#pragma unroll
        for (int j = 0; j < 4; j++) factor.times(d_weight[j], xs + 16 * j, TILE_STRIDE, MAX_OUTPUTS - 16);
        if (!dx) continue;
        factor.load_from(dys, own);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float c[2][4] = {};
            factor.times(c, ws + 16 * j, TILE_STRIDE, MAX_OUTPUTS - 16);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int row = own + g + i % 2 * 8, col = 16 * j + 8 * (i / 2) + 2 * t;
                if (row >= left || col >= cols) continue;
                float2* to = (float2*)(dx + (u64)(first + row) * k + begin + col);
                float2 before = add ? *to : make_float2(0.0f, 0.0f);
                *to = make_float2(before.x + c[i / 2][i % 2 * 2], before.y + c[i / 2][i % 2 * 2 + 1]);
            }
        }
    }
    float* to = partials + (u64)blockIdx.y * n * (k + 1);
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = own + g + i % 2 * 8, col = begin + 16 * j + 8 * (i / 2) + 2 * t;
            const float* both = d_weight[j][i / 2] + i % 2 * 2;
            if (row < n && col < k) *(float2*)(to + row * k + col) = make_float2(both[0], both[1]);
        }
    if (blockIdx.x > 0) return;
    // The sums of dy over the warps, in order.
    float2* sums = (float2*)aligned;
    __syncthreads();
    sums[threadIdx.x] = d_bias;
    __syncthreads();
    if (warp > 0) return;
    for (int other = 1; other < 4; other++) {
        float2 sum = sums[32 * other + lane];
        d_bias = make_float2(d_bias.x + sum.x, d_bias.y + sum.y);
    }
    if (2 * lane < n) *(float2*)(to + n * k + 2 * lane) = d_bias;
}

extern "C" __global__ void __launch_bounds__(128, 3)
skinny_linear_backward(const float* grads, const float* slopes, const void* x, int is_f32, const elem* w, float* dx, int add,
                float* partials, int rows, int n, int k, int strip) {
    WAIT_FOR_PREVIOUS_KERNELS;
    if (is_f32) skinny_strip(grads, slopes, (const float*)x, w, dx, add, partials, rows, n, k, strip);
    else skinny_strip(grads, slopes, (const elem*)x, w, dx, add, partials, rows, n, k, strip);
}
