//! Asks the person at the terminal, if a grant says `ask`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use belljar_agent::{
    Approval, ApprovalQuestion, Asker, ClarificationAnswer, ClarificationQuestion,
};
use belljar_policy::ShownText;
use tokio::sync::Mutex;

use crate::term::out::TerminalOutput;
use crate::term::progress::RunProgress;

/// The most characters of a call's arguments in a question, enough to judge the call.
const MAX_ARGUMENTS: usize = 2_000;

/// The number of times that a question is asked, if the answer is neither yes nor no.
const MAX_ASKED: usize = 3;

/// Asks the person at the terminal; without a terminal, nobody answers.
pub(crate) struct TerminalAsker {
    out: TerminalOutput,
    progress: RunProgress,
    /// Locked during a question, so that there is one question at a time.
    turn: Mutex<()>,
}

impl TerminalAsker {
    /// Reads one line of the person; `None` = there are no more lines.
    async fn read_line(&self, text: String) -> Option<String> {
        let (out, progress) = (self.out.clone(), self.progress.clone());
        // Dropping this future, for example in a cancelled run, must stop the thread that reads.
        let wanted = AnswerWanted::default();
        let still = Arc::clone(&wanted.0);
        let asking = move || progress.ask_exclusively(|| out.ask_line(&text, &still));
        #[expect(
            clippy::disallowed_methods,
            reason = "it waits for the person, one question at a time, and ends with the process"
        )]
        let answer = tokio::task::spawn_blocking(asking).await;
        answer.ok().flatten()
    }

    pub(crate) fn new(out: &TerminalOutput, progress: &RunProgress) -> Self {
        Self { out: out.clone(), progress: progress.clone(), turn: Mutex::new(()) }
    }
}

/// True as long as somebody waits for the answer; set to false on drop.
struct AnswerWanted(Arc<AtomicBool>);

impl Default for AnswerWanted {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Drop for AnswerWanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[async_trait]
impl Asker for TerminalAsker {
    async fn ask_approval(&self, question: ApprovalQuestion<'_>) -> Approval {
        let _turn = self.turn.lock().await;
        let mut text = format!(
            "agent `{}` wants to call `{}` with\n  {}\nallow this call? [y]es, [a]lways in this run, [N]o:",
            ShownText::new(question.agent),
            question.tool,
            ShownText::clip_line(question.arguments, MAX_ARGUMENTS)
        );
        // An unclear answer is asked about again; `MAX_ASKED` unclear answers mean no.
        for _ in 0..MAX_ASKED {
            let Some(line) = self.read_line(text).await else { return Approval::Nobody };
            match line.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Approval::Yes,
                "a" | "always" => return Approval::ForRun,
                "" | "n" | "no" => return Approval::No,
                other => {
                    let other = ShownText::clip_line(other, 20);
                    text = format!("`{other}` is no answer; [y]es, [a]lways in this run, [N]o:");
                }
            }
        }
        Approval::No
    }

    async fn ask_clarification(&self, asked: ClarificationQuestion<'_>) -> ClarificationAnswer {
        let ClarificationQuestion { agent, question, options, .. } = asked;
        let _turn = self.turn.lock().await;
        let mut text = format!("agent `{}` asks: ", ShownText::new(agent));
        text.push_str(&ShownText::clip_line(question, MAX_ARGUMENTS).to_string());
        for (number, option) in options.iter().enumerate() {
            text.push_str(&format!("\n  {}. {}", number + 1, ShownText::new(option)));
        }
        text.push_str("\nyour answer:");
        let Some(line) = self.read_line(text).await else { return ClarificationAnswer::Nobody };
        let line = line.trim();
        let chosen = line.parse::<usize>().ok().and_then(|n| options.get(n.checked_sub(1)?));
        ClarificationAnswer::from_words(Some(chosen.map_or(line, String::as_str).to_owned()))
    }
}
