//! `GET /v1/sessions/{id}/events`: the events of a session, stored and future, from any position on.

use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;

use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{PathOf, QueryOf};
use crate::stream::pump::EventPump;
use crate::stream::sse::{FrameSender, StreamClock};

/// The header in which a reconnecting client names the last event that it received.
const LAST_EVENT_ID: &str = "last-event-id";

/// The number of stored events in one read from the store.
const PAGE: u32 = 500;

/// The query: `after` = the position of the last event that the caller knows; `follow` = whether to
/// wait for future events.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    after: Option<i64>,
    follow: Option<bool>,
}

/// `GET /v1/sessions/{id}/events`: sends the stored events after a position, and new events until the client
/// leaves, unless `follow` is false.
pub(crate) async fn watch_events(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = ctx.find_session(&id).await?.id;
    // A reconnecting client sends both `Last-Event-ID` and its first `after`: the header counts.
    let after = parse_last_event_id(&headers)?.or(query.after);
    if after.is_some_and(|after| after < 0) {
        return Err(Problem::invalid("`after` is below 0"));
    }
    let (frames, response) = FrameSender::new(ctx.app.place_hider());
    if query.follow == Some(false) {
        tokio::spawn(async move {
            let _counted = ctx.app.metrics().streams.count_one();
            send_stored(&ctx, &session, after.unwrap_or(0), &frames).await;
        });
        return Ok(response);
    }
    let events =
        EventPump::start_pump(ctx.service.watch_session(&session, Some(after.unwrap_or(0))).await?);
    tokio::spawn(async move { follow_events(&ctx, events, &frames).await });
    Ok(response)
}

fn parse_last_event_id(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    id.map(Some).ok_or_else(|| Problem::invalid("`Last-Event-ID` is no id of an event"))
}

/// Sends the stored events after `after`. Stops early if the caller's key is revoked meanwhile.
async fn send_stored(ctx: &HandlerContext, session: &str, mut after: i64, frames: &FrameSender) {
    loop {
        if !ctx.app.gatekeeper().is_admitted(&ctx.caller).await {
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
        after = last.id;
        for event in page {
            if !frames.forward_event(&event).await {
                return;
            }
        }
    }
}

/// Sends stored events and then new ones, until the server stops or the client disconnects.
async fn follow_events(ctx: &HandlerContext, mut events: EventPump, frames: &FrameSender) {
    let _counted = ctx.app.metrics().streams.count_one();
    let mut pulse = StreamClock::new(ctx);
    loop {
        let there = tokio::select! {
            () = frames.wait_until_closed() => false,
            () = ctx.app.stopped_token().cancelled() => false,
            event = events.next() => match event {
                Some(event) => frames.forward_event(&event).await,
                None => false,
            },
            due = pulse.wait_for_due() => due.is_met(ctx, frames).await,
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
            parse_last_event_id(&HeaderMap::from_iter([(
                axum::http::HeaderName::from_static(LAST_EVENT_ID),
                value.parse().unwrap(),
            )]))
        };
        assert_eq!(seen("12").unwrap(), Some(12));
        assert!(seen("twelve").is_err());
        assert_eq!(parse_last_event_id(&HeaderMap::new()).unwrap(), None);
    }
}
