//! The server of `hopedgn`: a live model that takes in events durably and answers over HTTP.
//!
//! ```text
//!  POST /v1/events ─▶ intake ─▶ log (on disk) ─▶ live store ─▶ published snapshot ─┐
//!                     one thread, requests share a write                           ▼
//!  POST /v1/score ──▶ scores: one thread, requests share a forward pass ◀── engine: events and model
//!  GET /v1/recommend, explanations ─▶ answers: one thread ◀──────────────────┘
//! ```
//!
//! An event that was acknowledged is on disk. Every answer equals that of the same model on a file of the events so far.
//!
//! ```no_run
//! use hopedgn_serve::{Server, ServeOptions};
//!
//! let server = Server::start(ServeOptions::new("runs/mine", "live"), None)?;
//! println!("listening on {}", server.address());
//! server.stop()?;
//! # Ok::<(), hopedgn_serve::Error>(())
//! ```

pub mod bench;
mod engine;
mod error;
mod http;
mod intake;
mod lanes;
mod layout;
mod listen;
mod memory_file;
mod monitor;
mod options;
mod patient;
mod server;
mod tls;
mod wire;

pub use error::{Error, Result};
pub use options::{Limits, ServeOptions, TlsFiles, Tokens};
pub use server::{Server, StartReport};
