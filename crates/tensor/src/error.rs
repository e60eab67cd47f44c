//! The error type: which operation or tensor, what was found, what is needed.

use crate::Shape;

/// Result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operand does not fit its operation.
    #[error("{operation}: {what} has shape {got}, but {needed} is needed")]
    Shape {
        /// The operation.
        operation: &'static str,
        /// The operand.
        what: &'static str,
        /// Its shape.
        got: Shape,
        /// The shape or rule it should follow.
        needed: String,
    },
    /// A tensor was built from too few or too many values.
    #[error("a tensor of shape {shape} holds {} values, but {count} were given", .shape.len())]
    Count {
        /// The shape.
        shape: Shape,
        /// The number of values given.
        count: usize,
    },
    /// A row index points past the end.
    #[error("{operation}: index {index} at position {position} is past the last of {rows} rows")]
    Index {
        /// The operation.
        operation: &'static str,
        /// Where in the list of indices.
        position: usize,
        /// The index.
        index: u32,
        /// The number of rows there are.
        rows: usize,
    },
    /// A row index that occurs twice where indices must be distinct.
    #[error("{operation}: row {index} occurs more than once")]
    DuplicateIndex {
        /// The operation.
        operation: &'static str,
        /// The row.
        index: u32,
    },
    /// An operand is on another device than the tape.
    #[error("{operation}: the operand is on another device than the tape")]
    OtherDevice {
        /// The operation.
        operation: &'static str,
    },
    /// Offsets of a ragged batch that do not start at 0, or decrease.
    #[error("offsets of a ragged batch start at 0 and never decrease, but offset {position} is {offset}")]
    Offsets {
        /// Which offset.
        position: usize,
        /// Its value.
        offset: usize,
    },
    /// Relations between tokens that do not fit their sequences.
    #[error("found {found}, expected {expected}")]
    Relations {
        /// What was given.
        found: String,
        /// What fits.
        expected: String,
    },
    /// A dropout rate outside `[0, 1)`.
    #[error("a dropout rate lies in [0, 1), but {rate} was given")]
    Rate {
        /// The rate given.
        rate: f32,
    },
    /// Two parameters with the same name.
    #[error("there is already a parameter `{name}`; give each layer its own prefix")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A checkpoint lacks a tensor.
    #[error("the checkpoint has no tensor `{name}`; it was saved from a different model")]
    Missing {
        /// The tensor's name.
        name: String,
    },
    /// A checkpoint holds a tensor that the model does not have.
    #[error("the checkpoint holds `{name}`, which this model does not have; it was saved from a different model")]
    Extra {
        /// The tensor's name.
        name: String,
    },
    /// A tensor of a checkpoint has a different shape than the parameter of that name.
    #[error("`{name}` has shape {got:?} in the checkpoint, but {needed} in the model; compare the sizes of both")]
    CheckpointShape {
        /// The tensor's name.
        name: String,
        /// Its shape in the checkpoint.
        got: Vec<usize>,
        /// Its shape in the model.
        needed: Shape,
    },
    /// A tensor of a checkpoint has the wrong element type.
    #[error("`{name}` holds {got} in the checkpoint, but {needed} is needed")]
    CheckpointKind {
        /// The tensor's name.
        name: String,
        /// The element type found.
        got: String,
        /// The element type needed.
        needed: &'static str,
    },
    /// A checkpoint whose content changed since it was saved.
    #[error("found the checksum {found}, expected {expected}; its values are not those that were saved")]
    Checksum {
        /// SHA-256 of the content.
        found: String,
        /// SHA-256 when it was saved.
        expected: String,
    },
    /// A checkpoint of a newer version.
    #[error("found format {found}, expected at most {known}; a newer version wrote the file: update the program")]
    NewerFormat {
        /// The format of the file.
        found: u64,
        /// The newest format that this version reads.
        known: u64,
    },
    /// A weight that is no number.
    #[error("found {value} among the values of `{name}`, expected finite numbers; the weights are damaged")]
    NonFinite {
        /// The tensor's name.
        name: String,
        /// NaN or an infinity.
        value: f32,
    },
    /// There is no usable GPU.
    #[error("no GPU can be used: {reason}")]
    NoGpu {
        /// What is missing.
        reason: String,
    },
    /// The GPU or one of its libraries failed.
    #[error("the GPU failed to {doing}: {detail}; nvidia-smi shows its state")]
    Cuda {
        /// The operation or the kernel.
        doing: &'static str,
        /// The error of the driver or library.
        detail: String,
    },
    /// The GPU has too little memory.
    #[error(
        "out of GPU memory: {wanted} bytes requested, {free} of {total} free; another process may be using the GPU, \
         and smaller batches need less"
    )]
    GpuMemory {
        /// Bytes requested.
        wanted: usize,
        /// Bytes free.
        free: usize,
        /// Bytes in all.
        total: usize,
    },
    /// An operation that only the CPU supports.
    #[error("{operation}: not supported on the GPU, only on the CPU")]
    NotOnGpu {
        /// The operation.
        operation: &'static str,
    },
    /// A process of the group is gone.
    #[error("rank {rank} {detail}; start it again with the same RANK, and all go on from the last step")]
    LostRank {
        /// The process, from 0.
        rank: usize,
        /// What was noticed.
        detail: String,
    },
    /// A process of the group ended with an error.
    #[error("rank {rank} failed: {detail}")]
    FailedRank {
        /// The process, from 0.
        rank: usize,
        /// Its error.
        detail: String,
    },
    /// The processes do not come together.
    #[error("no process group: {detail}")]
    NoGroup {
        /// What was found, expected, and what to do.
        detail: String,
    },
    /// The bytes are not a safetensors file.
    #[error("not a readable safetensors file: {detail}")]
    Safetensors {
        /// The error of the library.
        detail: String,
    },
}

