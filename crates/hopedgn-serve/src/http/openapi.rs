//! `GET /openapi.json`.

use axum::Json;
use utoipa::OpenApi;

use super::{events, kserve, models, nodes, recommend, score, status};

/// The description of the interface.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "hopedgn serve",
        description = "A live model of a stream of interactions: take events in, score pairs, recommend."
    ),
    paths(
        events::take,
        score::score,
        recommend::recommend,
        nodes::node,
        models::current,
        models::load,
        status::status,
        status::live,
        status::ready,
        status::metrics,
        document,
    )
)]
struct Description;

/// This description.
#[utoipa::path(get, path = "/openapi.json", responses((status = 200)))]
pub(super) async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(Description::openapi().merge_from(kserve::Description::openapi()))
}
