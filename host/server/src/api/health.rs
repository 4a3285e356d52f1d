//! `/healthz`, for a supervisor that restarts this process, and `/readyz`, for a load balancer that
//! chooses where to send requests. Neither shows any content, and neither needs a key.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::problem::Problem;
use crate::http::respond::JsonAnswer;

/// The number of waiting groups of writes from which on `/readyz` reports that this process should get
/// no more requests.
const TOO_FAR_BEHIND: usize = 8_192;

/// That all is well.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    status: &'static str,
}

/// That it takes turns, and of how many tenants it does not.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// `ok`.
    status: &'static str,
    /// Tenants whose requests are answered 503, because of their files or settings. The log and
    /// `belljar tenants list` say why.
    tenants_not_served: usize,
    /// Tenants that are served by the settings that were valid last, because those of now are not.
    /// The log says why.
    tenants_on_older_settings: usize,
    /// Tenants that are served without a part of their grants or settings until the server is
    /// started again: its OS sandbox was made without it. The log names the part, and so does
    /// `belljar tenants list`. One that nobody has called is counted as it was when the server
    /// looked at it first.
    tenants_waiting_for_restart: usize,
}

/// `GET /healthz`: returns 200 whenever the process can answer at all.
pub(crate) async fn report_live() -> JsonAnswer<Health> {
    JsonAnswer(Health { status: "ok" })
}

/// `GET /readyz`: returns 200 while the server accepts turns.
pub(crate) async fn report_ready(State(app): State<App>) -> Response {
    let wait = |why: &str| Problem::unavailable(why, Duration::from_secs(5)).into_response();
    if app.is_stopping() {
        wait(
            "the server is draining: it takes no new turns, and stops when those that run have ended",
        )
    } else if app.store().pending_writes() > TOO_FAR_BEHIND {
        wait("the store is behind")
    } else if !app.last_check().is_well(app.store()).await {
        wait("the store does not answer")
    } else {
        let tenants_not_served = app.services().not_served();
        let tenants_on_older_settings = app.services().on_older_settings();
        let tenants_waiting_for_restart = app.services().waiting_for_restart();
        let status = "ok";
        JsonAnswer(Readiness {
            status,
            tenants_not_served,
            tenants_on_older_settings,
            tenants_waiting_for_restart,
        })
        .into_response()
    }
}
