//! Lines that a person typed before a question. They are not taken as its answer, but kept for the next
//! reader of lines (INV-514).

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most lines that are kept: more than a person types during an answer.
const MAX_KEPT: usize = 100;

/// The kept lines, the oldest first. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct TypedAhead(Arc<Mutex<VecDeque<String>>>);

impl TypedAhead {
    /// Removes and returns the oldest kept line.
    pub(crate) fn take_line(&self) -> Option<String> {
        self.lock_lines().pop_front()
    }

    /// Reads and keeps the whole lines that wait at the terminal.
    pub(super) fn keep_waiting_lines(&self) {
        while is_line_there() {
            let mut line = String::new();
            match io::stdin().read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => self.push(line.trim_end_matches(['\n', '\r'])),
            }
        }
    }

    /// Keeps a line, unless it is blank or too many are kept.
    fn push(&self, line: &str) {
        let mut lines = self.lock_lines();
        if lines.len() < MAX_KEPT && !line.trim().is_empty() {
            lines.push_back(line.to_owned());
        }
    }

    fn lock_lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a line can be read without waiting. A terminal reports whole lines, unless an editor is
/// active, to which the typed text then belongs.
#[cfg(unix)]
fn is_line_there() -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::termios::{LocalModes, tcgetattr};
    let stdin = io::stdin();
    let by_lines = |modes: LocalModes| modes.contains(LocalModes::ICANON);
    if !tcgetattr(&stdin).is_ok_and(|terminal| by_lines(terminal.local_modes)) {
        return false;
    }
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
        && fds.iter().all(|fd| fd.revents() == PollFlags::IN)
}

#[cfg(not(unix))]
fn is_line_there() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_in_their_order_and_within_the_bound() {
        let ahead = TypedAhead::default();
        for line in ["one", " ", "two"] {
            ahead.clone().push(line);
        }
        assert_eq!(
            (ahead.take_line().as_deref(), ahead.take_line().as_deref()),
            (Some("one"), Some("two"))
        );
        assert_eq!(ahead.take_line(), None);
        (0..2 * MAX_KEPT).for_each(|n| ahead.push(&n.to_string()));
        assert_eq!(std::iter::from_fn(|| ahead.take_line()).count(), MAX_KEPT);
    }
}
