//! The background subagents of an agent. The end of each is told to the agent's model once, after the
//! outcome is stored.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use belljar_policy::ShownText;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::prompt::frame;

/// The prefix of a background subagent's id, for example `bg-1`.
const ID: &str = "bg-";

/// Most characters of a task in the list that `agent_status` returns.
const MAX_TASK: usize = 80;

/// The background subagents of an agent.
#[derive(Default)]
pub(crate) struct BackgroundChildren {
    entries: Mutex<Vec<BackgroundEntry>>,
    /// The number in the last reserved id. Its subagent may not be in `entries` yet.
    given: AtomicUsize,
    changed: Notify,
}

struct BackgroundEntry {
    id: String,
    /// The id of the call that started the subagent.
    call: String,
    agent: String,
    task: String,
    cancel: CancellationToken,
    /// The subagent's task, aborted when this list is dropped.
    handle: Option<AbortOnDropHandle<()>>,
    done: Option<EndedChild>,
    /// True once the parent's model knows that the subagent has ended.
    announced: bool,
}

/// The end of a background subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndedChild {
    pub(crate) status: crate::outcome::RunStatus,
    pub(crate) conclusion: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChildStanding {
    Unknown,
    Running,
    Ended(EndedChild),
}

impl BackgroundChildren {
    /// Reserves an id with a number above all ids in use. A resumed run may have added ids in another order.
    pub(crate) fn next_id(&self) -> String {
        let number = |entry: &BackgroundEntry| entry.id.strip_prefix(ID)?.parse::<usize>().ok();
        let entries = self.lock_entries();
        let last = entries.iter().filter_map(number).max().unwrap_or(0);
        let next = last.max(self.given.load(Ordering::Relaxed)).saturating_add(1);
        // No race: the entries are locked here.
        self.given.store(next, Ordering::Relaxed);
        format!("{ID}{next}")
    }

    /// Adds a subagent to the list, not running yet: its id, and the starting call, agent and task.
    pub(crate) fn add_child(
        &self,
        id: &str,
        (call, agent, task): (&str, &str, &str),
        cancel: CancellationToken,
    ) {
        self.lock_entries().push(BackgroundEntry {
            id: id.to_owned(),
            call: call.to_owned(),
            agent: agent.to_owned(),
            task: ShownText::clip_line(task, MAX_TASK).to_string(),
            cancel,
            handle: None,
            done: None,
            announced: false,
        });
    }

    /// The id of the background subagent that the call started.
    pub(crate) fn find_by_call(&self, call: &str) -> Option<String> {
        self.lock_entries().iter().find(|entry| entry.call == call).map(|entry| entry.id.clone())
    }

    /// Stores the handle of the subagent's running task.
    pub(crate) fn attach_task(&self, id: &str, handle: AbortOnDropHandle<()>) {
        if let Some(entry) = self.lock_entries().iter_mut().find(|entry| entry.id == id) {
            entry.handle = Some(handle);
        }
    }

    /// Records that the subagent has ended. Its outcome is stored before.
    pub(crate) fn record_end(&self, id: &str, ended: EndedChild) {
        if let Some(entry) = self.lock_entries().iter_mut().find(|entry| entry.id == id) {
            entry.done = Some(ended);
        }
        self.changed.notify_waiters();
    }

