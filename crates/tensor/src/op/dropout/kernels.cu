// Dropout.

// y = x · mask; both may be the same buffer.
extern "C" __global__ void dropout(const float* x, float* y, Mask mask, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) y[i] = x[i] * mask_at(mask, i);
}
