//! The `hopedgn` command with a model of one's own: every command knows `--model deep-sets`.
//!
//! `cargo run --release -p hopedgn-cli --example own_models -- train --model deep-sets`

#[path = "../../hopedgn/examples/custom_model.rs"]
#[allow(dead_code, unreachable_pub, reason = "its `main` is not called here")]
mod custom_model;

use std::process::ExitCode;

use hopedgn::ModelRegistry;

fn main() -> ExitCode {
    let mut registry = ModelRegistry::default();
    registry.register::<custom_model::DeepSets>().expect("the name is free");
    hopedgn_cli::main(&registry)
}
