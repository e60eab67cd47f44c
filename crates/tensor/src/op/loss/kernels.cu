// Binary cross-entropy with logits.

// The sum of the values of 256 threads, in thread 0.
__device__ double block_sum(double value) {
    __shared__ double sums[256];
    sums[threadIdx.x] = value;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    return sums[0];
}

// The mean binary cross-entropy, summed in double by one block, and the gradients of the logits.
extern "C" __global__ void bce_with_logits(const float* logits, const float* targets, float* loss, float* grads, int n,
                               double count) {
    WAIT_FOR_PREVIOUS_KERNELS;
    double sum = 0.0;
    for (int i = threadIdx.x; i < n; i += 256) {
        float x = logits[i], y = targets[i];
        sum += (double)(fmaxf(x, 0.0f) - x * y + log1pf(expf(-fabsf(x))));
        grads[i] = (1.0f / (1.0f + expf(-x)) - y) * (float)(1.0 / count);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) *loss = (float)(sum / count);
}

// The sum of weighted binary cross-entropies, by one block, and the gradients of the logits. Targets, offsets and weights are three
// rows of `terms`.
extern "C" __global__ void weighted_bce_with_logits(const float* logits, const float* terms, float* loss, float* grads,
                                                    int n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    double sum = 0.0;
    for (int i = threadIdx.x; i < n; i += 256) {
        float x = logits[i] + terms[n + i], y = terms[i], weight = terms[2 * n + i];
        sum += (double)weight * (double)(fmaxf(x, 0.0f) - x * y + log1pf(expf(-fabsf(x))));
        grads[i] = (1.0f / (1.0f + expf(-x)) - y) * weight;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) *loss = (float)sum;
}

// grads *= *by.
extern "C" __global__ void scale_values(float* grads, const float* by, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) grads[i] *= *by;
}
