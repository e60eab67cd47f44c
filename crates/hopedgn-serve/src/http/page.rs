//! The page at `/`: its files are part of the program, and it asks this server alone.

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rust_embed::{EmbeddedFile, RustEmbed};

use super::Failure;

/// Scripts and styles from files of this server alone; nothing inline, nothing from elsewhere, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files. A debug build reads them when they are asked for, so that a change shows without building again.
#[derive(RustEmbed)]
#[folder = "page/"]
struct Files;

/// The page and its files, open to everyone: they hold no data, and the page asks for a token where one is needed.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(|headers: HeaderMap| async move { file("index.html", &headers) }))
        .route("/assets/{name}", get(asset))
        .layer(from_fn(guarded))
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    // Vendored files lie in a folder of their own and are served beside the others.
    let path =
        if name.starts_with("vendor-") || name.starts_with("LICENSE-") { format!("vendor/{name}") } else { name };
    file(&path, &headers)
}

fn file(path: &str, headers: &HeaderMap) -> Response {
    let (Some(EmbeddedFile { data, metadata, .. }), Some(kind)) = (Files::get(path), content_type(path)) else {
        let message = format!("found no {path:?}, expected a file of the page");
        return Failure::new(StatusCode::NOT_FOUND, "not-found", message).into_response();
    };
    let digest = metadata.sha256_hash()[..16].iter().fold(0_u128, |bits, &byte| bits << 8 | u128::from(byte));
    let tag = format!("\"{digest:032x}\"");
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    // Asked for again each time, and answered without a body if nothing changed: a new version of the program shows at once.
    let headers = [(CONTENT_TYPE, kind.to_owned()), (ETAG, tag), (CACHE_CONTROL, "no-cache".to_owned())];
    (headers, data).into_response()
}

fn content_type(path: &str) -> Option<&'static str> {
    match path.rsplit_once('.')?.1 {
        "html" => Some("text/html; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "txt" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}

/// Adds the headers that keep the page to itself.
async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_have_a_type_and_are_small_together() {
        let mut n_bytes = 0;
        for path in Files::iter() {
            assert!(content_type(&path).is_some(), "{path}");
            if !path.contains("LICENSE") {
                n_bytes += Files::get(&path).map_or(0, |file| file.data.len());
            }
        }
        assert!(Files::get("index.html").is_some());
        assert!(Files::get("package.json").is_none());
        assert!(n_bytes <= 500_000, "{n_bytes} bytes");
    }

    #[test]
    fn every_vendored_library_has_its_licence() {
        let licences: Vec<_> = Files::iter().filter(|path| path.contains("LICENSE")).collect();
        for library in ["sigma", "graphology", "uplot"] {
            assert!(licences.iter().any(|path| path.contains(library)), "{library}: {licences:?}");
        }
    }
}
