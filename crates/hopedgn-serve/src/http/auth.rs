//! Bearer tokens.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::Failure;
use crate::options::Tokens;

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    Read,
    Write,
}

/// What whoever sent a request may do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rights {
    pub(super) may_write: bool,
}

/// Who may do what. Tokens are kept and compared as digests, all of them each time, so that the time it takes tells nothing about them.
#[derive(Debug)]
pub(super) struct Guard {
    read: Vec<[u8; 32]>,
    write: Vec<[u8; 32]>,
}

impl Guard {
    pub(super) fn new(tokens: &Tokens) -> Self {
        let digests = |tokens: &[String]| tokens.iter().map(|token| Sha256::digest(token).into()).collect();
        Self { read: digests(&tokens.read), write: digests(&tokens.write) }
    }

    /// The rights of a request with these headers if `right` is among them, otherwise the status of the answer.
    fn admit(&self, headers: &HeaderMap, right: Right) -> Result<Rights, StatusCode> {
        if self.read.is_empty() && self.write.is_empty() {
            return Ok(Rights { may_write: true });
        }
        let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token =
            value.and_then(|value| value.split_once(' ')).filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        let (_, token) = token.ok_or(StatusCode::UNAUTHORIZED)?;
        let digest: [u8; 32] = Sha256::digest(token.trim()).into();
        let [may_read, may_write] = [&self.read, &self.write].map(|known| is_among(&digest, known));
        match right {
            _ if may_write => Ok(Rights { may_write }),
            Right::Read if may_read => Ok(Rights { may_write }),
            Right::Write if may_read => Err(StatusCode::FORBIDDEN),
            _ => Err(StatusCode::UNAUTHORIZED),
        }
    }
}

/// In a time that depends on the number of digests alone.
fn is_among(digest: &[u8; 32], known: &[[u8; 32]]) -> bool {
    let mut found = 0_u8;
    for other in known {
        let difference = digest.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
        // 1 if they are equal, without a branch.
        found |= u8::from(std::hint::black_box(difference) == 0);
    }
    std::hint::black_box(found) == 1
}

/// Answers requests without the right.
pub(super) async fn check(
    State((guard, right)): State<(Arc<Guard>, Right)>,
    mut request: Request,
    next: Next,
) -> Response {
    match guard.admit(request.headers(), right) {
        Ok(rights) => {
            request.extensions_mut().insert(rights);
            next.run(request).await
        }
        Err(StatusCode::FORBIDDEN) => Failure::forbidden().into_response(),
        Err(_) => Failure::unauthorized().into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_give_the_rights_they_are_for() {
        let tokens = Tokens { read: vec!["look".into()], write: vec!["change".into(), "both".into()] };
        let guard = Guard::new(&tokens);
        let admit = |value: Option<&str>, right| {
            let mut headers = HeaderMap::new();
            value.map(|value| headers.insert(AUTHORIZATION, value.parse().unwrap()));
            guard.admit(&headers, right).map(|rights| rights.may_write)
        };
        assert_eq!(admit(Some("Bearer look"), Right::Read), Ok(false));
        assert_eq!(admit(Some("Bearer look"), Right::Write), Err(StatusCode::FORBIDDEN));
        assert_eq!(admit(Some("bearer both"), Right::Write), Ok(true));
        assert_eq!(admit(Some("Bearer change"), Right::Read), Ok(true));
        for wrong in [None, Some("Bearer"), Some("Bearer loo"), Some("Basic look"), Some("look"), Some("Bearer ")] {
            assert_eq!(admit(wrong, Right::Read), Err(StatusCode::UNAUTHORIZED), "{wrong:?}");
        }
        let open = Guard::new(&Tokens::default());
        assert!(open.admit(&HeaderMap::new(), Right::Write).is_ok_and(|rights| rights.may_write));
    }
}
