//! The little HTTP that fetching needs: one GET, whole or from an offset.

use std::io::Read;
use std::time::Duration;

use ureq::Agent;
use ureq::config::Config;
use ureq::http::HeaderMap;

use super::{Options, Route};
use crate::error::{Error, Problem, Result};

/// Sends requests; follows redirects, though never from https to http.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
}

/// Asks for what is missing of a file of which the first `from` bytes are here.
#[derive(Debug, Clone)]
pub(super) struct Range {
    pub(super) from: u64,
    /// The mark of the version those bytes belong to (`If-Range`): of another version, the server sends the whole.
    pub(super) version: Option<String>,
}

/// An answer of any status; the body is still to be read.
pub(super) struct Reply {
    pub(super) status: u16,
    /// Length of this body.
    pub(super) length: Option<u64>,
    pub(super) content_range: Option<ContentRange>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// How long a busy server asks to be left alone.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Box<dyn Read>,
}

/// `Content-Range`: where a partial body belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentRange {
    /// First and last byte; none in the answer to a range that does not exist.
    pub(super) bytes: Option<(u64, u64)>,
    /// Length of the whole file.
    pub(super) total: Option<u64>,
}

impl Client {
    pub(super) fn new(options: &Options) -> Self {
        let mut config = Config::builder()
            .http_status_as_error(false)
            .user_agent(concat!("hopedgn/", env!("CARGO_PKG_VERSION")))
            // Offsets count the bytes of the file itself.
            .accept_encoding("identity")
            .timeout_connect(Some(options.connect_timeout))
            .timeout_recv_response(Some(options.idle_timeout))
            .timeout_per_read(Some(options.idle_timeout));
        if options.route == Route::Direct {
            config = config.proxy(None);
        }
        Self { agent: config.build().into() }
    }

    pub(super) fn get(&self, url: &str, range: Option<&Range>) -> Result<Reply> {
        let mut request = self.agent.get(url).config().https_only(url.starts_with("https://")).build();
        if let Some(Range { from, version }) = range {
            request = request.header("Range", format!("bytes={from}-"));
            if let Some(version) = version {
                request = request.header("If-Range", version);
            }
        }
        let (head, body) = request.call().map_err(|error| unreachable(url, &error))?.into_parts();
        let text = |name| header(&head.headers, name);
        Ok(Reply {
            status: head.status.as_u16(),
            length: text("content-length").and_then(|length| length.parse().ok()),
            content_range: text("content-range").and_then(ContentRange::parse),
            etag: text("etag").map(str::to_owned),
            last_modified: text("last-modified").map(str::to_owned),
            retry_after: text("retry-after").and_then(|wait| wait.parse().ok()).map(Duration::from_secs),
            body: Box::new(body.into_reader()),
        })
    }

    /// The whole body of a successful answer, if it is text of at most `limit` bytes.
    pub(super) fn text(&self, url: &str, limit: u64) -> Result<String> {
        let reply = self.get(url, None)?;
        if reply.status != 200 {
            return Err(Problem::Http { url: url.to_owned(), status: reply.status }.into());
        }
        let mut text = String::new();
        reply.body.take(limit).read_to_string(&mut text).map_err(|error| unreachable(url, &error))?;
        Ok(text)
    }
}

impl ContentRange {
    /// Reads `bytes 5-9/10`, `bytes 5-9/*` or `bytes */10`.
    fn parse(text: &str) -> Option<Self> {
        let (bytes, total) = text.strip_prefix("bytes ")?.split_once('/')?;
        let bytes = match bytes.split_once('-') {
            Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
            None if bytes == "*" => None,
            None => return None,
        };
        let total = if total == "*" { None } else { Some(total.parse().ok()?) };
        Some(Self { bytes, total })
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn unreachable(url: &str, error: &impl ToString) -> Error {
    Problem::Unreachable { url: url.to_owned(), detail: error.to_string() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read_and_nonsense_is_not() {
        let read = |text| ContentRange::parse(text).map(|range| (range.bytes, range.total));
        assert_eq!(read("bytes 5-9/10"), Some((Some((5, 9)), Some(10))));
        assert_eq!(read("bytes 5-9/*"), Some((Some((5, 9)), None)));
        assert_eq!(read("bytes */10"), Some((None, Some(10))));
        for nonsense in ["", "5-9/10", "bytes 5/10", "bytes -9/10", "bytes 5-9/x", "bytes 5-9"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }
}
