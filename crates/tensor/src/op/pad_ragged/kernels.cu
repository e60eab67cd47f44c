// Ragged lists as padded rows.

// Pads lists to `max_len` values each, `per_row` values in a row, with `fill_value`; one warp for each row. Rows wider than
// `per_row` continue with the mask.
extern "C" __global__ void pad_ragged(const float* values, const u32* starts, float* to, int max_len, int per_row, int width,
                                 float fill_value, int rows) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    to += (u64)row * width;
    starts += (u64)row * (per_row / max_len);
    for (int at = threadIdx.x; at < per_row; at += 32) {
        int list = at / max_len;
        u32 value = starts[list] + at % max_len;
        bool is_there = value < starts[list + 1];
        to[at] = is_there ? values[value] : fill_value;
        if (width > per_row) to[per_row + at] = is_there ? 1.0f : 0.0f;
    }
}

// The gradient of the values.
extern "C" __global__ void pad_ragged_backward(const float* grad, const u32* starts, float* to, int max_len, int per_row,
                                      int width, int add, int rows) {
    WAIT_FOR_PREVIOUS_KERNELS;
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    grad += (u64)row * width;
    starts += (u64)row * (per_row / max_len);
    for (int at = threadIdx.x; at < per_row; at += 32) {
        int list = at / max_len;
        u32 value = starts[list] + at % max_len;
        if (value < starts[list + 1]) put_value(to, value, grad[at], add);
    }
}
