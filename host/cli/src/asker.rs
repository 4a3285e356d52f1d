//! Asking the person at the terminal where a grant says `ask`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use belljar_policy::Shown;
use belljar_session::{Asker, Question, Word};
use tokio::sync::Mutex;

use crate::out::{Answer, Out};
use crate::progress::Progress;

/// Characters of arguments that a question shows; the person should see what they allow.
const MAX_ARGUMENTS: usize = 2_000;

/// The person at the terminal, if there is one.
pub(crate) struct Terminal {
    out: Out,
    progress: Progress,
    /// One question at a time.
    turn: Mutex<()>,
}

impl Terminal {
    pub(crate) fn new(out: &Out, progress: &Progress) -> Self {
        Self { out: out.clone(), progress: progress.clone(), turn: Mutex::new(()) }
    }
}

/// Whether anybody waits for the answer: no more when it is dropped.
struct Wanted(Arc<AtomicBool>);

impl Default for Wanted {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[async_trait]
impl Asker for Terminal {
    async fn ask(&self, question: Question<'_>) -> Word {
        let _turn = self.turn.lock().await;
        let text = format!(
            "agent `{}` wants to call `{}` with\n  {}\nallow this call?",
            Shown::new(question.agent),
            question.tool,
            Shown::clipped(question.arguments, MAX_ARGUMENTS)
        );
        let (out, progress) = (self.out.clone(), self.progress.clone());
        // A run that is cancelled drops this future; the thread must not go on reading.
        let wanted = Wanted::default();
        let still = Arc::clone(&wanted.0);
        let ask = move || progress.ask(|| out.ask_while(&text, &still));
        let answer = tokio::task::spawn_blocking(ask).await;
        match answer {
            Ok(Answer::Yes) => Word::Yes,
            Ok(Answer::No) => Word::No,
            Ok(Answer::Nobody | Answer::Unwanted) | Err(_) => Word::Nobody,
        }
    }
}
