//! Sends the past of a session to an editor that loads it.
//!
//! The stored events of each turn are sent as they were first shown, with the text pieces of a step joined. A
//! turn without stored events is shown by its final messages.

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, MessageId, SessionUpdate,
};
use belljar_agent::{ChatMessage, EventKind, Image};
use belljar_policy::ShownText;
use belljar_session::{Turn, parse_event};
use belljar_store::SessionEvent;
use serde_json::Value;

use crate::door::{AcpDoor, Connection};
use crate::errors::{error_from_service, internal_failure};
use crate::limits::EVENTS_PAGE;
use crate::results::{CallResult, PassedKind, PassedStep};
use crate::terminal::exit_code;
use crate::tool_call;
use crate::updates::{OutgoingItem, UpdateMapper};
use crate::words::remark_update;

/// The state of sending one session's past.
struct HistoryReplay<'a> {
    door: &'a Arc<AcpDoor>,
    to: &'a Connection,
    session: &'a str,
    /// The turns that are not sent yet, the oldest last.
    turns: Vec<ReplayedTurn>,
    now: Option<CurrentTurn>,
}

/// A turn that is not sent yet.
struct ReplayedTurn {
    message: String,
    asked: String,
    text: String,
    images: Vec<Image>,
    output: String,
    error: Option<String>,
    /// The arguments of each call by its id, with the result: its text, and whether it is an error.
    calls: HashMap<String, (String, Option<(String, bool)>)>,
}

/// The turn that is being sent.
struct CurrentTurn {
    past: ReplayedTurn,
    updates: UpdateMapper,
    /// The text of each agent's present step so far, by the agent's path.
    saying: Vec<(String, String)>,
    root: Option<String>,
}

/// Sends all turns of a session; returns the number of the last event that was sent.
pub(crate) async fn replay_history(
    door: &Arc<AcpDoor>,
    to: &Connection,
    session: &str,
) -> Result<i64, Error> {
    let past = door.service.load_past(session).await.map_err(|error| error_from_service(&error))?;
    let mut turns: Vec<ReplayedTurn> = past.turns.iter().map(ReplayedTurn::from_turn).collect();
    turns.extend(find_unfinished(door, session).await?);
    turns.reverse();
    let mut telling = HistoryReplay { door, to, session, turns, now: None };
    let (store, mut last) = (door.service.store(), 0);
    let gone = || internal_failure("the editor does not read any more");
    loop {
        let page = store.events_after(session, last, EVENTS_PAGE).await;
        let page =
            page.map_err(|error| internal_failure(ShownText::new(&error.to_string()).to_string()))?;
        if page.is_empty() {
            break;
        }
        for event in page {
            last = event.id;
            telling.replay_event(&event).await.ok_or_else(gone)?;
        }
    }
    telling.end_current().await.ok_or_else(gone)?;
    while telling.begin_next().await.ok_or_else(gone)? {
        telling.end_current().await.ok_or_else(gone)?;
    }
    Ok(last)
}

/// The unfinished turn of a session, if it has one.
async fn find_unfinished(door: &AcpDoor, session: &str) -> Result<Option<ReplayedTurn>, Error> {
    let failed = |error: belljar_store::StoreError| {
        internal_failure(ShownText::new(&error.to_string()).to_string())
    };
    let Some(latest) = door.service.store().latest_turn(session).await.map_err(failed)? else {
        return Ok(None);
    };
    let open = latest.answer.status == belljar_store::MessageStatus::InFlight;
    Ok(open.then(|| {
        let asked = latest.asked.as_ref();
        let text = asked.and_then(|row| row.content.get("text")).and_then(Value::as_str);
        ReplayedTurn {
            message: latest.answer.id.clone(),
            asked: asked.map(|row| row.id.clone()).unwrap_or_default(),
            text: text.unwrap_or_default().to_owned(),
            images: Vec::new(),
            output: String::new(),
            error: None,
            calls: HashMap::new(),
        }
    }))
}

