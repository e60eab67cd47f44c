//! A ring of connections: each rank sends to the next and receives from the previous one.

use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

use hopedgn_tensor::Error;

use super::frame::{Frame, Kind, Writer, frame, read_frame};

/// Values of a block: small enough that all ranks add at the same time, large enough that frames cost little.
const BLOCK: usize = 1 << 16;

/// Why the ring is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) rank: usize,
    pub(super) detail: String,
    /// Whether the rank has ended with an error that its replacement would have as well.
    pub(super) is_final: bool,
}

impl Failure {
    pub(super) fn lost(rank: usize, detail: impl Into<String>) -> Self {
        Self { rank, detail: detail.into(), is_final: false }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let rank = (self.rank as u64).to_le_bytes();
        [&rank, &[u8::from(self.is_final)][..], self.detail.as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&rank, rest) = bytes.split_first_chunk()?;
        let (&is_final, detail) = rest.split_first()?;
        let rank = usize::try_from(u64::from_le_bytes(rank)).ok()?;
        Some(Self { rank, detail: String::from_utf8_lossy(detail).into_owned(), is_final: is_final == 1 })
    }
}

impl From<Failure> for Error {
    fn from(Failure { rank, detail, is_final }: Failure) -> Self {
        if is_final { Self::FailedRank { rank, detail } } else { Self::LostRank { rank, detail } }
    }
}

/// The connections of one rank.
#[derive(Debug)]
pub(super) struct Ring {
    rank: usize,
    n_ranks: usize,
    next: Writer,
    previous: TcpStream,
    /// Number of the current operation, the same on all ranks.
    operation: u64,
}

impl Ring {
    /// `next` and `previous` are connected. A rank that is silent for `silence` counts as lost.
    pub(super) fn new(
        (rank, n_ranks): (usize, usize),
        next: TcpStream,
        previous: TcpStream,
        silence: Duration,
    ) -> std::io::Result<Self> {
        next.set_nodelay(true)?;
        next.set_write_timeout(Some(silence))?;
        previous.set_read_timeout(Some(silence))?;
        Ok(Self { rank, n_ranks, next: Writer::new(next, silence / 4)?, previous, operation: 0 })
    }

    /// Tells the next rank why the ring is broken.
    pub(super) fn abort(&self, failure: &Failure) {
        self.next.send(frame(Kind::Abort, self.operation, |bytes| bytes.extend(failure.to_bytes())));
    }

    pub(super) fn all_gather(&mut self, part: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        self.operation += 1;
        let mut parts = vec![Vec::new(); self.n_ranks];
        self.send(Kind::Part, |bytes| bytes.extend_from_slice(part))?;
        part.clone_into(&mut parts[self.rank]);
        for distance in 1..self.n_ranks {
            let from = (self.rank + self.n_ranks - distance) % self.n_ranks;
            parts[from] = self.receive(Kind::Part)?;
            if distance + 1 < self.n_ranks {
                self.send(Kind::Part, |bytes| bytes.extend_from_slice(&parts[from]))?;
            }
        }
        Ok(parts)
    }

    pub(super) fn sum_in_order(
        &mut self,
        values: &mut [f32],
        add: &mut dyn FnMut(Range<usize>, &mut [f32]),
    ) -> Result<(), Failure> {
        self.operation += 1;
        let (rank, last) = (self.rank, self.n_ranks - 1);
        for (start, block) in (0..).step_by(BLOCK).zip(values.chunks_mut(BLOCK)) {
            if rank == 0 {
                block.fill(0.0);
            } else {
                self.receive_values(Kind::Partial, block)?;
            }
            add(start..start + block.len(), block);
            self.send_values(if rank < last { Kind::Partial } else { Kind::Total }, block)?;
        }
        if rank == last {
            return Ok(());
        }
        for block in values.chunks_mut(BLOCK) {
            self.receive_values(Kind::Total, block)?;
            if rank + 1 < last {
                self.send_values(Kind::Total, block)?;
            }
        }
        Ok(())
    }

    fn send_values(&mut self, kind: Kind, values: &[f32]) -> Result<(), Failure> {
        self.send(kind, |bytes| {
            let start = bytes.len();
            bytes.resize(start + 4 * values.len(), 0);
            let places = bytes[start..].as_chunks_mut().0;
            places.iter_mut().zip(values).for_each(|(place, value)| *place = value.to_le_bytes());
        })
    }

