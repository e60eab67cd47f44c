// Helpers of all kernels. Compiled without headers: all types and functions are built into the compiler.
//
// `elem` is the element type of GEMM operands: float, or bfloat16 with BF16. Everything else is float.

typedef unsigned int u32;
typedef unsigned long long u64;

// The first line of every kernel. With programmatic dependent launch (compute capability 9.0) a kernel starts while the
// previous one still runs, and waits here until its writes are visible: that hides launch latency.
#if __CUDA_ARCH__ >= 900
#define WAIT_FOR_PREVIOUS_KERNELS asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define WAIT_FOR_PREVIOUS_KERNELS
#endif

#ifdef BF16
typedef unsigned short elem;
__device__ __forceinline__ float load(const elem* p) { return __uint_as_float((u32)(*p) << 16); }
__device__ __forceinline__ void store(elem* p, float x) {
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    *p = bits;
}
// Four packed values, for loads long before their use.
typedef uint2 Packed;
__device__ __forceinline__ float4 unpack(Packed bits) {
    return make_float4(__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xFFFF0000u),
                       __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xFFFF0000u));
}
__device__ __forceinline__ float4 load4(const elem* p) { return unpack(*(const Packed*)p); }
__device__ __forceinline__ void store4(elem* p, float4 x) {
    uint2 bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits.x) : "f"(x.y), "f"(x.x));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits.y) : "f"(x.w), "f"(x.z));
    *(uint2*)p = bits;
}
__device__ __forceinline__ float load(const float* p) { return *p; }
__device__ __forceinline__ void store(float* p, float x) { *p = x; }
__device__ __forceinline__ float4 load4(const float* p) { return *(const float4*)p; }
__device__ __forceinline__ void store4(float* p, float4 x) { *(float4*)p = x; }
#else
typedef float elem;
typedef float4 Packed;
__device__ __forceinline__ float4 unpack(Packed x) { return x; }
__device__ __forceinline__ float load(const elem* p) { return *p; }
__device__ __forceinline__ void store(elem* p, float x) { *p = x; }
__device__ __forceinline__ float4 load4(const elem* p) { return *(const float4*)p; }
__device__ __forceinline__ void store4(elem* p, float4 x) { *(float4*)p = x; }
#endif

// The column and the row of value i in rows of `cols`. 64-bit divisions are slow and rarely needed.
__device__ __forceinline__ int column_of(u64 i, int cols) { return i >> 32 ? (int)(i % cols) : (int)((u32)i % (u32)cols); }
__device__ __forceinline__ u64 row_of(u64 i, int cols) { return i >> 32 ? i / cols : (u64)((u32)i / (u32)cols); }

// The dropout mask: the same hash of a position as on the CPU.
struct Mask {
    u32 key0, key1, bound;
    float keep;
};

__device__ __forceinline__ float mask_at(const Mask& mask, u64 position) {
    u32 x = (u32)(position / 16 * 8 + position % 8) ^ mask.key0;
    x = ((x ^ (x >> 16)) * 0x7FEB352Du) ^ mask.key1;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    x ^= x >> 16;
    u32 bits = position % 16 < 8 ? x & 0xFFFFu : x >> 16;
    return bits < mask.bound ? 0.0f : mask.keep;
}

