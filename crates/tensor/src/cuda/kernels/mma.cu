// Products of 16 rows on tensor cores, in TF32 or, with BF16, in bfloat16. Lane 4 · g + t of a warp holds rows g and g + 8,
// columns 2 t and 2 t + 1 of every block of 8 columns of a result.
//
// Tiles have a multiple of 16 rows; `last` is the first of the last 16. Past them products read existing rows, whose
// results are discarded or whose weights are 0: no product has a branch, and all its loads are in flight at once.

__device__ __forceinline__ float tf32(float x) {
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

__device__ __forceinline__ void mma(float (&c)[4], const float (&a)[4], float b0, float b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

#define TILE_STRIDE (sizeof(elem) == 2 ? 72 : 68)

// The first row of block j of 16, at most that of the last block.
__device__ __forceinline__ int row_block(int j, int last) { return min(16 * j, last); }

#ifdef BF16

// Resident blocks per multiprocessor, forward and backward.
#define SHORT_BLOCKS 7
#define SHORT_BLOCKS_BACK 3

__device__ __forceinline__ u32 pack2(float x, float y) {
    u32 bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
    return bits;
}
__device__ __forceinline__ void store2(elem* p, float x, float y) { *(u32*)p = pack2(x, y); }
__device__ __forceinline__ void store2_rounded(elem* p, float x, float y) { store2(p, x, y); }
__device__ __forceinline__ void store_rounded(elem* p, float4 x) { store4(p, x); }

__device__ __forceinline__ void mma16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma8(float (&c)[4], u32 a0, u32 a1, u32 b0) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(b0));
}

// ldmatrix: four blocks of 8 · 8 values; lane l gives the address of row l % 8 of block l / 8.
__device__ __forceinline__ void ldmatrix4(u32 (&x)[4], const elem* p) {
    u32 at = (u32)__cvta_generic_to_shared(p);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at) : "memory");
}

__device__ __forceinline__ void ldmatrix4_trans(u32 (&x)[4], const elem* p) {
    u32 at = (u32)__cvta_generic_to_shared(p);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at) : "memory");
}

// c += 16 rows of a · (16 N rows of b from block `begin` on)ᵀ.
template <int N>
__device__ __forceinline__ void rows_by_rows(float (&c)[2 * N][4], const elem* a, const elem* b, int step, int width,
                                             int begin, int last) {
    int lane = threadIdx.x % 32;
    const elem* p = a + (lane / 8 % 2 * 8 + lane % 8) * step + lane / 16 * 8;
    const elem* q = b + (lane / 16 * 8 + lane % 8) * step + lane / 8 % 2 * 8;
    u32 x[4], y[N][4];
    int k = 0;
#pragma unroll 1
    for (; k + 8 < width; k += 16) {
        ldmatrix4(x, p + k);
#pragma unroll
        for (int j = 0; j < N; j++) ldmatrix4(y[j], q + row_block(begin + j, last) * step + k);
#pragma unroll
        for (int j = 0; j < N; j++) mma16(c[2 * j], x, y[j][0], y[j][1]), mma16(c[2 * j + 1], x, y[j][2], y[j][3]);
    }
    if (k >= width) return;
    // One block of 8 columns is left; the values past it are of another row.
    ldmatrix4(x, p + k);
#pragma unroll
    for (int j = 0; j < N; j++) {
        ldmatrix4(y[0], q + row_block(begin + j, last) * step + k);
        mma8(c[2 * j], x[0], x[1], y[0][0]), mma8(c[2 * j + 1], x[0], x[1], y[0][2]);
    }
}

// 16 rows of up to 64 attention weights, as the left operand of a product.
struct Weights {
    u32 x[4][4];

    __device__ __forceinline__ void pack(const float (&s)[8][4]) {
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) x[j][i] = pack2(s[2 * j + i / 2][i % 2 * 2], s[2 * j + i / 2][i % 2 * 2 + 1]);
    }

    // Loads rows first.. of what `store_weights` has stored.
    __device__ __forceinline__ void load_from(const elem* from, int first) {
        int lane = threadIdx.x % 32;
        const elem* p = from + (first + lane / 8 % 2 * 8 + lane % 8) * TILE_STRIDE + lane / 16 * 8;
#pragma unroll
        for (int j = 0; j < 4; j++) ldmatrix4(x[j], p + 16 * j);
    }

    // Loads columns first.. of it, as rows.
    __device__ __forceinline__ void load_transposed(const elem* stored, int first, int n_rows) {
        int lane = threadIdx.x % 32;
        const elem* p = stored + (lane / 16 * 8 + lane % 8) * TILE_STRIDE + first + lane / 8 % 2 * 8;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            x[j][0] = x[j][1] = x[j][2] = x[j][3] = 0;
            if (16 * j < n_rows) ldmatrix4_trans(x[j], p + 16 * j * TILE_STRIDE);
        }
    }

    // c = weights · 16 columns of the tile.
    __device__ __forceinline__ void times(float (&c)[2][4], const elem* tile, int step, int last) const {
        int lane = threadIdx.x % 32;
        const elem* p = tile + (lane / 8 % 2 * 8 + lane % 8) * step + lane / 16 * 8;
        u32 y[4][4];
#pragma unroll
        for (int j = 0; j < 4; j++) ldmatrix4_trans(y[j], p + row_block(j, last) * step);
#pragma unroll
        for (int j = 0; j < 4; j++) mma16(c[0], x[j], y[j][0], y[j][1]), mma16(c[1], x[j], y[j][2], y[j][3]);
    }
};

