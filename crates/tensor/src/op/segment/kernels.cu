// Sums and means over the rows of each sequence.

// The sum, or with `mean` the mean, of each sequence's rows, in order, each times its weight if there are weights.
extern "C" __global__ void segment_sum(const float* x, const u32* starts, const float* weights, int mean, float* to,
                                       int cols, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        u64 segment = row_of(i, cols);
        int col = column_of(i, cols);
        u32 begin = starts[segment], end = starts[segment + 1];
        float sum = 0.0f;
        for (u32 row = begin; row < end; row++) {
            float value = x[(u64)row * cols + col];
            sum += weights ? value * weights[row] : value;
        }
        to[i] = mean && end > begin ? sum / (float)(end - begin) : sum;
    }
}

// The gradient of the rows.
extern "C" __global__ void segment_sum_backward(const float* grads, const u32* starts, const float* weights, int mean,
                                          float* to, int cols, int add, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        u64 segment = row_of(i, cols);
        int col = column_of(i, cols);
        u32 begin = starts[segment], end = starts[segment + 1];
        float grad = mean && end > begin ? grads[i] / (float)(end - begin) : grads[i];
        for (u32 row = begin; row < end; row++)
            put_value(to, (u64)row * cols + col, weights ? grad * weights[row] : grad, add);
    }
}
