//! Measures a server, and attacks the durability of its log.
//!
//! The server under test is a process of its own, which the caller says how to start; its clients are threads of this process with a
//! connection each. Nothing is printed: figures are returned.
//!
//! | item | what it does |
//! |---|---|
//! | [`intake`], [`score`], [`recommend`], [`restart`], [`overload`] | one figure each, on a server of its own |
//! | [`attack`] | kills a server again and again while events are sent, damages its log, and compares what it holds with what was acknowledged |
//! | [`Client`] | a connection for such measurements |

mod client;
mod crash;
mod figures;
mod load;
mod process;
mod restart;
mod workload;

pub use client::{Answer, Client, get, post};
pub use crash::{CrashOptions, CrashReport, DamageReport, Progress, attack};
pub use figures::{
    Figures, IntakeFigures, LaneOverload, LoadFigures, OverloadFigures, RecommendFigures, ScoreFigures, intake,
    overload, recommend, score,
};
pub use load::{Latency, Measured};
pub use process::{Launch, ServerProcess};
pub use restart::{RestartFigures, restart};
pub use workload::Workload;
