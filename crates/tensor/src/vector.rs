//! Loops over values, compiled twice from one source: for any processor, and for one with AVX2 and FMA.
//!
//! Which of the two runs is found out at run time. A function inside must be a plain loop over slices; what it calls for
//! each value must be `#[inline(always)]`, or that call keeps the narrow registers.

/// Whether this processor has the wide registers.
pub(crate) fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Defines functions that choose between their two compilations when called.
macro_rules! vectorised {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $kind:ty),* $(,)?) $body:block)+) => {$(
        $(#[$meta])*
        $vis fn $name($($arg: $kind),*) {
            // The two compilations are of this very body.
            #[inline(always)]
            fn any($($arg: $kind),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn wide($($arg: $kind),*) {
                any($($arg),*);
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::vector::is_wide() {
                #[expect(unsafe_code, reason = "the features were found just above")]
                // SAFETY: `wide` needs AVX2 and FMA, which this processor has.
                unsafe {
                    wide($($arg),*);
                }
                return;
            }
            any($($arg),*);
        }
    )+};
}

pub(crate) use vectorised;

vectorised! {
    /// `sum += term`, value by value.
    pub(crate) fn add_to(sum: &mut [f32], term: &[f32]) {
        for (sum, term) in sum.iter_mut().zip(term) {
            *sum += term;
        }
    }

    /// `values *= factors`, value by value.
    pub(crate) fn multiply(values: &mut [f32], factors: &[f32]) {
        for (value, factor) in values.iter_mut().zip(factors) {
            *value *= factor;
        }
    }

    /// `ln(1 + x)` of each of `values`; those that are negative or no number stay as they are.
    pub fn ln_1p(values: &mut [f32]) {
        for value in values {
            *value = crate::math::ln_1p(*value);
        }
    }

    /// `sum += term · factor`, value by value.
    pub(crate) fn add_scaled(sum: &mut [f32], term: &[f32], factor: f32) {
        for (sum, term) in sum.iter_mut().zip(term) {
            *sum += term * factor;
        }
    }

    /// `row` to each row of `rows`.
    pub(crate) fn add_row(rows: &mut [f32], row: &[f32]) {
        for each in rows.chunks_exact_mut(row.len().max(1)) {
            for (value, term) in each.iter_mut().zip(row) {
                *value += term;
            }
        }
    }
}
