//! Temporal walks as embeddings.

use ctdg::walks::WalkConfig;
use hopedgn_tensor::{Activation, Tape, Var};

use super::{Linear, ParamBuilder};
use crate::Result;

/// Embedding of the [walks](ctdg::walks) `x` of two nodes: `W₂ ReLU(W₁ x + b₁) + b₂`.
///
/// ```
/// # use hopedgn::{ctdg::walks::WalkConfig, nn::ParamBuilder, tensor::{Parameters, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// let config = WalkConfig { layers: 1, width: 16, decay: 0.0 };
/// let embedding = ParamBuilder::new(&mut parameters, 0).walks(&config, 8)?;
/// let mut tape = Tape::new(&parameters);
/// let walks = tape.input(Tensor::matrix(3, config.n_features(), vec![0.5; 30])?);
/// let embedded = embedding.forward(&mut tape, walks)?; // [3, 8]
/// assert_eq!(tape.read(embedded)?.len(), 24);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WalkEmbedding {
    hidden: Linear,
    out: Linear,
}

impl ParamBuilder<'_> {
    /// An embedding of this width. As in TPNet, where each inner product is there twice, the hidden layer is four times as wide as all of
    /// them.
    pub fn walks(&mut self, config: &WalkConfig, width: usize) -> Result<WalkEmbedding> {
        let n_products = config.n_rows() * config.n_rows();
        Ok(WalkEmbedding {
            hidden: self.linear_with_fan_in("walks.hidden", config.n_features(), n_products, 4 * n_products)?,
            out: self.linear("walks.out", 4 * n_products, width)?,
        })
    }
}

impl WalkEmbedding {
    /// `[M, width]` for `walks` `[M, W]`.
    pub fn forward(self, tape: &mut Tape<'_>, walks: Var) -> Result<Var> {
        let hidden = self.hidden.forward(tape, walks, Some(Activation::Relu))?; // [M, 4n²]
        self.out.forward(tape, hidden, None)
    }
}
