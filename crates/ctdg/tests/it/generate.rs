//! Generated streams: exact counts, known optimum, no leaks, fixed output for a seed.

mod interactions;
mod tastes;
mod triadic;

use ctdg::event::EventStream;
use sha2::{Digest, Sha256};

/// The first 16 hexadecimal digits of a hash over all columns of `stream`, each in its little-endian bytes.
fn fingerprint(stream: &EventStream) -> String {
    let mut hash = Sha256::new();
    let (src, dst) = (stream.src().iter(), stream.dst().iter());
    src.chain(dst).for_each(|node| hash.update(node.0.to_le_bytes()));
    stream.times().iter().for_each(|time| hash.update(time.to_le_bytes()));
    let features = stream.edge_features().map_or(&[][..], |features| features.values());
    stream.labels().iter().chain(features).for_each(|value| hash.update(value.to_le_bytes()));
    let first = hash.finalize().iter().take(8).fold(0_u64, |bits, &byte| (bits << 8) | u64::from(byte));
    format!("{first:016x}")
}
