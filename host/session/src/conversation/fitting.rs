//! A turn whose first request turns out to be longer than its model can read: it begins again behind
//! a summary of the earlier turns.

use belljar_agent::events::{EventSink, Events};
use belljar_agent::{Host, Outcome, RunError, RunSpec, Usage};
use belljar_model::Message;
use belljar_store::Store;
use tokio_util::sync::CancellationToken;

use crate::conversation::compaction::{self, Work};
use crate::conversation::talk::Conversation;
use crate::record::rows::History;

/// The place of a turn that may begin again.
pub(crate) struct Place<'a> {
    pub(crate) host: &'a Host,
    pub(crate) store: &'a Store,
    pub(crate) session: &'a str,
    /// The messages before it, without what its caller brought.
    pub(crate) past: Vec<Message>,
    /// Whether nothing of it was done yet, and its caller brought no messages of its own.
    pub(crate) is_fresh: bool,
}

/// A turn that has ended.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    /// The usage of summarising.
    pub(crate) used: Usage,
    /// How many messages were there before it.
    pub(crate) before: usize,
}

/// Runs a turn; once more where its first request does not fit and a summary helps. Who watches sees
/// one end.
pub(crate) async fn run(
    place: Place<'_>,
    conversation: &mut Conversation,
    spec: RunSpec,
    events: EventSink,
    cancel: CancellationToken,
) -> Ran {
    let Place { host, store, session, past, is_fresh } = place;
    let before = past.len();
    let can = is_fresh && before > 0 && conversation.history() == History::Compacted;
    let again = can.then(|| spec.clone());
    let (holding, end) = events.clone().holding_end();
    let outcome = conversation.run_turn(host, spec, holding, cancel.clone()).await;
    let Some(spec) = again.filter(|_| does_not_fit(&outcome)) else {
        end.let_go();
        return Ran { outcome, used: Usage::default(), before };
    };
    let said = conversation.put_back(past);
    let told = Events::new(events.clone(), outcome.run.clone(), end.number().unwrap_or_default());
    let work = Work { host, store, session, conversation, events: &told, cancel: &cancel };
    let done = compaction::now(&work).await;
    let (used, is_shorter) = (done.used, done.messages.is_some());
    conversation.take_over(done);
    if !is_shorter {
        conversation.put_back(said);
        end.let_go();
        return Ran { outcome, used, before };
    }
    let before = conversation.messages().len();
    let spec = RunSpec { first_event: told.next(), ..spec };
    let outcome = conversation.run_turn(host, spec, events, cancel).await;
    Ran { outcome, used, before }
}

/// Whether a run failed because its first request does not fit into the model's context.
fn does_not_fit(outcome: &Outcome) -> bool {
    let is_first = outcome.receipts.is_empty() && outcome.children.is_empty();
    let too_long = matches!(outcome.error, Some(RunError::Model { too_long: true, .. }));
    is_first && too_long && outcome.total.output_tokens == 0
}
