// Ragged lists as padded rows.

// Lists of values in `places` places each, `per_row` places in a row, one warp a row: a place without a value holds the
// filler. Rows wider than their places have behind them whether each place holds a value.
extern "C" __global__ void pad_ragged(const float* values, const u32* starts, float* to, int places, int per_row, int width,
                                 float filler, int rows) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    to += (u64)row * width;
    starts += (u64)row * (per_row / places);
    for (int at = threadIdx.x; at < per_row; at += 32) {
        int list = at / places;
        u32 value = starts[list] + at % places;
        bool is_there = value < starts[list + 1];
        to[at] = is_there ? values[value] : filler;
        if (width > per_row) to[per_row + at] = is_there ? 1.0f : 0.0f;
    }
}

// And back, to the values.
extern "C" __global__ void pad_ragged_backward(const float* grad, const u32* starts, float* to, int places, int per_row,
                                      int width, int add, int rows) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    grad += (u64)row * width;
    starts += (u64)row * (per_row / places);
    for (int at = threadIdx.x; at < per_row; at += 32) {
        int list = at / places;
        u32 value = starts[list] + at % places;
        if (value < starts[list + 1]) put_value(to, value, grad[at], add);
    }
}
