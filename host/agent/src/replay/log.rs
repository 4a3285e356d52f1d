//! The journal of a run, so that the next process can resume it: each model answer before its effects, each
//! call with a possible effect before its start, and each result before the model gets it.
//!
//! ```text
//! agent ──StepEntry──> Journal (persisted)     ReplayLog ──> the same agent, in the next process
//! ```
//!
//! To resume, the loop is fed from the journal, in the same order, instead of asking the model or a tool
//! again. No output outside of the journal was ever visible; the one exception is a begun call. Such a call
//! is answered as interrupted and not repeated, unless its tool only reads, its manifest has `resume =
//! "replay"`, or it started subagents, which resume by themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use belljar_model::{ModelReply, ToolCall};
use serde::{Deserialize, Serialize};

use crate::agent_loop::ledger::Place;
use crate::outcome::{Attachment, CallReceipt, ChildSummary, Usage};
use crate::tools::answer::CallAnswer;
use crate::tools::nested::reply::AnswerForm;

/// One entry of the journal, about a step of an agent.
#[derive(Debug, Clone)]
pub struct StepEntry {
    /// The agent's address in the journal: the top agent's slug; for a subagent, its parent's address, the id
    /// of the starting call and the place in that call. The same in every resumed process.
    pub agent: Arc<str>,
    /// The agent's step, from 1.
    pub step: u64,
    /// The position of the call in the step, from 0; 0 if the entry is about no call.
    pub position: usize,
    /// The kind of the step.
    pub kind: StepKind,
}

/// The kind of an entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum StepKind {
    /// The model has answered.
    Said {
        /// The notes that the host added to the conversation before the answer.
        #[serde(default, rename = "told", skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
        /// The answer.
        reply: ModelReply,
    },
    /// A call that may have effects is about to be made, or subagents are about to start.
    Begun {
        /// The subagents that the call is about to start; empty for other calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        children: Vec<PlannedChild>,
        /// The digest of the call's name and arguments, if a tool made the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        called: Option<String>,
        /// The source of times and random numbers, if the call can be repeated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        course: Option<LoggedCourse>,
        /// True if a person was asked and allowed the call.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asked: bool,
    },
    /// A call has a result.
    Result(Box<LoggedResult>),
    /// A subagent has ended.
    Child {
        /// The place of the subagent in the starting call, from 0.
        place: usize,
        /// The subagent's outcome, without the conversation.
        summary: Box<ChildSummary>,
    },
    /// A model is about to write a text for an MCP server, or has.
    Written(LoggedText),
    /// A person refused all further questions of an MCP server.
    Muted {
        /// The server.
        server: String,
    },
}

/// A text of a model for an MCP server. Two entries are stored about a text: before, and afterwards with the
/// usage; the later entry counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedText {
    /// The server.
    pub(crate) server: String,
    /// The number among the run's texts for the server, from 1.
    pub(crate) number: u64,
    /// The tokens charged to the server's grant: all reserved tokens, until the used number is known.
    pub(crate) tokens: u64,
    /// The used tokens; `None` = the text was not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Usage>,
}

/// The source of the times and random numbers in a call, stored so a repeated call sees the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedCourse {
    /// The start of the call, in milliseconds since 1970.
    pub(crate) began: u64,
    /// The seed of the call's times and random numbers, unique to the call: a random number, the run, and the
    /// call's place.
    pub(crate) seed: String,
}

/// The stored result of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoggedResult {
    /// The text that the model reads.
    pub content: String,
    /// True if the result is an error.
    pub is_error: bool,
    /// The receipt; absent for a call that started subagents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<CallReceipt>,
    /// The attachments of the result. Their contents are stored separately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The id of the background subagent that the call has started, for example `bg-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// How a tool receives the result, if a tool made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nested: Option<LoggedNested>,
}

/// What a tool that made a nested call receives of the result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LoggedNested {
    /// A digest of the call's name and arguments.
    pub(crate) called: String,
    /// How the result's text is divided into parts.
    pub(crate) form: AnswerForm,
}

/// A subagent that is about to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlannedChild {
    /// The place in the call, from 0.
    pub place: usize,
    /// The agent's slug, for example `scout`, by which spawn indices are counted.
    pub slug: String,
    /// The child's spawn index.
    pub spawn_index: u32,
    /// The nested call that started the background subagent, if a tool made the call: an ended tool does not
    /// repeat the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ToolCall>,
}

