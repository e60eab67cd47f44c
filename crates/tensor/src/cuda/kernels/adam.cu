// The Adam step.

// Sets the flag if a gradient or the loss is NaN or infinite, and copies the loss to the report.
extern "C" __global__ void check_finite(const float* grads, const float* loss, float* report, u32* flag, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    bool bad = false;
    FOR(i, n) bad |= !isfinite(grads[i]);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *report = *loss;
        bad |= !isfinite(*loss);
    }
    if (bad) *flag = 1;
}

struct Update {
    float grad_share, square_decay, square_share, root_correction, eps, step_size, weight_decay;
};

// Adam over all parameters, unless the flag is set; the flag is copied to the report.
extern "C" __global__ void adam(float* weights, const float* grads, float* means, float* squares, elem* copies,
                                const u32* flag, u32* report, Update update, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    if (blockIdx.x == 0 && threadIdx.x == 0) *report = *flag;
    if (*flag) return;
    FOR(i, n) {
        float weight = weights[i];
        float grad = grads[i] + update.weight_decay * weight;
        float mean = means[i] + update.grad_share * (grad - means[i]);
        float square = update.square_decay * squares[i] + update.square_share * grad * grad;
        float root = sqrtf(square) / update.root_correction + update.eps;
        weight -= update.step_size * (mean / root);
        means[i] = mean;
        squares[i] = square;
        weights[i] = weight;
#ifdef BF16
        store(copies + i, weight);
#endif
    }
}
