//! What the MCP servers of a run have used: the tokens of each, and which servers a person has muted.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::replay::log::ReplayLog;

/// How many forms of a server may go unanswered in a row; then the run waits for no further form of it. Waits
/// do not count as the run's time, so a server could otherwise hold a run for days.
const MAX_MISSED: u32 = 3;

/// The state of the MCP servers of a run, or of all jars of a client's session. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ServerAccounts(Arc<Mutex<AccountsState>>);

#[derive(Debug, Default)]
struct AccountsState {
    /// The servers of which a person wants no further questions.
    muted: HashSet<String>,
    /// How many forms of each server went unanswered since the last answered one.
    missed: HashMap<String, u32>,
    /// For each server, the tokens used or reserved, and the number of texts.
    written: HashMap<String, (u64, u64)>,
}

impl ServerAccounts {
    /// The state of a run that resumes. INV-364: servers get no fresh tokens, and muted servers stay muted.
    pub(crate) fn from_replay(replay: &ReplayLog) -> Self {
        let served = Self::default();
        let mut state = served.lock_state();
        for (server, number, tokens) in replay.server_texts() {
            let (used, texts) = state.written.entry(server.to_owned()).or_default();
            *used = used.saturating_add(tokens);
            *texts = number.max(*texts);
        }
        state.muted.extend(replay.muted_servers().map(str::to_owned));
        drop(state);
        served
    }

    /// Reserves tokens for one text: `prompt` for the prompt and at most `most` for the answer. Returns the
    /// text's number and the answer's limit; `None` = too few tokens are left. INV-364: used and reserved
    /// tokens together never exceed `granted`.
    pub(crate) fn hold_tokens(
        &self,
        server: &str,
        granted: u64,
        prompt: u64,
        most: u64,
    ) -> Option<(u64, u64)> {
        let mut state = self.lock_state();
        let (used, texts) = state.written.entry(server.to_owned()).or_default();
        let left = granted.saturating_sub(*used).saturating_sub(prompt);
        let most = most.min(left);
        if most == 0 {
            return None;
        }
        *used = used.saturating_add(prompt).saturating_add(most);
        *texts += 1;
        Some((*texts, most))
    }

    /// Replaces the reserved tokens of a text by the tokens it used.
    pub(crate) fn settle_tokens(&self, server: &str, held: u64, used: u64) {
        let mut state = self.lock_state();
        if let Some((all, _)) = state.written.get_mut(server) {
            *all = all.saturating_sub(held).saturating_add(used);
        }
    }

    /// Returns whether a person has refused all further questions of this server.
    pub(crate) fn is_muted(&self, server: &str) -> bool {
        self.lock_state().muted.contains(server)
    }

    /// Mutes a server: the person is asked no more of its questions in the run.
    pub(crate) fn mute_server(&self, server: &str) {
        self.lock_state().muted.insert(server.to_owned());
    }

    /// Returns whether so many forms of the server went unanswered that no further one is shown.
    pub(crate) fn is_given_up(&self, server: &str) -> bool {
        self.lock_state().missed.get(server).is_some_and(|missed| *missed >= MAX_MISSED)
    }

    /// Records whether a person answered a form of the server.
    pub(crate) fn record_attendance(&self, server: &str, came: bool) {
        let mut state = self.lock_state();
        let missed = state.missed.entry(server.to_owned()).or_default();
        *missed = if came { 0 } else { missed.saturating_add(1) };
    }

    fn lock_state(&self) -> MutexGuard<'_, AccountsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Usage;
    use crate::replay::log::{LoggedText, StepEntry, StepKind};

    #[test]
    fn what_is_held_and_used_never_passes_what_is_granted() {
        let served = ServerAccounts::default();
        assert_eq!(served.hold_tokens("a", 100, 10, 50), Some((1, 50)));
        assert_eq!(served.hold_tokens("a", 100, 10, 50), Some((2, 30)));
        assert_eq!(served.hold_tokens("a", 100, 10, 50), None);
        assert_eq!(served.hold_tokens("b", 100, 10, 50), Some((1, 50)), "another has its own");
        served.settle_tokens("a", 60, 20);
        assert_eq!(served.hold_tokens("a", 100, 10, 50), Some((3, 30)));
        served.settle_tokens("a", 40, 1_000);
        assert_eq!(served.hold_tokens("a", 100, 0, 1), None);
        assert_eq!(served.hold_tokens("c", 10, 10, 5), None);
    }
    #[test]
    fn nobody_is_waited_for_after_three_forms_in_a_row_that_nobody_came_to() {
        let served = ServerAccounts::default();
        for came in [false, false, true, false, false] {
            served.record_attendance("a", came);
            assert!(!served.is_given_up("a"));
        }
        served.record_attendance("a", false);
        assert!(served.is_given_up("a") && !served.is_given_up("b"));
    }

    #[test]
    fn a_run_that_resumes_goes_on_with_what_is_left_to_each_server() {
        let entry = |server: &str, number, tokens, used: Option<Usage>| StepEntry {
            agent: "a".into(),
            step: 1,
            position: 0,
            kind: StepKind::Written(LoggedText { server: server.to_owned(), number, tokens, used }),
        };
        let used = Usage { output_tokens: 20, ..Usage::default() };
        let replay = ReplayLog::from_entries([
            entry("a", 1, 60, None),
            entry("a", 1, 20, Some(used)),
            entry("b", 1, 5, None),
            // The process died while this text was written, so all its reserved tokens count.
            entry("a", 2, 60, None),
            StepEntry {
                kind: StepKind::Muted { server: "b".to_owned() },
                ..entry("b", 1, 5, None)
            },
        ]);
        let served = ServerAccounts::from_replay(&replay);
        assert_eq!(served.hold_tokens("a", 100, 10, 50), Some((3, 10)));
        assert_eq!(served.hold_tokens("a", 100, 10, 50), None);
        assert_eq!(served.hold_tokens("b", 100, 10, 50), Some((2, 50)), "another has its own");
        assert_eq!(replay.take_agent("a").unwrap().server_text_usage(1), used);
        assert!(served.is_muted("b") && !served.is_muted("a"));
    }
}