/// The journal of an interrupted run.
#[derive(Debug, Default)]
pub struct ReplayLog {
    agents: Mutex<HashMap<Arc<str>, Arc<AgentPast>>>,
    /// The number of spawn indices already used, by slug.
    spawned: HashMap<String, u32>,
    children: usize,
    /// The tokens of each text for a server, keyed by the server and the text's number.
    written: BTreeMap<(String, u64), u64>,
    /// The servers whose further questions a person has refused.
    muted: BTreeSet<String>,
    entries: usize,
}

/// The journal of one agent.
#[derive(Debug, Default)]
pub(crate) struct AgentPast {
    said: HashMap<u64, (Vec<String>, ModelReply)>,
    begun: HashMap<(u64, usize), Vec<PlannedChild>>,
    /// The digests of nested calls, by step and position.
    called: HashMap<(u64, usize), String>,
    /// The sources of times and random numbers of repeatable calls, by step and position.
    courses: HashMap<(u64, usize), LoggedCourse>,
    /// The step and position of each call that a person has allowed.
    asked: HashSet<(u64, usize)>,
    results: HashMap<(u64, usize), LoggedResult>,
    children: HashMap<(u64, Place), ChildSummary>,
    /// The usage of texts that models wrote for servers, keyed by step, server and the text's number.
    written: BTreeMap<(u64, String, u64), Usage>,
}

impl ReplayLog {
    /// Creates the journal from all entries of a run, in the order in which they were stored.
    pub fn from_entries(entries: impl IntoIterator<Item = StepEntry>) -> Self {
        let mut agents: HashMap<Arc<str>, AgentPast> = HashMap::new();
        let mut replay = Self::default();
        for StepEntry { agent, step, position, kind } in entries {
            replay.entries += 1;
            let past = agents.entry(agent).or_default();
            match kind {
                StepKind::Said { notes, reply } => {
                    past.said.insert(step, (notes, reply));
                }
                StepKind::Begun { children, called, course, asked } => {
                    past.asked.extend(asked.then_some((step, position)));
                    past.courses.extend(course.map(|course| ((step, position), course)));
                    past.called.extend(called.map(|called| ((step, position), called)));
                    replay.children += children.len();
                    for child in &children {
                        let next = replay.spawned.entry(child.slug.clone()).or_default();
                        *next = (*next).max(child.spawn_index.saturating_add(1));
                    }
                    past.begun.insert((step, position), children);
                }
                StepKind::Result(result) => {
                    let called = result.nested.as_ref().map(|nested| nested.called.clone());
                    past.called.extend(called.map(|called| ((step, position), called)));
                    past.results.insert((step, position), *result);
                }
                StepKind::Child { place, summary } => {
                    past.children.insert((step, (position, place)), *summary);
                }
                StepKind::Written(LoggedText { server, number, tokens, used }) => {
                    replay.written.insert((server.clone(), number), tokens);
                    past.written.extend(used.map(|used| ((step, server, number), used)));
                }
                StepKind::Muted { server } => {
                    replay.muted.insert(server);
                }
            }
        }
        let agents = agents.into_iter().map(|(agent, past)| (agent, Arc::new(past))).collect();
        replay.agents = Mutex::new(agents);
        replay
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Returns whether the journal is empty, so the run starts from its beginning.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The number of subagents started, and how many spawn indices are used for each slug.
    pub(crate) fn spawn_counts(&self) -> (usize, HashMap<String, u32>) {
        (self.children, self.spawned.clone())
    }

    /// The texts, finished or not, that models wrote for servers: the server, the text's number, and the
    /// text's tokens.
    pub(crate) fn server_texts(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.written.iter().map(|((server, number), tokens)| (server.as_str(), *number, *tokens))
    }

    /// The servers whose further questions a person has refused.
    pub(crate) fn muted_servers(&self) -> impl Iterator<Item = &str> {
        self.muted.iter().map(String::as_str)
    }

    /// All calls with a result, each with the agent's address, the step and the position.
    pub(crate) fn logged_results(&self) -> Vec<(Arc<str>, u64, usize, LoggedResult)> {
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for (address, past) in &*agents {
            let of = past.results.iter().map(|((step, position), result)| {
                (Arc::clone(address), *step, *position, result.clone())
            });
            all.extend(of);
        }
        all
    }

    /// The tool name that the model wrote in the call.
    pub(crate) fn call_name(&self, agent: &str, step: u64, position: usize) -> Option<String> {
        let agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, reply) = agents.get(agent)?.step_reply(step)?;
        reply.calls.get(position).map(|call| call.name.clone())
    }

