//! `GET /openapi.json`.

use axum::Json;
use utoipa::OpenApi;

use super::{events, graph, kserve, live, models, nodes, pair, recommend, runs, score, status};

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
        nodes::search,
        nodes::node,
        nodes::node_by_id,
        pair::pair,
        graph::graph,
        live::live,
        runs::runs,
        runs::report,
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