impl From<safetensors::SafeTensorError> for Error {
    fn from(error: safetensors::SafeTensorError) -> Self {
        Self::Safetensors { detail: error.to_string() }
    }
}

impl Error {
    /// The kind of failure as one stable word, for programs: `gpu-memory`, `checkpoint-checksum`, ….
    ///
    /// Messages may change between versions, these words do not.
    ///
    /// ```
    /// use hopedgn_tensor::{Shape, Tensor};
    ///
    /// let error = Tensor::new(Shape::Matrix(2, 3), vec![0.0; 5]).unwrap_err();
    /// assert_eq!(error.code(), "tensor-count");
    /// ```
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Shape { .. } => "tensor-shape",
            Self::Count { .. } => "tensor-count",
            Self::Index { .. } => "tensor-index",
            Self::DuplicateIndex { .. } => "tensor-duplicate-index",
            Self::OtherDevice { .. } => "tensor-device",
            Self::Offsets { .. } => "tensor-offsets",
            Self::Relations { .. } => "tensor-relations",
            Self::Rate { .. } => "dropout-rate",
            Self::DuplicateName { .. } => "duplicate-parameter",
            Self::Missing { .. } => "checkpoint-missing-tensor",
            Self::Extra { .. } => "checkpoint-extra-tensor",
            Self::CheckpointShape { .. } => "checkpoint-shape",
            Self::CheckpointKind { .. } => "checkpoint-type",
            Self::Checksum { .. } => "checkpoint-checksum",
            Self::NewerFormat { .. } => "checkpoint-newer",
            Self::NonFinite { .. } => "checkpoint-not-finite",
            Self::NoGpu { .. } => "no-gpu",
            Self::Cuda { .. } => "gpu-failed",
            Self::GpuMemory { .. } => "gpu-memory",
            Self::NotOnGpu { .. } => "not-on-gpu",
            Self::LostRank { .. } => "lost-rank",
            Self::FailedRank { .. } => "failed-rank",
            Self::NoGroup { .. } => "no-process-group",
            Self::Safetensors { .. } => "checkpoint-unreadable",
        }
    }

    /// Whether the GPU is the reason, rather than the input.
    #[must_use]
    pub fn is_gpu_error(&self) -> bool {
        matches!(self, Self::NoGpu { .. } | Self::Cuda { .. } | Self::GpuMemory { .. } | Self::NotOnGpu { .. })
    }
}
