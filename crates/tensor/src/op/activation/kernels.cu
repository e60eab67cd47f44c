// Activation functions and their derivatives.

// y = f(x), and the derivatives into `slopes` if that is not null.
extern "C" __global__ void activate(const float* x, float* y, float* slopes, int kind, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        float2 value = activation(kind, x[i]);
        y[i] = value.x;
        if (slopes) slopes[i] = value.y;
    }
}