    fn receive_values(&mut self, kind: Kind, values: &mut [f32]) -> Result<(), Failure> {
        let content = self.receive(kind)?;
        let (found, _) = content.as_chunks();
        if found.len() != values.len() || content.len() != 4 * values.len() {
            let (found, expected) = (content.len(), 4 * values.len());
            return Err(self.out_of_step(&format!("sent {found} bytes of gradients, expected {expected}")));
        }
        values.iter_mut().zip(found).for_each(|(value, &bytes)| *value = f32::from_le_bytes(bytes));
        Ok(())
    }

    fn send(&mut self, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        if self.next.send(frame(kind, self.operation, write)) {
            return Ok(());
        }
        Err(Failure::lost((self.rank + 1) % self.n_ranks, "closed its connection"))
    }

    fn receive(&mut self, kind: Kind) -> Result<Vec<u8>, Failure> {
        let previous = self.previous();
        let frame = read_frame(&mut self.previous).map_err(|detail| Failure::lost(previous, detail))?;
        match frame {
            Frame { kind: found, operation, content } if (found, operation) == (kind, self.operation) => Ok(content),
            Frame { kind: Kind::Abort, content, .. } => {
                Err(Failure::from_bytes(&content).unwrap_or_else(|| Failure::lost(previous, "left the group")))
            }
            Frame { kind: found, operation, .. } => Err(self.out_of_step(&format!(
                "is at operation {operation} ({found:?}), expected {} ({kind:?})",
                self.operation
            ))),
        }
    }

    fn previous(&self) -> usize {
        (self.rank + self.n_ranks - 1) % self.n_ranks
    }

    /// Ranks that do different things would do so again.
    fn out_of_step(&self, what: &str) -> Failure {
        let detail = format!("{what}: all ranks must be the same program with the same settings and events");
        Failure { rank: self.previous(), detail, is_final: true }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A connection, both ends.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let from = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (from, listener.accept().unwrap().0)
    }

    #[test]
    fn a_rank_without_a_sign_of_life_is_named_and_one_that_computes_is_not() {
        let silence = Duration::from_millis(400);
        let ((to_one, from_zero), (to_zero, from_one)) = (connection(), connection());
        let mut zero = Ring::new((0, 2), to_one, from_one, silence).unwrap();
        // Rank 1 computes for longer than that: its connection shows that it lives.
        let one = Ring::new((1, 2), to_zero, from_zero, silence).unwrap();
        let gathered = std::thread::scope(|scope| {
            let gathered = scope.spawn(|| zero.all_gather(b"zero"));
            let mut one = one;
            std::thread::sleep(3 * silence);
            one.all_gather(b"one").unwrap();
            gathered.join().unwrap()
        });
        assert_eq!(gathered.unwrap(), [b"zero".to_vec(), b"one".to_vec()]);
        // A process that is stopped keeps its connections and says nothing.
        let ((to_one, _from_zero), (_to_zero, from_one)) = (connection(), connection());
        let mut zero = Ring::new((0, 2), to_one, from_one, silence).unwrap();
        let failure = zero.all_gather(b"zero").unwrap_err();
        assert_eq!(failure, Failure::lost(1, "was silent for 0.4 s"));
    }

    #[test]
    fn ranks_out_of_step_and_bytes_of_other_programs_are_named() {
        let silence = Duration::from_secs(5);
        let check = |bytes: &[u8], expected: &str| {
            use std::io::Write;
            let ((to_one, _from_zero), (mut to_zero, from_one)) = (connection(), connection());
            to_zero.write_all(bytes).unwrap();
            let failure = Ring::new((0, 2), to_one, from_one, silence).unwrap().all_gather(b"zero").unwrap_err();
            assert!(failure.rank == 1 && failure.detail.contains(expected), "{failure:?}");
        };
        check(&frame(Kind::Part, 7, |_| {}), "is at operation 7 (Part), expected 1 (Part)");
        check(&frame(Kind::Total, 1, |_| {}), "is at operation 1 (Total), expected 1 (Part)");
        check(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "sent bytes that are no frame");
        let mut damaged = frame(Kind::Part, 1, |bytes| bytes.extend(b"gradients"));
        *damaged.last_mut().unwrap() ^= 1;
        check(&damaged, "its checksum is another one");
        let failed = Failure { rank: 1, detail: "the disk is full".to_owned(), is_final: true };
        check(&frame(Kind::Abort, 1, |bytes| bytes.extend(failed.to_bytes())), "the disk is full");
    }
}
