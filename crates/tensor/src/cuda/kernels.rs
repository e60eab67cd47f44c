//! CUDA kernels: their source, and typed declarations for their launches.
//!
//! Every kernel is declared once more in Rust with [`kernels!`], which makes a function of its name and parameters that
//! returns a [`Call`]. So the compiler checks every launch against the Rust declaration, and a test checks the Rust
//! declarations against the source.

use crate::op;

/// The source of all kernels. Helpers precede the kernels that call them.
pub(super) const SOURCE: &str = concat!(
    include_str!("kernels/common.cu"),
    include_str!("kernels/reductions.cu"),
    include_str!("kernels/adam.cu"),
    include_str!("../op/rows/kernels.cu"),
    include_str!("../op/layout/kernels.cu"),
    include_str!("../op/elementwise/kernels.cu"),
    include_str!("../op/activation/kernels.cu"),
    include_str!("../op/dropout/kernels.cu"),
    include_str!("../op/pad_ragged/kernels.cu"),
    include_str!("../op/segment/kernels.cu"),
    include_str!("../op/softmax/kernels.cu"),
    include_str!("../op/layer_norm/kernels.cu"),
    include_str!("../op/loss/kernels.cu"),
    include_str!("../op/linear/kernels.cu"),
    include_str!("../op/recurrent/kernels.cu"),
    include_str!("../op/cross_attention/kernels.cu"),
    include_str!("../op/cross_attention/tile.cu"),
    include_str!("../op/encoder/kernels.cu"),
    include_str!("../op/encoder/bias.cu"),
    include_str!("../op/encoder/attention.cu"),
    include_str!("kernels/mma.cu"),
    include_str!("../op/encoder/attention_mma.cu"),
    include_str!("../op/encoder/attention_short.cu"),
    include_str!("../op/linear/skinny.cu"),
);

/// Every kernel of the source, by operation.
const DECLARED: [&[Kernel]; 18] = [
    KERNELS,
    op::rows::KERNELS,
    op::layout::KERNELS,
    op::elementwise::KERNELS,
    op::activation::KERNELS,
    op::dropout::KERNELS,
    op::pad_ragged::KERNELS,
    op::segment::KERNELS,
    op::softmax::KERNELS,
    op::layer_norm::KERNELS,
    op::loss::KERNELS,
    op::linear::KERNELS,
    op::linear::SKINNY_KERNELS,
    op::recurrent::KERNELS,
    op::cross_attention::KERNELS,
    op::encoder::KERNELS,
    op::encoder::ATTENTION_KERNELS,
    op::encoder::BIAS_KERNELS,
];

pub(super) fn all() -> impl Iterator<Item = &'static Kernel> {
    DECLARED.into_iter().flatten()
}

/// The declaration of a kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    /// The Rust type of each parameter, by name.
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with the source by a test"))]
    pub(crate) params: &'static [&'static str],
}

impl Kernel {
    /// Whether its blocks need more shared memory than the 48 KiB that every kernel may use.
    pub(super) fn needs_large_shared_memory(&self) -> bool {
        self.name.starts_with("self_attention") || self.name == "skinny_linear_backward"
    }
}

/// A kernel with its arguments, ready to be launched.
#[derive(Clone, Copy)]
pub(crate) struct Call<const N: usize> {
    pub(super) name: &'static str,
    pub(super) args: [Arg; N],
}

impl<const N: usize> Call<N> {
    pub(crate) fn new(name: &'static str, args: [Arg; N]) -> Self {
        Self { name, args }
    }
}

// The types of kernel parameters, as the declarations name them.

/// A device pointer; 0 is null.
pub(crate) type Ptr = u64;
/// A CUDA `int`, which kernels only give values that are not negative.
pub(crate) type Int = u32;
pub(crate) type U64 = u64;
pub(crate) type Float = f32;
pub(crate) type Double = f64;
/// [`Dropout::mask_words`](crate::Dropout::mask_words).
pub(crate) type Mask = [u32; 4];
/// The end columns of up to four concatenated matrices.
pub(crate) type Ends = [u32; 4];
/// The row strides of queries, keys, values and outputs.
pub(crate) type Strides = [u32; 4];
/// The numbers of sequences, classes, tokens and pairs of relations.
pub(crate) type RelationSizes = [u32; 4];
/// The scalars of an Adam step.
pub(crate) type Update = [f32; 7];

/// An argument of a kernel: any value of at most 32 bytes.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(crate) struct Arg(#[expect(dead_code, reason = "read by the driver")] [u32; 8]);

impl From<u64> for Arg {
    #[expect(clippy::cast_possible_truncation, reason = "both halves are stored")]
    fn from(x: u64) -> Self {
        Self([x as u32, (x >> 32) as u32, 0, 0, 0, 0, 0, 0])
    }
}

impl From<u32> for Arg {
    fn from(x: u32) -> Self {
        u64::from(x).into()
    }
}

impl From<f32> for Arg {
    fn from(x: f32) -> Self {
        x.to_bits().into()
    }
}

impl From<f64> for Arg {
    fn from(x: f64) -> Self {
        x.to_bits().into()
    }
}

impl From<[u32; 4]> for Arg {
    fn from([a, b, c, d]: [u32; 4]) -> Self {
        Self([a, b, c, d, 0, 0, 0, 0])
    }
}

impl From<[f32; 7]> for Arg {
    fn from(x: [f32; 7]) -> Self {
        let mut bits = [0; 8];
        bits.iter_mut().zip(x).for_each(|(bits, x)| *bits = x.to_bits());
        Self(bits)
    }
}

