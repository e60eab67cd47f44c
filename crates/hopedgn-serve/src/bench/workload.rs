//! What clients send.

use ctdg::event::EventStream;
use ctdg::random::RandomStream;
use serde_json::json;

use super::client::{get, post};

/// Names that requests are made of.
const NAMES: usize = 4096;

/// Requests about the nodes of a dataset: a pair is the source of one of its events and the destination of another.
///
/// ```
/// use ctdg::event::EventStream;
/// use hopedgn_serve::bench::Workload;
///
/// let stream = EventStream::from_events([(1, 2, 10.0)])?;
/// let request = String::from_utf8(Workload::new(&stream, 0).scores(1)).unwrap_or_default();
/// assert!(request.ends_with(r#"{"pairs":[{"dst":"2","src":"1"}]}"#), "{request}");
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug)]
pub struct Workload {
    sources: Vec<String>,
    destinations: Vec<String>,
    /// That of the newest event: events of several connections have no order.
    time: f64,
    random: RandomStream,
}

impl Workload {
    /// Requests about the nodes of `stream`, drawn with `seed`.
    #[must_use]
    pub fn new(stream: &EventStream, seed: u64) -> Self {
        let mut random = RandomStream::named(seed, "workload");
        let mut names = |nodes: &[ctdg::event::NodeId]| -> Vec<String> {
            let draws = if nodes.is_empty() { 0 } else { NAMES };
            (0..draws).map(|_| stream.names().name(nodes[random.index(nodes.len())])).collect()
        };
        let (mut sources, mut destinations) = (names(stream.src()), names(stream.dst()));
        for names in [&mut sources, &mut destinations] {
            if names.is_empty() {
                names.push("1".to_owned());
            }
        }
        Self { sources, destinations, time: stream.times().last().copied().unwrap_or(0.0), random }
    }

    fn pair(&mut self) -> (&str, &str) {
        let [src, dst] = [self.sources.len(), self.destinations.len()].map(|n| self.random.index(n));
        (&self.sources[src], &self.destinations[dst])
    }

    /// A request with `n` events.
    pub fn events(&mut self, n: usize) -> Vec<u8> {
        let time = self.time;
        let mut row = || {
            let (src, dst) = self.pair();
            json!({ "src": src, "dst": dst, "time": time })
        };
        let rows: Vec<_> = (0..n).map(|_| row()).collect();
        post("/v1/events", None, &json!(rows).to_string())
    }

    /// A request for the scores of `n` pairs.
    pub fn scores(&mut self, n: usize) -> Vec<u8> {
        let mut row = || {
            let (src, dst) = self.pair();
            json!({ "src": src, "dst": dst })
        };
        let pairs: Vec<_> = (0..n).map(|_| row()).collect();
        post("/v1/score", None, &json!({ "pairs": pairs }).to_string())
    }

    /// A request for the ten likeliest destinations of a source.
    pub fn recommendation(&mut self, exact: bool) -> Vec<u8> {
        let (src, _) = self.pair();
        get(&format!("/v1/recommend?src={}&k=10&exact={exact}", escaped(src)))
    }

    /// `n` requests of a kind.
    pub fn many(&mut self, n: usize, mut request: impl FnMut(&mut Self) -> Vec<u8>) -> Vec<Vec<u8>> {
        (0..n).map(|_| request(self)).collect()
    }
}

/// A text within an address.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| {
        if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_addresses() {
        assert_eq!(escaped("a1 é&"), "a1%20%C3%A9%26");
    }

    #[test]
    fn a_dataset_without_events_has_requests_too() {
        let mut workload = Workload::new(&EventStream::from_events([]).unwrap(), 0);
        assert!(String::from_utf8(workload.events(2)).unwrap().matches("\"src\":\"1\"").count() == 2);
    }
}
