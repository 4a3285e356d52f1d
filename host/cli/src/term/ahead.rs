//! Lines that a person typed before a question. A question does not accept them as its answer; the next
//! reader of lines gets them (INV-514).

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most lines that are kept: more than anybody types while an answer runs.
const MAX_KEPT: usize = 100;

/// The lines, the oldest first. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct TypedAhead(Arc<Mutex<VecDeque<String>>>);

impl TypedAhead {
    /// The next line.
    pub(crate) fn take_line(&self) -> Option<String> {
        self.lock_lines().pop_front()
    }

    /// Keeps the whole lines that wait at the terminal.
    pub(super) fn keep_waiting_lines(&self) {
        while is_line_there() {
            let mut line = String::new();
            match io::stdin().read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => self.push(line.trim_end_matches(['\n', '\r'])),
            }
        }
    }

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

/// Whether a line can be read at once. A terminal reports whole lines, unless an editor is active: then typed
/// text is the editor's.
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
