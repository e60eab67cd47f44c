//! Node classifier: an MLP with two hidden layers over node embeddings.
//!
//! Shapes: `B` nodes, `d` width of an embedding.

use std::sync::Arc;

use hopedgn_tensor::{Activation, Dropout, Parameters, Tape, Tensor, Var};

use crate::Result;
use crate::nn::{Linear, ParamBuilder};

/// Widths of the hidden layers, DyGLib's.
const HIDDEN: [usize; 2] = [80, 10];

/// The layers; their weights are in [`Parameters`].
///
/// ```
/// use hopedgn::{classify::Classifier, tensor::{Dropout, Tape, Tensor}};
///
/// let (classifier, parameters) = Classifier::new(4, 0)?;
/// let mut tape = Tape::new(&parameters);
/// let nodes = Tensor::matrix(3, 4, vec![0.5; 12])?.into(); // [3, 4]
/// let logits = classifier.logits(&mut tape, &nodes, Dropout::NONE)?; // [3, 1]
/// assert_eq!(tape.read(logits)?.len(), 3);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Classifier {
    hidden: [Linear; 2],
    out: Linear,
}

impl Classifier {
    /// A classifier of embeddings of `width` values, with weights drawn from `seed`.
    pub fn new(width: usize, seed: u64) -> Result<(Self, Parameters)> {
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let classifier = Self {
            hidden: [
                layers.linear("classifier.1", width, HIDDEN[0])?,
                layers.linear("classifier.2", HIDDEN[0], HIDDEN[1])?,
            ],
            out: layers.linear("classifier.3", HIDDEN[1], 1)?,
        };
        Ok((classifier, parameters))
    }

    /// The logit of each of `nodes` `[B, d]`, `[B, 1]`.
    pub fn logits(&self, tape: &mut Tape<'_>, nodes: &Arc<Tensor>, dropout: Dropout) -> Result<Var> {
        let mut x = tape.input(Arc::clone(nodes));
        for (layer, place) in self.hidden.iter().zip(0..) {
            x = layer.forward(tape, x, Some(Activation::Relu))?; // [B, 80], then [B, 10]
            x = tape.dropout(x, dropout.site(place));
        }
        self.out.forward(tape, x, None)
    }
}