impl ReplayedTurn {
    /// Collects what the editor is shown of a stored turn: its question, answer, and calls with their
    /// results.
    fn from_turn(turn: &Turn) -> Self {
        let mut calls = HashMap::new();
        for message in &turn.state.outcome.messages {
            match message {
                ChatMessage::Assistant { calls: asked, .. } => {
                    for call in asked {
                        calls.insert(call.id.clone(), (call.arguments.clone(), None));
                    }
                }
                ChatMessage::Tool { results } => {
                    for result in results {
                        if let Some((_, content)) = calls.get_mut(&result.id) {
                            *content = Some((result.content.clone(), result.is_error));
                        }
                    }
                }
                ChatMessage::User { .. } => {}
            }
        }
        Self {
            message: turn.message.clone(),
            asked: turn.asked.clone(),
            text: turn.text().to_owned(),
            images: turn.brought_input().images,
            output: turn.state.outcome.output.clone(),
            error: turn.state.outcome.error.as_ref().map(ToString::to_string),
            calls,
        }
    }
}

impl HistoryReplay<'_> {
    async fn replay_event(&mut self, event: &SessionEvent) -> Option<()> {
        while self.now.as_ref().is_none_or(|now| *now.past.message != *event.message) {
            self.end_current().await?;
            if !self.begin_next().await? {
                // The event belongs to a turn that does not exist any more.
                return Some(());
            }
        }
        let Some(event) = parse_event(event) else { return Some(()) };
        let out = self.now.as_mut()?.handle_event(event.agent.to_string(), event.kind);
        self.send_updates(out).await
    }

    /// Begins the next turn, with the person's message. `Some(false)` if no turn is left.
    async fn begin_next(&mut self) -> Option<bool> {
        let Some(past) = self.turns.pop() else { return Some(false) };
        let images = past.images.iter().filter_map(|image| {
            Some(ContentBlock::Image(ImageContent::new(image.to_base64()?, image.media_type())))
        });
        for said in std::iter::once(tool_call::whole_block(&past.text)).chain(images) {
            let said = ContentChunk::new(said).message_id(MessageId::from(past.asked.clone()));
            let said = SessionUpdate::UserMessageChunk(said);
            self.door.send_update(self.to, self.session, said).await.then_some(())?;
        }
        let workspace = self.door.workspace().to_path_buf();
        let client = self.door.editor_capabilities();
        let updates = UpdateMapper::new(client, self.session, &past.message, workspace);
        self.now = Some(CurrentTurn { past, updates, saying: Vec::new(), root: None });
        Some(true)
    }

    /// Ends the turn that is being sent: its last texts, and its error.
    async fn end_current(&mut self) -> Option<()> {
        let Some(mut now) = self.now.take() else { return Some(()) };
        let mut out = now.flush_words(|_| true);
        out.extend(now.updates.terminal_ends());
        self.send_updates(out).await?;
        // A turn without events: they were deleted, or the turn ran beside the conversation.
        if now.root.is_none() && !now.past.output.is_empty() {
            let text = now.past.output.clone();
            self.send_updates(vec![OutgoingItem::Update(
                self.session.to_owned(),
                remark_update(&text),
            )])
            .await?;
        }
        if let Some(error) = &now.past.error {
            let text = format!("\n\n[{}]", ShownText::multiline(error));
            self.send_updates(vec![OutgoingItem::Update(
                self.session.to_owned(),
                remark_update(&text),
            )])
            .await?;
        }
        Some(())
    }

    /// Sends updates. Questions of the past are not asked again.
    async fn send_updates(&self, out: Vec<OutgoingItem>) -> Option<()> {
        for one in out {
            if let OutgoingItem::Update(session, update) = one {
                self.door.send_update(self.to, &session, update).await.then_some(())?;
            }
        }
        Some(())
    }
}

impl CurrentTurn {
    /// Converts one stored event to updates; pieces of text are collected until the step is complete.
    fn handle_event(&mut self, agent: String, kind: EventKind) -> Vec<OutgoingItem> {
        if self.root.is_none() {
            let root = agent.split('/').next().unwrap_or_default().to_owned();
            self.record_calls(&root);
            self.root = Some(root);
        }
        match kind {
            // The interrupted step is repeated from its beginning, so its text so far is dropped.
            EventKind::RunResumed { .. } => {
                self.saying.clear();
                Vec::new()
            }
            EventKind::TextDelta { text } => {
                match self.saying.iter_mut().find(|(whose, _)| *whose == agent) {
                    Some((_, saying)) => saying.push_str(&text),
                    None => self.saying.push((agent, text)),
                }
                Vec::new()
            }
            kind => {
                if let EventKind::Retry { replaces: true, .. } = kind {
                    self.saying.retain(|(whose, _)| *whose != agent);
                }
                let ended = match &kind {
                    EventKind::SubagentDone { child, .. } => child.clone(),
                    _ => String::new(),
                };
                let mut out = self.flush_words(|whose| whose == agent || whose == ended);
                out.extend(self.updates.map_event(agent, kind));
                out.extend(self.updates.late_results());
                out
            }
        }
    }

