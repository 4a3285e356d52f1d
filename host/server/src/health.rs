//! `/healthz` and `/readyz`: for whoever decides whether to restart this process, and whether to
//! send it requests. Both say nothing of what is in it, and need no key.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::app::App;
use crate::problem::Problem;
use crate::respond::Json;

/// For how long an answer of the store counts: anybody may ask, so asking must cost nothing.
const FRESH: Duration = Duration::from_secs(1);

/// How long the store may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Groups of writes that wait when this process is too far behind to be sent more.
const TOO_FAR_BEHIND: usize = 8_192;

/// That all is well.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    status: &'static str,
}

/// What the store said last.
#[derive(Debug, Default)]
pub(crate) struct LastCheck(Mutex<Option<(Instant, bool)>>);

/// `GET /healthz`: the process answers.
pub(crate) async fn live() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// `GET /readyz`: it takes turns.
pub(crate) async fn ready(State(app): State<App>) -> Response {
    let wait = |why: &str| Problem::unavailable(why, Duration::from_secs(5)).into_response();
    if app.is_stopping() {
        wait("the server is shutting down")
    } else if app.store().pending_writes() > TOO_FAR_BEHIND {
        wait("the store is behind")
    } else if !app.last_check().is_well(&app).await {
        wait("the store does not answer")
    } else {
        live().await.into_response()
    }
}

impl LastCheck {
    async fn is_well(&self, app: &App) -> bool {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, well)) = known
            && at.elapsed() < FRESH
        {
            return well;
        }
        let registry = app.store().registry();
        let asked = tokio::time::timeout(PATIENCE, registry.tenant(belljar_store::TENANT)).await;
        let well = matches!(asked, Ok(Ok(_)));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), well));
        well
    }
}
