//! HTTP GET of a whole file or of a byte range.

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

/// The bytes of a file from offset `from` on.
#[derive(Debug, Clone)]
pub(super) struct Range {
    pub(super) from: u64,
    /// The version those bytes belong to (`If-Range`): if it has changed, the server sends the whole file.
    pub(super) version: Option<String>,
}

/// A response of any status, its body not yet read.
pub(super) struct Reply {
    pub(super) status: u16,
    /// Length of this body.
    pub(super) length: Option<u64>,
    pub(super) content_range: Option<ContentRange>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// The wait that a busy server asks for.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Box<dyn Read>,
}

/// `Content-Range`: where a partial body belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentRange {
    /// First and last byte; `None` if the requested range does not exist.
    pub(super) bytes: Option<(u64, u64)>,
    /// Length of the whole file.
    pub(super) total: Option<u64>,
}

impl Client {
    pub(super) fn new(options: &Options) -> Self {
        let mut config = Config::builder()
            .http_status_as_error(false)
            .user_agent(concat!("hopedgn/", env!("CARGO_PKG_VERSION")))
            // Offsets refer to the uncompressed file.
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

    /// The body of a successful response, cut at `limit` bytes.
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
    fn valid_content_ranges_are_parsed_and_invalid_ones_refused() {
        let read = |text| ContentRange::parse(text).map(|range| (range.bytes, range.total));
        assert_eq!(read("bytes 5-9/10"), Some((Some((5, 9)), Some(10))));
        assert_eq!(read("bytes 5-9/*"), Some((Some((5, 9)), None)));
        assert_eq!(read("bytes */10"), Some((None, Some(10))));
        for invalid in ["", "5-9/10", "bytes 5/10", "bytes -9/10", "bytes 5-9/x", "bytes 5-9"] {
            assert_eq!(read(invalid), None, "{invalid}");
        }
    }
}
