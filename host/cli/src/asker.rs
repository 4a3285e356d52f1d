//! Asking the person at the terminal where a grant says `ask`.

use async_trait::async_trait;
use belljar_policy::Shown;
use belljar_session::{Asker, Question, Word};
use tokio::sync::Mutex;

use crate::out::Out;
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
        let answer = tokio::task::spawn_blocking(move || progress.pause(|| out.ask(&text))).await;
        match answer {
            Ok(Some(true)) => Word::Yes,
            Ok(Some(false)) => Word::No,
            Ok(None) | Err(_) => Word::Nobody,
        }
    }
}