    /// The collected texts of the agents for which `whose` is true, as updates.
    fn flush_words(&mut self, whose: impl Fn(&str) -> bool) -> Vec<OutgoingItem> {
        let (said, open) =
            std::mem::take(&mut self.saying).into_iter().partition(|(agent, _)| whose(agent));
        self.saying = open;
        let said: Vec<(String, String)> = said;
        let say = |(agent, text)| self.updates.map_event(agent, EventKind::TextDelta { text });
        said.into_iter().flat_map(say).collect()
    }

    /// Adds the calls of the top agent, with their results.
    fn record_calls(&mut self, root: &str) {
        for (id, (arguments, content)) in std::mem::take(&mut self.past.calls) {
            self.updates.note_arguments(id.clone(), arguments);
            let Some((content, failed)) = content else { continue };
            let exit = exit_code(&content, failed);
            let (agent, paths) = (root.to_owned(), Vec::new());
            let result = CallResult { agent, call_id: id, content, exit, paths };
            let kind = PassedKind::Result(Box::new(result));
            let passed = PassedStep { run: self.past.message.clone(), step: 0, kind };
            self.updates.handle_step(Arc::new(passed));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::EditorCapabilities;

    /// The texts that an editor gets which loads a turn with the given events, each with its session.
    fn told(events: &[Value]) -> Vec<(String, String)> {
        let past = ReplayedTurn {
            message: "m".to_owned(),
            asked: "a".to_owned(),
            text: String::new(),
            images: Vec::new(),
            output: String::new(),
            error: None,
            calls: HashMap::new(),
        };
        let client =
            EditorCapabilities { subagents: true, notices: true, ..EditorCapabilities::default() };
        let updates = UpdateMapper::new(client, "s", "m", "/w".into());
        let mut now = CurrentTurn { past, updates, saying: Vec::new(), root: None };
        let mut out = Vec::new();
        for event in events {
            let kind = serde_json::from_value(event.clone()).unwrap();
            out.extend(now.handle_event(event["agent"].as_str().unwrap().to_owned(), kind));
        }
        out.extend(now.flush_words(|_| true));
        let words = out.into_iter().filter_map(|out| match out {
            OutgoingItem::Update(session, SessionUpdate::AgentMessageChunk(chunk)) => {
                match chunk.content {
                    ContentBlock::Text(text) => Some((session, text.text)),
                    _ => None,
                }
            }
            _ => None,
        });
        words.collect()
    }

    #[test]
    fn text_that_the_next_attempt_says_anew_is_told_once() {
        let step = json!({"agent": "a", "type": "step_started", "step": 1, "last": false});
        let says =
            |agent: &str, text: &str| json!({"agent": agent, "type": "text_delta", "text": text});
        let again = |replaces: bool| json!({"agent": "a", "type": "retry", "attempt": 1, "after_ms": 5, "reason": "cut", "replaces": replaces});
        let of = |told: &[(String, String)], session: &str| -> String {
            let own = told.iter().filter(|(of, _)| of == session);
            own.map(|(_, text)| text.as_str()).collect()
        };
        let one = told(&[
            step.clone(),
            says("a", "It is "),
            says("a", "hal"),
            again(true),
            says("a", "It is whole."),
        ]);
        assert_eq!(of(&one, "s"), "It is whole.");
        // The texts of a subagent that runs at the same time are not mixed in.
        let beside = told(&[
            step.clone(),
            says("a", "hal"),
            says("a/b#0", "found"),
            again(true),
            says("a", "whole"),
        ]);
        assert_eq!(of(&beside, "s"), "whole");
        assert_eq!(of(&beside, &crate::children::child_id("m", "a/b#0")), "found");
        // If the editor cannot take back a text, it stays.
        let stays = told(&[step, says("a", "half "), again(false), says("a", "and half")]);
        assert!(of(&stays, "s").contains("half "), "{stays:?}");
    }
}