__device__ __forceinline__ float warp_sum(float x) {
    for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

// Four values of a row; 0 past its end. The slow path, for row lengths that are not a multiple of 4, is a call: it is rare,
// and inlined it would be most of the code.
template <typename T>
__device__ __noinline__ float4 quad_by_one(const T* row, int col, int cols) {
    return make_float4(col < cols ? load(row + col) : 0.0f, col + 1 < cols ? load(row + col + 1) : 0.0f,
                       col + 2 < cols ? load(row + col + 2) : 0.0f, col + 3 < cols ? load(row + col + 3) : 0.0f);
}

template <typename T>
__device__ __forceinline__ float4 quad(const T* row, int col, int cols, bool is_even) {
    if (!is_even) return quad_by_one(row, col, cols);
    return col < cols ? load4(row + col) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

template <typename T>
__device__ __noinline__ void put_quad_by_one(T* row, int col, int cols, float4 x) {
    if (col < cols) store(row + col, x.x);
    if (col + 1 < cols) store(row + col + 1, x.y);
    if (col + 2 < cols) store(row + col + 2, x.z);
    if (col + 3 < cols) store(row + col + 3, x.w);
}

template <typename T>
__device__ __forceinline__ void put_quad(T* row, int col, int cols, bool is_even, float4 x) {
    if (!is_even) put_quad_by_one(row, col, cols, x);
    else if (col < cols) store4(row + col, x);
}

__device__ __forceinline__ float sum_of(float4 x) { return (x.x + x.y) + (x.z + x.w); }

__device__ __forceinline__ float4 dropped(const Mask& mask, u64 at, float4 x) {
    return make_float4(x.x * mask_at(mask, at), x.y * mask_at(mask, at + 1), x.z * mask_at(mask, at + 2),
                       x.w * mask_at(mask, at + 3));
}

__device__ __forceinline__ float4 masked(const Mask& mask, u64 at, float4 x) {
    return mask.bound ? dropped(mask, at, x) : x;
}

__device__ __forceinline__ void add4(float4& sum, float4 x) {
    sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
}

// The sum over the 8 warps of a block, in order; valid in the first warp.
__device__ __forceinline__ float4 block_sum(float4 sum) {
    __shared__ float4 sums[8][32];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0)
        for (int warp = 1; warp < 8; warp++) add4(sum, sums[warp][threadIdx.x]);
    return sum;
}

// The exact GELU with the formula of the CPU: a polynomial in t = 1 / (1 + c |x|) for the tail of the normal distribution
// beyond |x|. Factors are folded into the constants, since these functions dominate their kernels: `a` is |x| scaled so
// that the density is proportional to 2^(-a a).
struct Bell {
    float a, t, height;
};

__device__ __forceinline__ Bell bell(float x) {
    Bell b;
    b.a = fabsf(x) * 0.84932180f;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(b.t) : "f"(fmaf(b.a, 0.27273748f, 1.0f)));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(b.height) : "f"(-b.a * b.a));
    return b;
}

__device__ __forceinline__ float gelu_value(float x) {
    Bell b = bell(x);
    float p = fmaf(0.62485470f, b.t, -0.85547788f);
    p = fmaf(p, b.t, 0.83679339f);
    p = fmaf(p, b.t, -0.16748465f);
    p = fmaf(p, b.t, 0.15001946f);
    return fmaf(-p * b.t, b.a * b.height, fmaxf(x, 0.0f));
}

__device__ __forceinline__ float gelu_slope(float x) {
    Bell b = bell(x);
    float p = fmaf(0.53070271f, b.t, -0.72657601f);
    p = fmaf(p, b.t, 0.71070687f);
    p = fmaf(p, b.t, -0.14224837f);
    p = fmaf(p, b.t, 0.12741480f);
    // The derivative at -|x|; those at x and -x sum to 1.
    float below = fmaf(p, b.t, -0.46971864f * b.a) * b.height;
    return x >= 0.0f ? 1.0f - below : below;
}

// An activation and its derivative: 0 identity, 1 ReLU, 2 GELU, 3 sigmoid, 4 tanh, 5 cos.
__device__ __forceinline__ float2 activation(int kind, float x) {
    switch (kind) {
        case 1: return x <= 0.0f ? make_float2(0.0f, 0.0f) : make_float2(x, 1.0f);
        case 2: return make_float2(gelu_value(x), gelu_slope(x));
        case 3: { float y = 1.0f / (1.0f + expf(-x)); return make_float2(y, y * (1.0f - y)); }
        case 4: { float y = tanhf(x); return make_float2(y, 1.0f - y * y); }
        case 5: { float s, c; sincosf(x, &s, &c); return make_float2(c, -s); }
        default: return make_float2(x, 1.0f);
    }
}

#define FOR(i, n) for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < (n); i += gridDim.x * (u64)blockDim.x)

// to[i] = x, or to[i] += x with `add`.
__device__ __forceinline__ void put_value(float* to, u64 i, float x, int add) { to[i] = add ? to[i] + x : x; }

__device__ __forceinline__ float warp_max(float x) {
    for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, step));
    return x;
}

// to = from, converted to elem.
extern "C" __global__ void f32_to_elem(const float* from, elem* to, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n / 4) store4(to + 4 * i, load4(from + 4 * i));
    FOR(i, n % 4) store(to + n - 1 - i, from[n - 1 - i]);
}

// to += from.
extern "C" __global__ void accumulate(float* to, const float* from, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) to[i] += from[i];
}
