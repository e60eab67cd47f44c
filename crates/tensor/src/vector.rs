//! Vectorised loops, compiled from one source for any processor, for AVX2 and FMA, and for AVX-512. All give the same bits.
//!
//! The choice is made at run time. A function must be a plain loop over slices, and what it calls for each value must be
//! `#[inline(always)]`, or the call is compiled for 128-bit registers.

/// Whether this processor has AVX2 and FMA.
pub(crate) fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Whether this processor has [AVX2](has_avx2), and AVX-512 as all servers with it do.
pub(crate) fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::is_x86_feature_detected as has;
        has_avx2() && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Defines functions that choose between their compilations when called.
macro_rules! vectorised {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $kind:ty),* $(,)?) $body:block)+) => {$(
        $(#[$meta])*
        $vis fn $name($($arg: $kind),*) {
            // All compilations are of this very body.
            #[inline(always)]
            fn any($($arg: $kind),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $kind),*) {
                any($($arg),*);
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512($($arg: $kind),*) {
                any($($arg),*);
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::vector::has_avx512() {
                #[expect(unsafe_code, reason = "the features were detected just above")]
                // SAFETY: `avx512` needs what was detected.
                unsafe {
                    avx512($($arg),*);
                }
                return;
            }
            #[cfg(target_arch = "x86_64")]
            if $crate::vector::has_avx2() {
                #[expect(unsafe_code, reason = "the features were detected just above")]
                // SAFETY: `avx2` needs AVX2 and FMA, which this processor has.
                unsafe {
                    avx2($($arg),*);
                }
                return;
            }
            any($($arg),*);
        }
    )+};
}

pub(crate) use vectorised;

vectorised! {
    /// `sum += term`.
    pub(crate) fn add_to(sum: &mut [f32], term: &[f32]) {
        for (sum, term) in sum.iter_mut().zip(term) {
            *sum += term;
        }
    }

    /// `values *= factors`.
    pub(crate) fn multiply(values: &mut [f32], factors: &[f32]) {
        for (value, factor) in values.iter_mut().zip(factors) {
            *value *= factor;
        }
    }

    /// Replaces each of `values` by ln(1 + x); negative values and NaN stay as they are.
    pub fn ln_1p(values: &mut [f32]) {
        for value in values {
            *value = crate::math::ln_1p(*value);
        }
    }

    /// `sums += a · b`, elementwise.
    pub(crate) fn add_products(sums: &mut [f32], a: &[f32], b: &[f32]) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }

    /// `sum += term · factor`.
    pub(crate) fn add_scaled(sum: &mut [f32], term: &[f32], factor: f32) {
        for (sum, term) in sum.iter_mut().zip(term) {
            *sum += term * factor;
        }
    }

    /// Adds `row` to each row of `rows`.
    pub(crate) fn add_row(rows: &mut [f32], row: &[f32]) {
        for each in rows.chunks_exact_mut(row.len().max(1)) {
            for (value, term) in each.iter_mut().zip(row) {
                *value += term;
            }
        }
    }
}