/// Declares kernels: a list of their declarations, and for each a function that makes a [`Call`] of its arguments.
macro_rules! kernels {
    ($vis:vis $list:ident: $($(#[$meta:meta])* fn $name:ident($($param:ident: $kind:ident),* $(,)?);)+) => {
        $vis const $list: &[$crate::cuda::Kernel] =
            &[$($crate::cuda::Kernel { name: stringify!($name), params: &[$(stringify!($kind)),*] }),+];

        $(
            $(#[$meta])*
            #[expect(clippy::allow_attributes, reason = "not every kernel has many parameters")]
            #[allow(clippy::too_many_arguments, reason = "the parameters of the kernel")]
            $vis fn $name(
                $($param: $crate::cuda::param::$kind),*
            ) -> $crate::cuda::Call<{ [$(stringify!($param)),*].len() }> {
                $crate::cuda::Call::new(stringify!($name), [$($crate::cuda::Arg::from($param)),*])
            }
        )+
    };
}
pub(crate) use kernels;

kernels! {
    pub(crate) KERNELS:
    /// `to = from` in the element type of GEMM operands.
    fn f32_to_elem(from: Ptr, to: Ptr, n: U64);
    /// `to += from`.
    fn accumulate(to: Ptr, from: Ptr, n: U64);
    /// Multiplies a layer's gradient by `slopes`, converts it into `copy`, and leaves partial column sums.
    fn finish_linear_grad(
        x: Ptr, slopes: Ptr, copy: Ptr, weights: Ptr, partials: Ptr, rows: Int, cols: Int, strip: Int,
    );
    /// Partial column sums of a matrix of GEMM elements.
    fn column_sums_elem(x: Ptr, partials: Ptr, rows: Int, cols: Int, strip: Int);
    /// Adds partial sums to gradients.
    fn add_partials(all: Ptr, n_all: Int, n_cols: Int);
    /// Sets `flag` where a gradient or the loss is not finite.
    fn check_finite(grads: Ptr, loss: Ptr, report: Ptr, flag: Ptr, n: U64);
    /// One Adam step over all parameters.
    fn adam(
        weights: Ptr, grads: Ptr, means: Ptr, squares: Ptr, copies: Ptr, flag: Ptr, report: Ptr, update: Update, n: U64,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Rust name of a CUDA parameter's type.
    fn rust_type(cuda: &str) -> String {
        let plain = cuda.replace("const ", "");
        match plain.trim() {
            pointer if pointer.ends_with('*') => "Ptr".to_owned(),
            "int" => "Int".to_owned(),
            "u64" => "U64".to_owned(),
            "float" => "Float".to_owned(),
            "double" => "Double".to_owned(),
            structure => structure.to_owned(),
        }
    }

    /// The name and the parameter types of every kernel in the source, and its body's first statement.
    fn source_kernels() -> Vec<(String, Vec<String>, String)> {
        let source = SOURCE.replace("\\\n", "\n");
        let mut found = Vec::new();
        for rest in source.split("extern \"C\" __global__ void").skip(1) {
            let (head, body) = rest.split_once('{').unwrap();
            let head = head.trim();
            // Launch bounds precede the name; their parentheses are balanced.
            let head = head.strip_prefix("__launch_bounds__").map_or(head, |bounds| {
                let mut depth = 0;
                let end = bounds.find(|c| {
                    depth += i32::from(c == '(') - i32::from(c == ')');
                    c == ')' && depth == 0
                });
                &bounds[end.unwrap() + 1..]
            });
            let (name, params) = head.trim().trim_end_matches(')').split_once('(').unwrap();
            // The last word of a parameter is its name, and a `*` belongs to its type.
            let kind =
                |param: &str| rust_type(param.trim().trim_end_matches(|c: char| c.is_alphanumeric() || c == '_'));
            let params: Vec<String> = params.split(',').map(kind).collect();
            let first = body.trim_start().split(';').next().unwrap().to_owned();
            // A macro instantiates these for two row widths.
            let names = match name.strip_suffix("##N") {
                Some(base) => vec![format!("{base}8"), format!("{base}32")],
                None => vec![name.to_owned()],
            };
            found.extend(names.into_iter().map(|name| (name, params.clone(), first.clone())));
        }
        found
    }

    #[test]
    fn declarations_match_the_source() {
        let mut in_source: Vec<(String, Vec<String>)> =
            source_kernels().into_iter().map(|(name, params, _)| (name, params)).collect();
        let own = |kernel: &Kernel| {
            (kernel.name.to_owned(), kernel.params.iter().map(|&param| param.to_owned()).collect::<Vec<_>>())
        };
        let mut declared: Vec<(String, Vec<String>)> = all().map(own).collect();
        in_source.sort();
        declared.sort();
        assert_eq!(declared.len(), 70);
        for (declared, in_source) in declared.iter().zip(&in_source) {
            assert_eq!(declared, in_source, "Rust declaration, CUDA declaration");
        }
        assert_eq!(declared.len(), in_source.len());
    }

    /// A kernel that did not wait could read what the previous kernel has not written yet: launches may overlap.
    #[test]
    fn every_kernel_waits_for_previous_kernels_first() {
        for (name, _, first) in source_kernels() {
            assert_eq!(first, "WAIT_FOR_PREVIOUS_KERNELS", "{name}");
        }
    }

    #[test]
    fn kernel_names_are_unique() {
        let names: std::collections::BTreeSet<&str> = all().map(|kernel| kernel.name).collect();
        assert_eq!(names.len(), all().count());
    }
}
