//! The doings of MCP servers in one run: which of them a person wants to hear nothing more of, and the
//! tokens that models have used for them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::replay::log::Replay;

/// Forms of a server to which nobody came, one after the other; nobody is waited for again in that run. The
/// time of a wait is none of the run's, so without a bound a server would keep a run, and its place, for days.
const MAX_MISSED: u32 = 3;

/// The servers of one run, or of all jars that one session of a client has in turn: clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Served(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Those for which a person wants to be asked nothing more.
    muted: HashSet<String>,
    /// How many forms of each nobody came to, since somebody did.
    missed: HashMap<String, u32>,
    /// The tokens of each, used or held, and its texts.
    written: HashMap<String, (u64, u64)>,
}

impl Served {
    /// After those of a run whose process died. INV-364: they have no more tokens than they had then, and
    /// whoever wanted to be asked nothing more is not.
    pub(crate) fn after(replay: &Replay) -> Self {
        let served = Self::default();
        let mut state = served.state();
        for (server, number, tokens) in replay.written() {
            let (used, texts) = state.written.entry(server.to_owned()).or_default();
            *used = used.saturating_add(tokens);
            *texts = number.max(*texts);
        }
        state.muted.extend(replay.muted().map(str::to_owned));
        drop(state);
        served
    }

    /// Holds tokens for one text of a prompt that is counted as so many, and of at most so many more;
    /// gives the number of the text, and how long it may be. INV-364: used and held together never pass
    /// what is granted.
    pub(crate) fn hold(
        &self,
        server: &str,
        granted: u64,
        prompt: u64,
        most: u64,
    ) -> Option<(u64, u64)> {
        let mut state = self.state();
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

    /// Puts the tokens that were used in the place of those that were held.
    pub(crate) fn settle(&self, server: &str, held: u64, used: u64) {
        let mut state = self.state();
        if let Some((all, _)) = state.written.get_mut(server) {
            *all = all.saturating_sub(held).saturating_add(used);
        }
    }

    /// Whether a person wants to be asked nothing more for it.
    pub(crate) fn is_muted(&self, server: &str) -> bool {
        self.state().muted.contains(server)
    }

    /// Nobody is asked for it any more.
    pub(crate) fn mute(&self, server: &str) {
        self.state().muted.insert(server.to_owned());
    }

    /// Whether nobody is waited for any more.
    pub(crate) fn is_given_up(&self, server: &str) -> bool {
        self.state().missed.get(server).is_some_and(|missed| *missed >= MAX_MISSED)
    }

    /// Somebody came to a form of it, or nobody.
    pub(crate) fn waited(&self, server: &str, came: bool) {
        let mut state = self.state();
        let missed = state.missed.entry(server.to_owned()).or_default();
        *missed = if came { 0 } else { missed.saturating_add(1) };
    }

    fn state(&self) -> MutexGuard<'_, State> {
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
        let served = Served::default();
        assert_eq!(served.hold("a", 100, 10, 50), Some((1, 50)));
        assert_eq!(served.hold("a", 100, 10, 50), Some((2, 30)));
        assert_eq!(served.hold("a", 100, 10, 50), None);
        assert_eq!(served.hold("b", 100, 10, 50), Some((1, 50)), "another has its own");
        served.settle("a", 60, 20);
        assert_eq!(served.hold("a", 100, 10, 50), Some((3, 30)));
        served.settle("a", 40, 1_000);
        assert_eq!(served.hold("a", 100, 0, 1), None);
        assert_eq!(served.hold("c", 10, 10, 5), None);
    }
    #[test]
    fn nobody_is_waited_for_after_three_forms_in_a_row_that_nobody_came_to() {
        let served = Served::default();
        for came in [false, false, true, false, false] {
            served.waited("a", came);
            assert!(!served.is_given_up("a"));
        }
        served.waited("a", false);
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
        let replay = Replay::of([
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
        let served = Served::after(&replay);
        assert_eq!(served.hold("a", 100, 10, 50), Some((3, 10)));
        assert_eq!(served.hold("a", 100, 10, 50), None);
        assert_eq!(served.hold("b", 100, 10, 50), Some((2, 50)), "another has its own");
        assert_eq!(replay.take("a").unwrap().written(1), used);
        assert!(served.is_muted("b") && !served.is_muted("a"));
    }
}
