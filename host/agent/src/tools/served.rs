//! The state of MCP servers in one run: the servers muted by a person, and the tokens used for each.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::replay::log::ReplayLog;

/// Unanswered forms of a server in a row, after which no further wait is made in the run. Waits do not count
/// as the run's time, so without a bound a server could hold a run, and its place, for days.
const MAX_MISSED: u32 = 3;

/// The servers of one run, or of all successive jars of a client's session, shared by clones.
#[derive(Debug, Clone, Default)]
pub struct ServerAccounts(Arc<Mutex<AccountsState>>);

#[derive(Debug, Default)]
struct AccountsState {
    /// The servers that a person has muted.
    muted: HashSet<String>,
    /// The unanswered forms of each server since the last answered one.
    missed: HashMap<String, u32>,
    /// The tokens, used or held, and the number of texts of each server.
    written: HashMap<String, (u64, u64)>,
}

impl ServerAccounts {
    /// The state after a run whose process died. INV-364: servers get no fresh tokens, and muted servers stay
    /// muted.
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

    /// Holds tokens for one text: the prompt's estimate, and at most `most` further ones; returns the text's
    /// number and largest length. INV-364: used and held tokens together never exceed the grant.
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

    /// Replaces the held tokens by the used ones.
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

    /// Mutes a server: the person gets no more of its questions.
    pub(crate) fn mute_server(&self, server: &str) {
        self.lock_state().muted.insert(server.to_owned());
    }

    /// Returns whether too many questions of this server went unanswered, so that no further wait is made.
    pub(crate) fn is_given_up(&self, server: &str) -> bool {
        self.lock_state().missed.get(server).is_some_and(|missed| *missed >= MAX_MISSED)
    }

    /// Notes whether a person answered a form.
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
            // A process died while this one was written: it counts whole.
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
