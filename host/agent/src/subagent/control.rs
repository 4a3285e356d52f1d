//! Cancels single subagents of a run from outside, and keeps who cancelled them or the run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The unended subagents of a run, and the canceller of each cancelled subagent.
#[derive(Debug, Default)]
pub struct SubagentControl(Mutex<ControlState>);

#[derive(Debug, Default)]
struct ControlState {
    subagents: HashMap<Arc<str>, CancellationToken>,
    /// Who cancelled the whole run.
    run_ended_by: Option<String>,
    /// Who cancelled each subagent, by the subagent's path.
    ended_by: HashMap<Arc<str>, String>,
}

impl SubagentControl {
    /// Cancels the subagent with this path and its descendants. `by` names who asks; if several ask, the
    /// first is kept. Returns `false` if no such subagent runs or waits.
    pub fn cancel_subagent(&self, path: &str, by: &str) -> bool {
        let mut state = self.lock_state();
        let found = state.subagents.get_key_value(path);
        let Some((path, token)) = found.map(|(path, token)| (Arc::clone(path), token.clone()))
        else {
            return false;
        };
        state.ended_by.entry(path).or_insert_with(|| by.to_owned());
        drop(state);
        token.cancel();
        true
    }

    /// Records who cancelled the whole run; the first one stays. The run itself ends by its own token.
    pub fn run_cancelled(&self, by: &str) {
        self.lock_state().run_ended_by.get_or_insert_with(|| by.to_owned());
    }

    /// Who cancelled the whole run; `None` = no one.
    pub fn run_cancelled_by(&self) -> Option<String> {
        self.lock_state().run_ended_by.clone()
    }

    /// The canceller of the subagent at this path: of the subagent, of an ancestor, or of the whole run;
    /// `None` = not cancelled from outside.
    pub fn cancelled_by(&self, path: &str) -> Option<String> {
        let state = self.lock_state();
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let mut lines = ends.filter_map(|end| path.get(..end));
        let found = lines.find_map(|line| state.ended_by.get(line));
        found.or(state.run_ended_by.as_ref()).cloned()
    }

    pub(crate) fn add_subagent(&self, path: &Arc<str>, cancel: &CancellationToken) {
        self.lock_state().subagents.insert(Arc::clone(path), cancel.clone());
    }

    pub(crate) fn remove_subagent(&self, path: &str) {
        self.lock_state().subagents.remove(path);
    }

    fn lock_state(&self) -> MutexGuard<'_, ControlState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ended_a_subagent_ended_all_below_it_and_nobody_beside_it() {
        let control = SubagentControl::default();
        let (scout, token): (Arc<str>, _) = ("main/scout#0".into(), CancellationToken::new());
        control.add_subagent(&scout, &token);
        assert!(!control.cancel_subagent("main/other#0", "key:1"));
        assert!(control.cancel_subagent("main/scout#0", "key:1"));
        assert!(control.cancel_subagent("main/scout#0", "key:2"), "it has not ended yet");
        assert!(token.is_cancelled());
        let by = |path: &str| control.cancelled_by(path);
        assert_eq!(by("main/scout#0").as_deref(), Some("key:1"));
        assert_eq!(by("main/scout#0/helper#0").as_deref(), Some("key:1"));
        assert_eq!(by("main/scout#01"), None);
        assert_eq!(by("main/other#0"), None);
        control.run_cancelled("local");
        control.run_cancelled("key:3");
        assert_eq!(by("main/other#0").as_deref(), Some("local"));
        assert_eq!(by("main/scout#0").as_deref(), Some("key:1"), "that was before");
        assert_eq!(control.run_cancelled_by().as_deref(), Some("local"));
    }
}
