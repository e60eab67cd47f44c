// Recurrent cells after their linear layers, elementwise: rows of d values, with all gates of a row adjacent.

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// Writes a gradient unless `to` is null.
__device__ __forceinline__ void put_grad(float* to, u64 i, float x, int add) {
    if (to) put_value(to, i, x, add);
}

// The gates r, z, n go to `gates` unless that is null.
extern "C" __global__ void gru(const float* input, const float* hidden, const float* h, float* out, float* gates,
                               int d, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        u64 at = row_of(i, d) * 3 * d + column_of(i, d);
        float r = sigmoid(input[at] + hidden[at]), z = sigmoid(input[at + d] + hidden[at + d]);
        float fresh = tanhf(input[at + 2 * d] + r * hidden[at + 2 * d]);
        out[i] = fresh + z * (h[i] - fresh);
        if (gates) gates[at] = r, gates[at + d] = z, gates[at + 2 * d] = fresh;
    }
}

// Bit 0 of `add` is for the input, 1 for the hidden part, 2 for h.
extern "C" __global__ void gru_backward(const float* grads, const float* gates, const float* hidden, const float* h,
                                        float* d_input, float* d_hidden, float* d_h, int add, int d, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        u64 at = row_of(i, d) * 3 * d + column_of(i, d);
        float r = gates[at], z = gates[at + d], fresh = gates[at + 2 * d], grad = grads[i];
        float before_tanh = grad * (1.0f - z) * (1.0f - fresh * fresh);
        float d_r = before_tanh * hidden[at + 2 * d] * r * (1.0f - r);
        float d_z = grad * (h[i] - fresh) * z * (1.0f - z);
        put_grad(d_input, at, d_r, add & 1);
        put_grad(d_input, at + d, d_z, add & 1);
        put_grad(d_input, at + 2 * d, before_tanh, add & 1);
        put_grad(d_hidden, at, d_r, add & 2);
        put_grad(d_hidden, at + d, d_z, add & 2);
        put_grad(d_hidden, at + 2 * d, before_tanh * r, add & 2);
        put_grad(d_h, i, grad * z, add & 4);
    }
}

// h, then c. The gates i, f, g, o go to `acts` unless that is null; a null `c` is 0.
extern "C" __global__ void lstm(const float* gates, const float* c, float* out, float* acts, int d, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        u64 row = row_of(i, d);
        int col = column_of(i, d);
        u64 at = row * 4 * d + col, to = row * 2 * d + col;
        float in = sigmoid(gates[at]), forget = sigmoid(gates[at + d]);
        float fresh = tanhf(gates[at + 2 * d]), open = sigmoid(gates[at + 3 * d]);
        float next = in * fresh + (c ? forget * c[i] : 0.0f);
        out[to] = open * tanhf(next);
        out[to + d] = next;
        if (acts) acts[at] = in, acts[at + d] = forget, acts[at + 2 * d] = fresh, acts[at + 3 * d] = open;
    }
}

// Bit 0 of `add` is for the gates, 1 for c.
extern "C" __global__ void lstm_backward(const float* grads, const float* acts, const float* out, const float* c,
                                         float* d_gates, float* d_c, int add, int d, u64 n) {
    WAIT_FOR_PREVIOUS_KERNELS;
    FOR(i, n) {
        u64 row = row_of(i, d);
        int col = column_of(i, d);
        u64 at = row * 4 * d + col, from = row * 2 * d + col;
        float in = acts[at], forget = acts[at + d], fresh = acts[at + 2 * d], open = acts[at + 3 * d];
        float d_h = grads[from], top = tanhf(out[from + d]);
        float down = grads[from + d] + d_h * open * (1.0f - top * top);
        put_grad(d_gates, at, down * fresh * in * (1.0f - in), add & 1);
        put_grad(d_gates, at + d, c ? down * c[i] * forget * (1.0f - forget) : 0.0f, add & 1);
        put_grad(d_gates, at + 2 * d, down * in * (1.0f - fresh * fresh), add & 1);
        put_grad(d_gates, at + 3 * d, d_h * top * open * (1.0f - open), add & 1);
        put_grad(d_c, i, down * forget, add & 2);
    }
}
