//! `GET /v1/sessions/{id}/events`: past and future events of a session, after any event.

use axum::http::HeaderMap;
use axum::response::Response;
use belljar_session::SessionEvent;
use serde::Deserialize;

use crate::app::Ctx;
use crate::http::problem::Problem;
use crate::http::respond::{PathOf, QueryOf};
use crate::stream::pump::Pump;
use crate::stream::sse::{Frames, Pulse};

/// The header with the last event seen by a reconnecting client.
const LAST_EVENT_ID: &str = "last-event-id";

/// Stored events that are read at once.
const PAGE: u32 = 500;

/// The position after which events are sent, and whether new ones follow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    after: Option<i64>,
    follow: Option<bool>,
}

/// `GET /v1/sessions/{id}/events`.
pub(crate) async fn watch(
    ctx: Ctx,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = ctx.session(&id).await?.id;
    // A reconnecting client sends both: the last seen event counts.
    let after = seen_last(&headers)?.or(query.after);
    if after.is_some_and(|after| after < 0) {
        return Err(Problem::invalid("`after` is below 0"));
    }
    let (frames, response) = Frames::new(ctx.app.outward());
    if query.follow == Some(false) {
        tokio::spawn(async move {
            let _counted = ctx.app.metrics().streams.one();
            stored(&ctx, &session, after.unwrap_or(0), &frames).await;
        });
        return Ok(response);
    }
    let events = Pump::start(ctx.service.watch(&session, Some(after.unwrap_or(0))).await?);
    tokio::spawn(async move { follow(&ctx, events, &frames).await });
    Ok(response)
}

fn seen_last(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    id.map(Some).ok_or_else(|| Problem::invalid("`Last-Event-ID` is no id of an event"))
}

/// Sends the stored events, until their end or the end of the caller's key.
async fn stored(ctx: &Ctx, session: &str, mut after: i64, frames: &Frames) {
    loop {
        if !ctx.app.gatekeeper().admitted(&ctx.caller).await {
            return;
        }
        let page = match ctx.store().events_after(session, after, PAGE).await {
            Ok(page) => page,
            Err(error) => {
                tracing::error!(%error, "events cannot be read");
                return;
            }
        };
        let Some(last) = page.last() else { return };
        after = last.seq;
        for event in page.into_iter().map(SessionEvent::from) {
            if !frames.send(Some(event.id), &event.kind, event.json.to_string()).await {
                return;
            }
        }
    }
}

/// Sends stored events and then new ones, until the server stops or the client disconnects.
async fn follow(ctx: &Ctx, mut events: Pump, frames: &Frames) {
    let _counted = ctx.app.metrics().streams.one();
    let mut pulse = Pulse::new(ctx);
    loop {
        let there = tokio::select! {
            () = frames.closed() => false,
            () = ctx.app.stopped().cancelled() => false,
            event = events.next() => match event {
                Some(event) => frames.send(Some(event.id), &event.kind, event.json.to_string()).await,
                None => false,
            },
            due = pulse.tick() => due.is_met(ctx, frames).await,
        };
        if !there {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_last_is_a_number_or_an_error() {
        let seen = |value: &str| {
            seen_last(&HeaderMap::from_iter([(
                axum::http::HeaderName::from_static(LAST_EVENT_ID),
                value.parse().unwrap(),
            )]))
        };
        assert_eq!(seen("12").unwrap(), Some(12));
        assert!(seen("twelve").is_err());
        assert_eq!(seen_last(&HeaderMap::new()).unwrap(), None);
    }
}
