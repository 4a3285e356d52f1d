//! The questions of running turns that wait for a person, and the answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::{Notify, oneshot};

use belljar_agent::Clock;
use belljar_agent::{Approval, Asker, PrivateQuestion, Question, Reach, Said};

/// An unanswered question. Foreign text.
#[derive(Debug, Clone)]
pub struct OpenQuestion {
    /// The number in the turn, as in the event.
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

/// The kind of a question, with its text.
#[derive(Debug, Clone)]
pub enum QuestionKind {
    /// The question whether a call may be made.
    Permission {
        /// The tool.
        tool: String,
        /// The arguments in the model's text.
        arguments: String,
        /// The means that the call would have.
        reach: Reach,
    },
    /// A question of the agent to the person.
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

impl From<&Question<'_>> for QuestionKind {
    fn from(question: &Question<'_>) -> Self {
        Self::Permission {
            tool: question.tool.to_string(),
            arguments: question.arguments.to_owned(),
            reach: question.reach.clone(),
        }
    }
}

impl PersonAnswer {
    /// The word on a call.
    pub fn approval(self) -> Approval {
        match self {
            Self::Permission(word) => word,
            Self::Cancelled => Approval::Cancelled,
            Self::Text(_) | Self::Declined => Approval::Nobody,
        }
    }

    /// The answer to a question in words.
    pub fn said(self) -> Said {
        match self {
            Self::Text(text) => Said::of(text),
            Self::Declined => Said::No,
            Self::Cancelled => Said::Cancelled,
            Self::Permission(_) => Said::Nobody,
        }
    }
}

/// The open questions of one tenant.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    waiting: Mutex<BTreeMap<(String, u64), Waiting>>,
    /// Notified of each new question.
    put: Notify,
}

#[derive(Debug)]
struct Waiting {
    question: OpenQuestion,
    noted: Option<String>,
    answer: oneshot::Sender<PersonAnswer>,
}

/// A question that was removed to be answered.
pub(crate) struct Taken {
    pub(crate) question: OpenQuestion,
    /// INV-366: where the answer is the person's own, the part of the question that may be stored.
    pub(crate) noted: Option<String>,
    /// The receiver of the answer.
    pub(crate) waiting: oneshot::Sender<PersonAnswer>,
}

/// Asks at the questions for one turn.
pub(crate) struct TurnQuestions {
    pub(crate) questions: Arc<Questions>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) session: String,
    pub(crate) message: String,
}

/// Removes a question on drop, when its asker does not wait any more.
struct Open<'a> {
    questions: &'a Questions,
    key: (String, u64),
}

impl Questions {
    /// The open questions, with their sessions.
    pub(crate) fn open(&self, session: Option<&str>) -> Vec<(String, OpenQuestion)> {
        let waiting = self.waiting();
        let of = waiting.iter().filter(|((of, _), _)| session.is_none_or(|one| one == of));
        of.map(|((session, _), waiting)| (session.clone(), waiting.question.clone())).collect()
    }

    /// Waits until a question of this turn is open.
    pub(crate) async fn asked(&self, session: &str, message: &str) {
        loop {
            let mut put = std::pin::pin!(self.put.notified());
            // From here on no notice is missed.
            put.as_mut().enable();
            if self.open(Some(session)).iter().any(|(_, open)| open.message == message) {
                return;
            }
            put.await;
        }
    }

    /// Removes the question, if the answer fits the question's kind.
    pub(crate) fn take(&self, session: &str, id: u64, answer: &PersonAnswer) -> Option<Taken> {
        let key = (session.to_owned(), id);
        let mut waiting = self.waiting();
        let fits = matches!(
            (&waiting.get(&key)?.question.kind, answer),
            (_, PersonAnswer::Cancelled)
                | (QuestionKind::Permission { .. }, PersonAnswer::Permission(_))
                | (QuestionKind::Clarify { .. }, PersonAnswer::Text(_) | PersonAnswer::Declined)
        );
        if !fits {
            return None;
        }
        let Waiting { question, noted, answer } = waiting.remove(&key)?;
        Some(Taken { question, noted, waiting: answer })
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<(String, u64), Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnQuestions {
    async fn put(
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
        self.questions.waiting().insert(key.clone(), Waiting { question, noted, answer });
        self.questions.put.notify_waiters();
        let _open = Open { questions: &self.questions, key };
        answered.await.ok()
    }
}

#[async_trait]
impl Asker for TurnQuestions {
    async fn ask(&self, question: Question<'_>) -> Approval {
        let answer = self.put(question.id, question.agent, (&question).into(), None).await;
        answer.map_or(Approval::Nobody, PersonAnswer::approval)
    }

    async fn clarify(&self, id: u64, agent: &str, question: &str, options: &[String]) -> Said {
        let (question, options) = (question.to_owned(), options.to_vec());
        let kind = QuestionKind::Clarify { question, options };
        self.put(id, agent, kind, None).await.map_or(Said::Nobody, PersonAnswer::said)
    }

    async fn clarify_privately(&self, asked: PrivateQuestion<'_>) -> Said {
        let PrivateQuestion { id, agent, question, noted, options } = asked;
        let (question, options) = (question.to_owned(), options.to_vec());
        let kind = QuestionKind::Clarify { question, options };
        self.put(id, agent, kind, Some(noted)).await.map_or(Said::Nobody, PersonAnswer::said)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.questions.waiting().remove(&self.key);
    }
}
