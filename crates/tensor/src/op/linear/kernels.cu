// Bias, activation and outer products of linear layers.

// x = f(x + bias), and the derivatives into `slopes` if that is not null.
extern "C" __global__ void bias_activate(float* x, const float* bias, float* slopes, int kind, int cols, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        float2 y = activation(kind, bias ? __fadd_rn(x[i], bias[column_of(i, cols)]) : x[i]);
        x[i] = y.x;
        if (slopes) slopes[i] = y.y;
    }
}

// f(x · w + b) for one value a row, in float whatever GEMMs read, since times are large.
extern "C" __global__ void outer_linear(const float* x, const float* w, const float* bias, float* y, float* slopes, int kind,
                                 int cols, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        int col = column_of(i, cols);
        float product = __fmul_rn(x[row_of(i, cols)], w[col]);
        float2 value = activation(kind, bias ? __fadd_rn(product, bias[col]) : product);
        y[i] = value.x;
        if (slopes) slopes[i] = value.y;
    }
}
