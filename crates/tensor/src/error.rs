//! The crate's one error: which operation or tensor, what was found, what is needed.

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
        /// Which of its operands.
        what: &'static str,
        /// Its shape.
        got: Shape,
        /// The shape or rule it should follow.
        needed: String,
    },
    /// A tensor was built from too few or too many values.
    #[error("a tensor of shape {shape} holds {} values, but {count} were given", .shape.len())]
    Count {
        /// The shape asked for.
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
    /// A row that is to be written twice at once.
    #[error("{operation}: row {index} is named more than once")]
    Repeated {
        /// The operation.
        operation: &'static str,
        /// The row.
        index: u32,
    },
    /// A table of one device was given to another.
    #[error("{operation}: the bank is not on the device that computes")]
    Elsewhere {
        /// The operation.
        operation: &'static str,
    },
    /// Offsets of a ragged batch do not start at 0 or fall somewhere.
    #[error("offsets of a ragged batch start at 0 and never fall, but offset {position} is {offset}")]
    Offsets {
        /// Which offset.
        position: usize,
        /// Its value.
        offset: usize,
    },
    /// A dropout rate outside `[0, 1)`.
    #[error("a dropout rate lies in [0, 1), but {rate} was given")]
    Rate {
        /// The rate given.
        rate: f32,
    },
    /// Two parameters of one name.
    #[error("there is already a parameter `{name}`; give each layer its own prefix")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A checkpoint lacks a tensor.
    #[error("the checkpoint has no tensor `{name}`; it was saved from a model of another form")]
    Missing {
        /// The tensor's name.
        name: String,
    },
    /// A checkpoint holds a tensor nobody asks for.
    #[error("the checkpoint holds `{name}`, which this model does not have; it was saved from a model of another form")]
    Extra {
        /// The tensor's name.
        name: String,
    },
    /// A tensor of a checkpoint has another shape than the parameter of that name.
    #[error("`{name}` has shape {got:?} in the checkpoint, but {needed} in the model; check the sizes of both")]
    CheckpointShape {
        /// The tensor's name.
        name: String,
        /// Its shape in the checkpoint.
        got: Vec<usize>,
        /// Its shape in the model.
        needed: Shape,
    },
    /// A tensor of a checkpoint is not made of the numbers expected.
    #[error("`{name}` holds {got} in the checkpoint, but {needed} is needed")]
    CheckpointKind {
        /// The tensor's name.
        name: String,
        /// The kind of number found.
        got: String,
        /// The kind of number needed.
        needed: &'static str,
    },
    /// There is no GPU that can be used.
    #[error("no GPU can be used: {reason}; compute with --device cpu")]
    NoGpu {
        /// What is missing.
        reason: String,
    },
    /// The GPU or one of its libraries failed.
    #[error("the GPU failed to {doing}: {detail}; go on with --device cpu, or look at the card with nvidia-smi")]
    Cuda {
        /// What it was to do, or the kernel it was to run.
        doing: &'static str,
        /// What it said.
        detail: String,
    },
    /// The GPU has too little memory.
    #[error(
        "the GPU has no room for {wanted} bytes more: {free} of {total} are free; another program may be using it, \
         or make train.batch smaller"
    )]
    GpuMemory {
        /// Bytes asked for.
        wanted: usize,
        /// Bytes free.
        free: usize,
        /// Bytes in all.
        total: usize,
    },
    /// An operation that there is on the CPU only.
    #[error("{operation}: there is no such thing on the GPU; compute with --device cpu")]
    NotOnGpu {
        /// The operation.
        operation: &'static str,
    },
    /// Bytes that are not a safetensors file.
    #[error("not a readable safetensors file: {detail}")]
    Safetensors {
        /// What the library said.
        detail: String,
    },
}

impl From<safetensors::SafeTensorError> for Error {
    fn from(error: safetensors::SafeTensorError) -> Self {
        Self::Safetensors { detail: error.to_string() }
    }
}

impl Error {
    /// Whether the GPU, rather than what it was given, is the reason.
    #[must_use]
    pub fn is_of_gpu(&self) -> bool {
        matches!(self, Self::NoGpu { .. } | Self::Cuda { .. } | Self::GpuMemory { .. } | Self::NotOnGpu { .. })
    }
}
