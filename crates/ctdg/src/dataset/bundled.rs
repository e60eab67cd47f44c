//! The bundled dataset `CollegeMsg`.

use bytes::Bytes;

use crate::dataset::{ReadOptions, parquet};
use crate::error::Result;
use crate::event::EventStream;

/// Name of the bundled dataset.
pub const COLLEGEMSG: &str = "collegemsg";

/// `CollegeMsg`: 59,835 private messages among 1,899 members of an online community at the University of California,
/// Irvine, April to October 2004, to the minute. Origin and terms: `data/NOTICE`.
pub fn collegemsg() -> Result<EventStream> {
    let bytes = Bytes::from_static(include_bytes!("../../data/collegemsg.parquet"));
    parquet::read_bytes(bytes, &ReadOptions::default(), None).map(|(stream, _)| stream)
}
