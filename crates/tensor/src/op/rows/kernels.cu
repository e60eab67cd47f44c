// Gather, scatter and repeat of rows.

// Row indices[i] of from, as row i.
extern "C" __global__ void gather(const float* from, const u32* indices, float* to, int cols, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) to[i] = from[(u64)indices[row_of(i, cols)] * cols + column_of(i, cols)];
}

// Row i of from, as row indices[i]; no index occurs twice.
extern "C" __global__ void scatter_rows(const float* from, const u32* indices, float* to, int cols, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) to[(u64)indices[i / cols] * cols + i % cols] = from[i];
}

// to[target] (+)= the sum of the rows rows[starts[target]..starts[target + 1]] of from, in order; a null `rows` is the
// identity.
extern "C" __global__ void sum_row_lists(const float* from, const u32* starts, const u32* rows, float* to, int cols, int n_rows,
                               int add) {
    WAIT_FOR_PREVIOUS_KERNELS;
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
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) to[i] = row[column_of(i, cols)];
}
