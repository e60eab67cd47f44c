//! Training on several workers: process groups over TCP.
//!
//! Ranks meet at a [`Rendezvous`] and form a ring. Gradients travel along it: rank 0 sends the sum of its gradient groups, rank 1 adds its
//! own, and so on; the last rank sends the result round. So groups are added in the order in which one process adds them, which gives
//! the same bits, and a step moves each value twice however many ranks there are.
//!
//! ```
//! use std::thread;
//! use hopedgn::{Events, LinkPredictor, distributed::{GroupOptions, Rendezvous, join}};
//!
//! let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
//! let events = Events::from_tuples(messages)?;
//! let meeting = Rendezvous::new("127.0.0.1:0", 2)?;
//! let address = meeting.address().to_string();
//! let train = |rank| {
//!     let group = join(GroupOptions::new(rank, 2, &address))?;
//!     LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).group(group).fit(&events)
//! };
//! let [mine, other] = thread::scope(|scope| {
//!     let other = scope.spawn(|| train(1)); // usually another process, perhaps on another machine
//!     [train(0), other.join().expect("no panic")]
//! });
//! assert_eq!(mine?.predict("3", "4", events.end())?, other?.predict("3", "4", events.end())?);
//! # Ok::<(), hopedgn::Error>(())
//! ```

mod frame;
mod rendezvous;
mod ring;

use std::ops::Range;
use std::time::Duration;

use hopedgn_tensor::{Error, ProcessGroup, Result, Transport};

pub use rendezvous::Rendezvous;
use ring::{Failure, Ring};

/// How a process joins a group.
///
/// The [module](self) has an example.
#[derive(Debug, Clone)]
pub struct GroupOptions {
    /// This process, from 0.
    pub rank: usize,
    /// The number of processes.
    pub n_ranks: usize,
    /// Where they meet, `host:port`.
    pub address: String,
    /// Whether this process opens the [`Rendezvous`] there, as rank 0 does where no other process did.
    pub hosts: bool,
    /// After so long without a sign of life a rank counts as lost.
    pub silence: Duration,
    /// How long to wait for all ranks, at the start and after one was lost.
    pub patience: Duration,
}

impl GroupOptions {
    /// After so long without a sign of life a rank counts as lost, unless another time is set.
    pub const SILENCE: Duration = Duration::from_secs(30);

    /// How long to wait for all ranks, unless another time is set.
    pub const PATIENCE: Duration = Duration::from_mins(10);

    /// A rank of a group that meets at `address`, opened by another process or thread.
    #[must_use]
    pub fn new(rank: usize, n_ranks: usize, address: &str) -> Self {
        let (silence, patience) = (Self::SILENCE, Self::PATIENCE);
        Self { rank, n_ranks, address: address.to_owned(), hosts: false, silence, patience }
    }
}

/// Waits until all ranks are there.
///
/// # Errors
/// If one of them does not come in time; the message names it.
pub fn join(options: GroupOptions) -> crate::Result<ProcessGroup> {
    let GroupOptions { rank, n_ranks, ref address, .. } = options;
    if rank >= n_ranks {
        let detail = format!("found rank {rank} of {n_ranks}, expected one below {n_ranks}; ranks count from 0");
        return Err(Error::NoGroup { detail }.into());
    }
    if n_ranks == 1 {
        return Ok(ProcessGroup::default());
    }
    let rendezvous = options.hosts.then(|| Rendezvous::new(address, n_ranks)).transpose()?;
    let ring = Some(rendezvous::meet(&options)?);
    Ok(ProcessGroup::new(Tcp { options, ring, failure: None, _rendezvous: rendezvous }))
}

/// A ring of TCP connections.
#[derive(Debug)]
struct Tcp {
    options: GroupOptions,
    /// `None` once it is broken.
    ring: Option<Ring>,
    /// What broke it.
    failure: Option<Failure>,
    _rendezvous: Option<Rendezvous>,
}

impl Tcp {
    /// Calls `work`; a failure breaks the ring, which tells the next rank, and so on round the ring.
    fn with<T>(&mut self, work: impl FnOnce(&mut Ring) -> Result<T, Failure>) -> Result<T> {
        let Some(ring) = &mut self.ring else {
            let failure =
                self.failure.clone().unwrap_or_else(|| Failure::lost(self.options.rank, "has left the group"));
            return Err(failure.into());
        };
        let failure = match work(ring) {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        ring.abort(&failure);
        self.ring = None;
        self.failure = Some(failure.clone());
        Err(failure.into())
    }
}

impl Transport for Tcp {
    fn rank(&self) -> usize {
        self.options.rank
    }

    fn n_ranks(&self) -> usize {
        self.options.n_ranks
    }

    fn all_gather(&mut self, part: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.with(|ring| ring.all_gather(part))
    }

    fn sum_in_order(&mut self, values: &mut [f32], add: &mut dyn FnMut(Range<usize>, &mut [f32])) -> Result<()> {
        self.with(|ring| ring.sum_in_order(values, add))
    }

    fn abort(&mut self, reason: &str) {
        let failure = Failure { rank: self.options.rank, detail: reason.to_owned(), is_final: true };
        // The failure is of this rank: no other rank waits for it here.
        let _ = self.with::<()>(|_| Err(failure));
    }

    fn reform(&mut self) -> Result<()> {
        self.ring = None;
        self.ring = Some(rendezvous::meet(&self.options)?);
        self.failure = None;
        Ok(())
    }
}
