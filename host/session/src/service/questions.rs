//! The questions of running turns that wait for a person, and the answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::{Notify, oneshot};

use belljar_agent::Clock;
use belljar_agent::{
    Approval, ApprovalQuestion, Asker, CallReach, ClarificationAnswer, ClarificationQuestion,
};

/// An unanswered question. Its text is a stranger's: a model's or a tool's.
#[derive(Debug, Clone)]
pub struct OpenQuestion {
    /// The number of the question in its turn, as in the event.
    pub id: u64,
    /// The id of the agent's message in the waiting turn.
    pub message: String,
    /// The asking agent's name; for a subagent, after the parent's name.
    pub agent: String,
    /// The question.
    pub kind: QuestionKind,
    /// The time of the question, in milliseconds since 1970.
    pub asked: i64,
}

/// What a question is about, with its text.
#[derive(Debug, Clone)]
pub enum QuestionKind {
    /// May this call be made?
    Permission {
        /// The tool.
        tool: String,
        /// The arguments of the call, as the model wrote them.
        arguments: String,
        /// What the call could reach with the agent's rights, for example directories and hosts.
        reach: CallReach,
    },
    /// The agent asks the person for information.
    Clarify {
        /// The question.
        question: String,
        /// Answers to choose from.
        options: Vec<String>,
    },
}

/// The person's answer.
#[derive(Debug, Clone)]
pub enum PersonAnswer {
    /// The answer to [`QuestionKind::Permission`].
    Permission(Approval),
    /// The answer to [`QuestionKind::Clarify`]; `None` = blank.
    Text(Option<String>),
    /// The person declines to answer [`QuestionKind::Clarify`].
    Declined,
    /// The question of either kind was closed without an answer, or could not be shown.
    Cancelled,
}

impl From<&ApprovalQuestion<'_>> for QuestionKind {
    fn from(question: &ApprovalQuestion<'_>) -> Self {
        Self::Permission {
            tool: question.tool.to_string(),
            arguments: question.arguments.to_owned(),
            reach: question.reach.clone(),
        }
    }
}

impl From<&ClarificationQuestion<'_>> for QuestionKind {
    fn from(asked: &ClarificationQuestion<'_>) -> Self {
        Self::Clarify { question: asked.question.to_owned(), options: asked.options.to_vec() }
    }
}

impl PersonAnswer {
    /// Returns the person's decision about a call. An answer of the wrong kind counts as nobody's.
    pub fn into_approval(self) -> Approval {
        match self {
            Self::Permission(word) => word,
            Self::Cancelled => Approval::Cancelled,
            Self::Text(_) | Self::Declined => Approval::Nobody,
        }
    }

    /// Returns the person's answer to an agent's question. An answer of the wrong kind counts as nobody's.
    pub fn into_spoken_answer(self) -> ClarificationAnswer {
        match self {
            Self::Text(text) => ClarificationAnswer::from_words(text),
            Self::Declined => ClarificationAnswer::No,
            Self::Cancelled => ClarificationAnswer::Cancelled,
            Self::Permission(_) => ClarificationAnswer::Nobody,
        }
    }
}

/// The open questions of one tenant's turns.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions {
    waiting: Mutex<BTreeMap<(String, u64), WaitingQuestion>>,
    /// Notified of each new question.
    put: Notify,
}

/// An open question, with the sender of its answer.
#[derive(Debug)]
struct WaitingQuestion {
    question: OpenQuestion,
    noted: Option<String>,
    answer: oneshot::Sender<PersonAnswer>,
}

/// A question that was removed from the open ones, to be answered.
pub(crate) struct RemovedQuestion {
    pub(crate) question: OpenQuestion,
    /// INV-366: for an answer in the person's own words, the part of the question that may be stored.
    pub(crate) noted: Option<String>,
    /// The sender of the answer to the waiting turn.
    pub(crate) waiting: oneshot::Sender<PersonAnswer>,
}

/// Asks the persons who watch one turn.
pub(crate) struct TurnQuestions {
    pub(crate) questions: Arc<OpenQuestions>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) session: String,
    pub(crate) message: String,
}

/// Removes a question on drop, when the asking turn no longer waits.
struct QuestionGuard<'a> {
    questions: &'a OpenQuestions,
    key: (String, u64),
}

impl OpenQuestions {
    /// The open questions of all sessions, or of `session`, each with its session.
    pub(crate) fn list_open(&self, session: Option<&str>) -> Vec<(String, OpenQuestion)> {
        let waiting = self.lock_waiting();
        let of = waiting.iter().filter(|((of, _), _)| session.is_none_or(|one| one == of));
        of.map(|((session, _), waiting)| (session.clone(), waiting.question.clone())).collect()
    }

    /// Waits until a question of this turn is open.
    pub(crate) async fn wait_for_question(&self, session: &str, message: &str) {
        loop {
            let mut put = std::pin::pin!(self.put.notified());
            // From here on, every notice of a new question wakes this wait.
            put.as_mut().enable();
            if self.list_open(Some(session)).iter().any(|(_, open)| open.message == message) {
                return;
            }
            put.await;
        }
    }

    /// Removes and returns the question, if the answer is of the question's kind.
    pub(crate) fn remove_answered(
        &self,
        session: &str,
        id: u64,
        answer: &PersonAnswer,
    ) -> Option<RemovedQuestion> {
        let key = (session.to_owned(), id);
        let mut waiting = self.lock_waiting();
        let fits = matches!(
            (&waiting.get(&key)?.question.kind, answer),
            (_, PersonAnswer::Cancelled)
                | (QuestionKind::Permission { .. }, PersonAnswer::Permission(_))
                | (QuestionKind::Clarify { .. }, PersonAnswer::Text(_) | PersonAnswer::Declined)
        );
        if !fits {
            return None;
        }
        let WaitingQuestion { question, noted, answer } = waiting.remove(&key)?;
        Some(RemovedQuestion { question, noted, waiting: answer })
    }

    fn lock_waiting(&self) -> MutexGuard<'_, BTreeMap<(String, u64), WaitingQuestion>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnQuestions {
    /// Adds a question to the open ones, and waits for the answer; `None` = the question was removed without
    /// one.
    async fn ask_person(
        &self,
        id: u64,
        agent: &str,
        kind: QuestionKind,
        noted: Option<&str>,
    ) -> Option<PersonAnswer> {
        let (answer, answered) = oneshot::channel();
        let question = OpenQuestion {
            id,
            message: self.message.clone(),
            agent: agent.to_owned(),
            kind,
            asked: self.clock.now().as_millisecond(),
        };
        let key = (self.session.clone(), id);
        let noted = noted.map(str::to_owned);
        self.questions
            .lock_waiting()
            .insert(key.clone(), WaitingQuestion { question, noted, answer });
        self.questions.put.notify_waiters();
        let _open = QuestionGuard { questions: &self.questions, key };
        answered.await.ok()
    }
}

#[async_trait]
impl Asker for TurnQuestions {
    async fn ask_approval(&self, question: ApprovalQuestion<'_>) -> Approval {
        let answer = self.ask_person(question.id, question.agent, (&question).into(), None).await;
        answer.map_or(Approval::Nobody, PersonAnswer::into_approval)
    }

    async fn ask_clarification(&self, asked: ClarificationQuestion<'_>) -> ClarificationAnswer {
        let answer = self.ask_person(asked.id, asked.agent, (&asked).into(), asked.noted).await;
        answer.map_or(ClarificationAnswer::Nobody, PersonAnswer::into_spoken_answer)
    }
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.questions.lock_waiting().remove(&self.key);
    }
}
