//! The person in one call. After one unanswered question, no further question is asked.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Answers, Heard, ServerQuestion};

/// The person or program that answers the questions of one call.
pub(super) struct Respondent<'a> {
    answers: &'a dyn Answers,
    gone: AtomicBool,
}

impl<'a> Respondent<'a> {
    pub(super) fn of(answers: &'a dyn Answers) -> Self {
        Self { answers, gone: AtomicBool::default() }
    }

    /// Asks the person, unless an earlier question went unanswered.
    pub(super) async fn question(&self, asked: &ServerQuestion<'_>) -> Heard {
        if self.is_gone() {
            return Heard::Nobody;
        }
        let heard = self.answers.question(asked).await;
        self.gone.fetch_or(heard == Heard::Nobody, Ordering::Relaxed);
        heard
    }

    /// Returns whether a question went unanswered.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    pub(super) async fn mute(&self, server: &str) {
        self.answers.mute(server).await;
    }
}