    /// Takes the journal of an agent. A second request for the same agent returns `None`.
    pub(crate) fn take_agent(&self, agent: &str) -> Option<Arc<AgentPast>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner).remove(agent)
    }
}

impl AgentPast {
    /// The model's answer in the step, with the host's notes before it.
    pub(crate) fn step_reply(&self, step: u64) -> Option<(&[String], &ModelReply)> {
        self.said.get(&step).map(|(notes, reply)| (notes.as_slice(), reply))
    }

    /// The tokens of texts written for servers in this step.
    pub(crate) fn server_text_usage(&self, step: u64) -> Usage {
        let mut all = Usage::default();
        let of = self.written.iter().filter(|((of, ..), _)| *of == step);
        of.for_each(|(_, used)| all += *used);
        all
    }

    /// The result of a call.
    pub(crate) fn call_result(&self, step: u64, position: usize) -> Option<&LoggedResult> {
        self.results.get(&(step, position))
    }

    /// The digest of the nested call at this place.
    pub(crate) fn call_digest(&self, step: u64, position: usize) -> Option<&str> {
        self.called.get(&(step, position)).map(String::as_str)
    }

    /// The source of the times and random numbers of a call that can run again.
    pub(crate) fn call_course(&self, step: u64, position: usize) -> Option<LoggedCourse> {
        self.courses.get(&(step, position)).cloned()
    }

    /// Returns whether a person allowed a call that had begun.
    pub(crate) fn was_asked(&self, step: u64, position: usize) -> bool {
        self.asked.contains(&(step, position))
    }

    /// The step and position of each begun or ended call, in order.
    pub(crate) fn call_places(&self) -> BTreeSet<(u64, usize)> {
        self.results.keys().chain(self.begun.keys()).copied().collect()
    }

    /// The subagents that a begun call was about to start; empty if the call starts none, `None` if it had
    /// not begun.
    pub(crate) fn planned_children(&self, step: u64, position: usize) -> Option<&[PlannedChild]> {
        self.begun.get(&(step, position)).map(Vec::as_slice)
    }

    /// The stored spawn index of a subagent that the call was about to start.
    pub(crate) fn spawn_index(
        &self,
        step: u64,
        position: usize,
        place: usize,
        slug: &str,
    ) -> Option<u32> {
        let mut begun = self.planned_children(step, position)?.iter();
        let child = begun.find(|child| child.place == place && child.slug == slug)?;
        Some(child.spawn_index)
    }

    /// The stored outcome of the subagent that was started at this place.
    pub(crate) fn ended_child(&self, step: u64, place: Place) -> Option<&ChildSummary> {
        self.children.get(&(step, place))
    }

    /// Returns whether the background subagent with this id had ended.
    pub(crate) fn ended_in_background(&self, id: &str) -> bool {
        let mut started = self.results.iter();
        let of = started.find(|(_, result)| result.background.as_deref() == Some(id));
        of.is_some_and(|((step, at), _)| self.ended_child(*step, (*at, 0)).is_some())
    }

    /// The ended subagents of one call.
    pub(crate) fn ended_children(&self, step: u64, position: usize) -> Vec<(Place, &ChildSummary)> {
        let mut all: Vec<_> = self
            .children
            .iter()
            .filter(|((of, (at, _)), _)| (*of, *at) == (step, position))
            .map(|((_, place), summary)| (*place, summary))
            .collect();
        all.sort_by_key(|(place, _)| *place);
        all
    }
}

impl LoggedResult {
    /// A result that has only the model's text and the receipt.
    pub fn from_content(content: String, is_error: bool, receipt: Option<CallReceipt>) -> Self {
        let (attachments, background, nested) = (Vec::new(), None, None);
        Self { content, is_error, receipt, attachments, background, nested }
    }

    /// The text that the model reads.
    pub(crate) fn answer(&self) -> CallAnswer {
        CallAnswer { content: self.content.clone(), is_error: self.is_error }
    }
}

/// The journal address of a subagent. An `@` marks addresses of nested calls, so a call id, which a model may
/// write, must not contain one.
pub(crate) fn child_address(parent: &str, call_id: &str, place: usize) -> Arc<str> {
    format!("{parent}/{}.{place}", call_id.replace('@', "%40")).into()
}
