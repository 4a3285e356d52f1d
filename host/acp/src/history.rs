//! The transcript of a session, sent to an editor that loads the session.
//!
//! The transcript has the stored events of each turn, as first shown, with the text pieces of a step joined.
//! A turn without stored events is shown by its final messages.

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, MessageId, SessionUpdate,
};
use belljar_agent::{Event, EventKind, Image, Message};
use belljar_policy::Shown;
use belljar_session::Turn;
use serde_json::Value;

use crate::door::{Connection, Door};
use crate::errors::{failed, of_service};
use crate::limits::EVENTS_PAGE;
use crate::results::{CallResult, Passed, PassedKind};
use crate::terminal::exit_code;
use crate::tool_call;
use crate::updates::{Out, Updates};
use crate::words::remark;

/// The sending of one session's transcript.
struct Telling<'a> {
    door: &'a Arc<Door>,
    to: &'a Connection,
    session: &'a str,
    /// The turns that are still to be sent, the oldest last.
    turns: Vec<Past>,
    now: Option<Now>,
}

/// A turn that is still to be sent.
struct Past {
    message: String,
    asked: String,
    text: String,
    images: Vec<Image>,
    output: String,
    error: Option<String>,
    /// The arguments of each call, with its result: the text, and whether it is an error.
    calls: HashMap<String, (String, Option<(String, bool)>)>,
}

/// The turn that is being sent.
struct Now {
    past: Past,
    updates: Updates,
    /// The text of each agent's present step so far.
    saying: Vec<(String, String)>,
    root: Option<String>,
}

/// Sends all turns of a session, and returns the id of the last sent event.
pub(crate) async fn tell(door: &Arc<Door>, to: &Connection, session: &str) -> Result<i64, Error> {
    let past = door.service.past(session).await.map_err(|error| of_service(&error))?;
    let mut turns: Vec<Past> = past.turns.iter().map(Past::of).collect();
    turns.extend(unfinished(door, session).await?);
    turns.reverse();
    let mut telling = Telling { door, to, session, turns, now: None };
    let (store, mut last) = (door.service.store(), 0);
    let gone = || failed("the editor does not read any more");
    loop {
        let page = store.events_after(session, last, EVENTS_PAGE).await;
        let page = page.map_err(|error| failed(Shown::new(&error.to_string()).to_string()))?;
        if page.is_empty() {
            break;
        }
        for event in page {
            last = event.seq;
            telling.event(&event.message, &event.body).await.ok_or_else(gone)?;
        }
    }
    telling.end().await.ok_or_else(gone)?;
    while telling.next().await.ok_or_else(gone)? {
        telling.end().await.ok_or_else(gone)?;
    }
    Ok(last)
}

