//! The person who answers the questions of one call. After one unanswered question, no further one is asked.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{QuestionAnswer, ServerQuestion, ServerResponder};

/// Asks the questions of one call, until one goes unanswered.
pub(super) struct CallRespondent<'a> {
    answers: &'a dyn ServerResponder,
    gone: AtomicBool,
}

impl<'a> CallRespondent<'a> {
    pub(super) fn with_answers(answers: &'a dyn ServerResponder) -> Self {
        Self { answers, gone: AtomicBool::default() }
    }

    /// Asks the person, unless an earlier question went unanswered.
    pub(super) async fn ask_person(&self, asked: &ServerQuestion<'_>) -> QuestionAnswer {
        if self.is_gone() {
            return QuestionAnswer::Nobody;
        }
        let heard = self.answers.ask_person(asked).await;
        self.gone.fetch_or(heard == QuestionAnswer::Nobody, Ordering::Relaxed);
        heard
    }

    /// Returns whether a question went unanswered.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    pub(super) async fn mute_server(&self, server: &str) {
        self.answers.mute_server(server).await;
    }
}
