// Binary cross-entropy with logits.

// The mean binary cross-entropy, summed in double by one block, and the gradients of the logits.
extern "C" __global__ void bce_with_logits(const float* logits, const float* targets, float* loss, float* grads, int n,
                               double count) {
    WAIT_FOR_PREVIOUS_KERNELS;
    __shared__ double sums[256];
    double sum = 0.0;
    for (int i = threadIdx.x; i < n; i += 256) {
        float x = logits[i], y = targets[i];
        sum += (double)(fmaxf(x, 0.0f) - x * y + log1pf(expf(-fabsf(x))));
        grads[i] = (1.0f / (1.0f + expf(-x)) - y) * (float)(1.0 / count);
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) *loss = (float)(sums[0] / count);
}

// grads *= *by.
extern "C" __global__ void scale_values(float* grads, const float* by, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) grads[i] *= *by;
}