#else

#define SHORT_BLOCKS 4
#define SHORT_BLOCKS_BACK 2

__device__ __forceinline__ void store2(elem* p, float x, float y) { *(float2*)p = make_float2(x, y); }
__device__ __forceinline__ void store2_rounded(elem* p, float x, float y) { store2(p, tf32(x), tf32(y)); }
__device__ __forceinline__ void store_rounded(elem* p, float4 x) {
    *(float4*)p = make_float4(tf32(x.x), tf32(x.y), tf32(x.z), tf32(x.w));
}

// c += 16 rows of a · (16 N rows of b from block `begin` on)ᵀ.
template <int N>
__device__ __forceinline__ void rows_by_rows(float (&c)[2 * N][4], const elem* a, const elem* b, int step, int width,
                                             int begin, int last) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const elem *p = a + g * step + t, *q = b + g * step + t;
#pragma unroll 1
    for (int k = 0; k < width; k += 8) {
        float x[4] = {p[k], p[8 * step + k], p[k + 4], p[8 * step + k + 4]}, y[2 * N][2];
#pragma unroll
        for (int j = 0; j < 2 * N; j++) {
            const elem* row = q + (row_block(begin + j / 2, last) + j % 2 * 8) * step + k;
            y[j][0] = row[0], y[j][1] = row[4];
        }
#pragma unroll
        for (int j = 0; j < 2 * N; j++) mma(c[j], x, y[j][0], y[j][1]);
    }
}

// 16 rows of up to 64 attention weights, as the left operand of a product. In each block of 8 columns, column t of the
// operand is column 2 t of the result it comes from, and column t + 4 the next, so that no lane exchange is needed.
struct Weights {
    float x[8][4];

    __device__ __forceinline__ void pack(const float (&s)[8][4]) {
#pragma unroll
        for (int j = 0; j < 8; j++)
            x[j][0] = tf32(s[j][0]), x[j][1] = tf32(s[j][2]), x[j][2] = tf32(s[j][1]), x[j][3] = tf32(s[j][3]);
    }

    // Loads rows first.. of what `store_weights` has stored.
    __device__ __forceinline__ void load_from(const elem* from, int first) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const elem* p = from + (first + g) * TILE_STRIDE + 2 * t;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float2 low = *(const float2*)(p + 8 * j), high = *(const float2*)(p + 8 * TILE_STRIDE + 8 * j);
            x[j][0] = low.x, x[j][1] = high.x, x[j][2] = low.y, x[j][3] = high.y;
        }
    }

    // Loads columns first.. of it, as rows.
    __device__ __forceinline__ void load_transposed(const elem* stored, int first, int n_rows) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const elem* p = stored + 2 * t * TILE_STRIDE + first + g;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            bool is_real = 16 * (j / 2) < n_rows;
            const elem* at = p + (is_real ? 8 * j : 0) * TILE_STRIDE;
            x[j][0] = is_real ? at[0] : 0.0f, x[j][1] = is_real ? at[8] : 0.0f;
            x[j][2] = is_real ? at[TILE_STRIDE] : 0.0f, x[j][3] = is_real ? at[TILE_STRIDE + 8] : 0.0f;
        }
    }

    // c = weights · 16 columns of the tile.
    __device__ __forceinline__ void times(float (&c)[2][4], const elem* tile, int step, int last) const {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const elem* p = tile + 2 * t * step + g;
        float y[8][4];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const elem* q = p + (row_block(j / 2, last) + j % 2 * 8) * step;
            y[j][0] = q[0], y[j][1] = q[step], y[j][2] = q[8], y[j][3] = q[step + 8];
        }
#pragma unroll
        for (int j = 0; j < 8; j++) mma(c[0], x[j], y[j][0], y[j][1]), mma(c[1], x[j], y[j][2], y[j][3]);
    }
};

#endif

// Stores 16 rows and 32 columns of weights in shared memory, for other warps of the block.
__device__ __forceinline__ void store_weights(elem* to, int first, int col, const float (&s)[4][4]) {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    elem* p = to + (first + g) * TILE_STRIDE + col + 2 * t;
#pragma unroll
    for (int b = 0; b < 4; b++) {
        store2_rounded(p + 8 * b, s[b][0], s[b][1]);
        store2_rounded(p + 8 * TILE_STRIDE + 8 * b, s[b][2], s[b][3]);
    }
}
