//! Self-attention on the GPU: cross-attention of a batch with itself.

use super::Heads;
use crate::cuda::CudaTape;
use crate::op::cross_attention::{AttentionCall, ColumnSlice};
use crate::{Dropout, Ragged, Result, Shape, Var};

impl CudaTape<'_> {
    pub(crate) fn self_attention(&mut self, qkv: Var, batch: &Ragged, heads: Heads, dropout: Dropout) -> Result<Var> {
        let width = self.shape(qkv).cols();
        let d_model = width / 3;
        let part = |part: usize| ColumnSlice { var: qkv, first: part * d_model, stride: width };
        let call = AttentionCall {
            parts: [part(0), part(1), part(2)],
            queries: batch.clone(),
            keys: batch.clone(),
            heads_as_queries: 1,
            n_heads: heads.0,
            d_key: d_model / heads.0,
            d_value: d_model / heads.0,
            scale: heads.scale(d_model),
            dropout,
        };
        self.attend(call, Shape::Matrix(batch.total(), d_model))
    }
}
