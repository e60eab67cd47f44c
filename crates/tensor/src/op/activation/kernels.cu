// Activation functions and their derivatives.

// y = f(x), slopes beside it if asked for.
extern "C" __global__ void activate(const float* x, float* y, float* slopes, int kind, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        float2 value = activation(kind, x[i]);
        y[i] = value.x;
        if (slopes) slopes[i] = value.y;
    }
}