    /// Returns a message for the model about each end still unknown to the model, and marks the ends as
    /// known.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        let mut news = Vec::new();
        for entry in self.lock_entries().iter_mut().filter(|entry| !entry.announced) {
            if let Some(done) = &entry.done {
                entry.announced = true;
                news.push(frame::end_announcement(&entry.id, &done.conclusion));
            }
        }
        news
    }

    /// Marks each subagent whose end the message announces as known to the parent.
    pub(crate) fn mark_announced(&self, text: &str) {
        for entry in self.lock_entries().iter_mut().filter(|entry| !entry.announced) {
            entry.announced = frame::is_announcement(text, &entry.id);
        }
    }

    /// Marks the end of a subagent as known, because the parent got it as a call's result.
    pub(crate) fn mark_known(&self, id: &str) {
        if let Some(entry) = self.lock_entries().iter_mut().find(|entry| entry.id == id) {
            entry.announced = true;
        }
    }

    /// Returns whether the subagent with this id has ended.
    pub(crate) fn has_ended(&self, id: &str) -> bool {
        self.lock_entries().iter().any(|entry| entry.id == id && entry.done.is_some())
    }

    /// Returns the state of a subagent to its parent's model, so its end counts as known afterwards.
    pub(crate) fn look(&self, id: &str) -> ChildStanding {
        let mut entries = self.lock_entries();
        let Some(entry) = entries.iter_mut().find(|entry| entry.id == id) else {
            return ChildStanding::Unknown;
        };
        match &entry.done {
            Some(done) => {
                entry.announced = true;
                ChildStanding::Ended(done.clone())
            }
            None => ChildStanding::Running,
        }
    }

    /// Waits until the subagent with this id has ended. Returns at once if the id is unknown.
    pub(crate) async fn wait_for_child(&self, id: &str) -> ChildStanding {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.look(id) {
                ChildStanding::Running => changed.await,
                standing => return standing,
            }
        }
    }

    /// Waits until no background subagent runs.
    pub(crate) async fn wait_for_all(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.running_children().is_empty() {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn cancel_child(&self, id: &str) {
        if let Some(entry) = self.lock_entries().iter().find(|entry| entry.id == id) {
            entry.cancel.cancel();
        }
    }

    /// The id and the agent's name of each running subagent.
    pub(crate) fn running_children(&self) -> Vec<(String, String)> {
        let entries = self.lock_entries();
        let running = entries.iter().filter(|entry| entry.done.is_none());
        running.map(|entry| (entry.id.clone(), entry.agent.clone())).collect()
    }

    /// The number of background subagents that were ever started.
    pub(crate) fn started_count(&self) -> usize {
        self.lock_entries().len()
    }

    /// The ids of the running subagents, except for the `first` ones that were started earliest.
    pub(crate) fn running_since(&self, first: usize) -> Vec<String> {
        let entries = self.lock_entries();
        let running = entries.iter().skip(first).filter(|entry| entry.done.is_none());
        running.map(|entry| entry.id.clone()).collect()
    }

    /// Returns whether a background subagent still runs, or an end is not known to the parent's model.
    pub(crate) fn is_open(&self) -> bool {
        self.lock_entries().iter().any(|entry| entry.done.is_none() || !entry.announced)
    }

    /// One line of text for each subagent, or only for `id`; `None` = the id is unknown.
    pub(crate) fn format_list(&self, id: Option<&str>) -> Option<String> {
        let entries = self.lock_entries();
        let chosen = entries.iter().filter(|entry| id.is_none_or(|id| entry.id == id));
        let line = |entry: &BackgroundEntry| {
            let status = entry.done.as_ref().map_or("running".to_owned(), |d| d.status.to_string());
            format!(
                "{} `{}` {status}: {}",
                entry.id,
                ShownText::clip_line(&entry.agent, 64),
                entry.task
            )
        };
        let lines: Vec<String> = chosen.map(line).collect();
        match (lines.is_empty(), id) {
            (true, Some(_)) => None,
            (true, None) => Some("there are no subagents in the background".to_owned()),
            (false, _) => Some(lines.join("\n")),
        }
    }

    /// All ids, for an error text.
    pub(crate) fn format_ids(&self) -> String {
        let ids: Vec<String> =
            self.lock_entries().iter().map(|entry| format!("`{}`", entry.id)).collect();
        if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
    }

    /// Aborts all remaining tasks: their runs have ended, or nobody waits for them.
    pub(crate) fn abort_tasks(&self) {
        let handles: Vec<_> =
            self.lock_entries().iter_mut().filter_map(|entry| entry.handle.take()).collect();
        drop(handles);
    }

    fn lock_entries(&self) -> MutexGuard<'_, Vec<BackgroundEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of `agent_result` for a subagent that still runs.
pub(crate) fn still_running(id: &str) -> String {
    format!("`{id}` is still running")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::RunStatus;
    use std::sync::Arc;

    fn ended(text: &str) -> EndedChild {
        EndedChild { status: RunStatus::Completed, conclusion: text.to_owned() }
    }

    #[test]
    fn an_end_is_announced_once() {
        let it = BackgroundChildren::default();
        let id = &it.next_id();
        it.add_child(id, ("c", "scout", "look"), CancellationToken::new());
        assert!(it.is_open() && it.take_notes().is_empty());
        it.record_end(id, ended("found"));
        let news = it.take_notes();
        assert!(news[0].contains("found") && news[0].contains(id), "{news:?}");
        assert!(it.take_notes().is_empty() && !it.is_open());
        assert_eq!(it.look(id), ChildStanding::Ended(ended("found")));
    }

    #[test]
    fn an_end_that_was_looked_at_is_no_news() {
        let it = BackgroundChildren::default();
        let id = &it.next_id();
        it.add_child(id, ("c", "scout", "look"), CancellationToken::new());
        it.record_end(id, ended("found"));
        assert_ne!(it.look(id), ChildStanding::Running);
        assert!(it.take_notes().is_empty());
        assert_eq!(it.look("bg-9"), ChildStanding::Unknown);
    }

    #[test]
    fn an_id_is_given_once_in_whatever_order_a_resumed_run_brings_the_earlier_ones() {
        let it = BackgroundChildren::default();
        it.add_child("bg-2", ("a", "scout", "left"), CancellationToken::new());
        assert_eq!(it.next_id(), "bg-3");
        assert_eq!(it.next_id(), "bg-4", "the one before is being started");
    }

    #[tokio::test]
    async fn waiting_ends_with_the_one_waited_for() {
        let it = Arc::new(BackgroundChildren::default());
        let id = &it.next_id();
        it.add_child(id, ("c", "scout", "look"), CancellationToken::new());
        let other = &it.next_id();
        it.add_child(other, ("c", "scout", "look"), CancellationToken::new());
        let waiting = tokio::spawn({
            let (it, id) = (Arc::clone(&it), id.clone());
            async move { it.wait_for_child(&id).await }
        });
        tokio::task::yield_now().await;
        it.record_end(id, ended("x"));
        assert_eq!(waiting.await.unwrap(), ChildStanding::Ended(ended("x")));
        assert_eq!(it.running_children(), [(other.clone(), "scout".to_owned())]);
    }
}
