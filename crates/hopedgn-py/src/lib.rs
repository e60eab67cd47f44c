//! The native module `hopedgn._native` of the Python package `hopedgn`.
//!
//! The package's Python files check arguments and hold the documentation; what computes is here and in the libraries. Every function
//! that computes releases Python's lock ([`pool`]).

#![expect(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    reason = "functions of Python take their arguments by value, as many as they have"
)]

mod arrow;
mod callback;
mod cli;
mod columns;
mod dwl;
mod error;
mod events;
mod metrics;
mod names;
mod negatives;
mod pool;
mod predictor;
mod remedy;
mod rendezvous;
mod sampler;
mod store;
mod view;

use pyo3::prelude::*;

/// The native half of the package; `hopedgn` has what is documented.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<events::Events>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<sampler::RecentSampler>()?;
    module.add_class::<negatives::Split>()?;
    module.add_class::<predictor::Predictor>()?;
    module.add_class::<rendezvous::Rendezvous>()?;
    module.add_function(wrap_pyfunction!(events::pair_columns, module)?)?;
    module.add_function(wrap_pyfunction!(store::pad_intervals, module)?)?;
    module.add_function(wrap_pyfunction!(predictor::model_names, module)?)?;
    module.add_function(wrap_pyfunction!(predictor::fit, module)?)?;
    module.add_function(wrap_pyfunction!(predictor::load, module)?)?;
    module.add_function(wrap_pyfunction!(predictor::check_settings, module)?)?;
    module.add_function(wrap_pyfunction!(predictor::recorded_data, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::binary_scores, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::ranks, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::mrr, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::recall_at, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::ndcg_at, module)?)?;
    module.add_function(wrap_pyfunction!(dwl::compare, module)?)?;
    module.add_function(wrap_pyfunction!(pool::set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(pool::get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(cli::main, module)?)?;
    Ok(())
}