/// The unfinished turn, if any.
async fn unfinished(door: &Door, session: &str) -> Result<Option<Past>, Error> {
    let failed =
        |error: belljar_store::StoreError| failed(Shown::new(&error.to_string()).to_string());
    let Some(latest) = door.service.store().latest_turn(session).await.map_err(failed)? else {
        return Ok(None);
    };
    let open = latest.answer.status == belljar_store::MessageStatus::InFlight;
    Ok(open.then(|| {
        let asked = latest.asked.as_ref();
        let text = asked.and_then(|row| row.content.get("text")).and_then(Value::as_str);
        Past {
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

impl Past {
    fn of(turn: &Turn) -> Self {
        let mut calls = HashMap::new();
        for message in &turn.state.outcome.messages {
            match message {
                Message::Assistant { calls: asked, .. } => {
                    for call in asked {
                        calls.insert(call.id.clone(), (call.arguments.clone(), None));
                    }
                }
                Message::Tool { results } => {
                    for result in results {
                        if let Some((_, content)) = calls.get_mut(&result.id) {
                            *content = Some((result.content.clone(), result.is_error));
                        }
                    }
                }
                Message::User { .. } => {}
            }
        }
        Self {
            message: turn.message.clone(),
            asked: turn.asked.clone(),
            text: turn.text().to_owned(),
            images: turn.brought().images,
            output: turn.state.outcome.output.clone(),
            error: turn.state.outcome.error.as_ref().map(ToString::to_string),
            calls,
        }
    }
}

impl Telling<'_> {
    async fn event(&mut self, message: &str, json: &str) -> Option<()> {
        while self.now.as_ref().is_none_or(|now| now.past.message != message) {
            self.end().await?;
            if !self.next().await? {
                // Of no turn that is there.
                return Some(());
            }
        }
        let Ok(event) = serde_json::from_str::<Event>(json) else { return Some(()) };
        let out = self.now.as_mut()?.takes(event.agent.to_string(), event.kind);
        self.send(out).await
    }

    /// Begins the next turn, with its question. `Some(false)` = no more turns.
    async fn next(&mut self) -> Option<bool> {
        let Some(past) = self.turns.pop() else { return Some(false) };
        let images = past.images.iter().filter_map(|image| {
            Some(ContentBlock::Image(ImageContent::new(image.base64()?, image.media_type())))
        });
        for said in std::iter::once(tool_call::whole(&past.text)).chain(images) {
            let said = ContentChunk::new(said).message_id(MessageId::from(past.asked.clone()));
            let said = SessionUpdate::UserMessageChunk(said);
            self.door.send(self.to, self.session, said).await.then_some(())?;
        }
        let workspace = self.door.workspace().to_path_buf();
        let client = self.door.client();
        let updates = Updates::new(client, self.session, &past.message, workspace);
        self.now = Some(Now { past, updates, saying: Vec::new(), root: None });
        Some(true)
    }

    /// Ends the turn that is being sent.
    async fn end(&mut self) -> Option<()> {
        let Some(mut now) = self.now.take() else { return Some(()) };
        let mut out = now.said(|_| true);
        out.extend(now.updates.ends());
        self.send(out).await?;
        // A turn without events: the events were deleted, or the turn ran beside the conversation.
        if now.root.is_none() && !now.past.output.is_empty() {
            let text = now.past.output.clone();
            self.send(vec![Out::Update(self.session.to_owned(), remark(&text))]).await?;
        }
        if let Some(error) = &now.past.error {
            let text = format!("\n\n[{}]", Shown::multiline(error));
            self.send(vec![Out::Update(self.session.to_owned(), remark(&text))]).await?;
        }
        Some(())
    }

    /// Sends updates. Questions answered then are not asked again.
    async fn send(&self, out: Vec<Out>) -> Option<()> {
        for one in out {
            if let Out::Update(session, update) = one {
                self.door.send(self.to, &session, update).await.then_some(())?;
            }
        }
        Some(())
    }
}

impl Now {
    fn takes(&mut self, agent: String, kind: EventKind) -> Vec<Out> {
        if self.root.is_none() {
            let root = agent.split('/').next().unwrap_or_default().to_owned();
            self.knows(&root);
            self.root = Some(root);
        }
        match kind {
            // The interrupted step is shown again from its start.
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
                let mut out = self.said(|whose| whose == agent || whose == ended);
                out.extend(self.updates.of(agent, kind));
                out.extend(self.updates.late());
                out
            }
        }
    }

    /// The pending texts of the agents for which `whose` is true.
    fn said(&mut self, whose: impl Fn(&str) -> bool) -> Vec<Out> {
        let (said, open) =
            std::mem::take(&mut self.saying).into_iter().partition(|(agent, _)| whose(agent));
        self.saying = open;
        let said: Vec<(String, String)> = said;
        let say = |(agent, text)| self.updates.of(agent, EventKind::TextDelta { text });
        said.into_iter().flat_map(say).collect()
    }

    /// Adds the calls of the agent at the top, with their results.
    fn knows(&mut self, root: &str) {
        for (id, (arguments, content)) in std::mem::take(&mut self.past.calls) {
            self.updates.knows(id.clone(), arguments);
            let Some((content, failed)) = content else { continue };
            let exit = exit_code(&content, failed);
            let (agent, paths) = (root.to_owned(), Vec::new());
            let result = CallResult { agent, call_id: id, content, exit, paths };
            let kind = PassedKind::Result(Box::new(result));
            let passed = Passed { run: self.past.message.clone(), step: 0, kind };
            self.updates.passed(Arc::new(passed));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::Client;

    /// The words that an editor which loads a turn of these events is told, by session.
    fn told(events: &[Value]) -> Vec<(String, String)> {
        let past = Past {
            message: "m".to_owned(),
            asked: "a".to_owned(),
            text: String::new(),
            images: Vec::new(),
            output: String::new(),
            error: None,
            calls: HashMap::new(),
        };
        let client = Client { subagents: true, notices: true, ..Client::default() };
        let updates = Updates::new(client, "s", "m", "/w".into());
        let mut now = Now { past, updates, saying: Vec::new(), root: None };
        let mut out = Vec::new();
        for event in events {
            let kind = serde_json::from_value(event.clone()).unwrap();
            out.extend(now.takes(event["agent"].as_str().unwrap().to_owned(), kind));
        }
        out.extend(now.said(|_| true));
        let words = out.into_iter().filter_map(|out| match out {
            Out::Update(session, SessionUpdate::AgentMessageChunk(chunk)) => match chunk.content {
                ContentBlock::Text(text) => Some((session, text.text)),
                _ => None,
            },
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
        // Beside it a subagent goes on, whose words are its own.
        let beside = told(&[
            step.clone(),
            says("a", "hal"),
            says("a/b#0", "found"),
            again(true),
            says("a", "whole"),
        ]);
        assert_eq!(of(&beside, "s"), "whole");
        assert_eq!(of(&beside, &crate::children::id("m", "a/b#0")), "found");
        // Text that stays, because nothing takes it back.
        let stays = told(&[step, says("a", "half "), again(false), says("a", "and half")]);
        assert!(of(&stays, "s").contains("half "), "{stays:?}");
    }
}
