//! Requests that exceed the model's context, and are refused by the model.

use belljar_agent::{EventKind, RunError, RunStatus};
use belljar_model::ChatMessage;
use belljar_session::HistoryMode;

use super::compaction::{FRAME, ONE, Talk, outline, talk_with};

/// Settings in which nothing is summarised before a model refuses a request.
const NEVER: &str = "compact_at = 0\n[grants.boss]\ntools = [\"file_read\"]\n";

const TOO_LONG: &str = "      - fail: {kind: context, message: the prompt is too long}\n";

const READS: &str = "      - calls: [{name: file_read, arguments: {path: a.txt}}]\n";

/// Runs two turns, and then a third one in which the model gives the answers `answers`.
async fn third_turn(answers: &[&str], summaries: &str) -> Talk {
    let old = |n: u32| format!("      - say: \"answer {n} {}\"\n", "x".repeat(950));
    let turns = format!("{}{}{}", old(1), old(2), answers.concat());
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: boss\n    turns:\n{turns}  - agent: compaction\n    turns:\n{summaries}"
    );
    let mut talk = talk_with(&transcript, NEVER).await;
    belljar_kit::world::write(&talk.world.workspace.path().join("a.txt"), "text of a\n");
    talk.say_many(1..=2).await;
    talk.world.events.lock().unwrap().clear();
    talk
}

/// The number of events for which `is` returns true.
fn count(talk: &Talk, is: impl Fn(&EventKind) -> bool) -> usize {
    talk.world.kinds().iter().filter(|kind| is(kind)).count()
}

#[tokio::test]
async fn a_first_request_that_does_not_fit_is_sent_again_behind_a_summary() {
    let mut talk = third_turn(&[TOO_LONG, "      - say: answer 3\n"], ONE).await;
    let third = talk.say("question 3").await;
    assert_eq!((third.status, &*third.output), (RunStatus::Completed, "answer 3"));
    let sent = talk.world.sent_by("boss", 0);
    assert_eq!(sent[2].messages.len(), 5);
    assert_eq!(outline(&sent[3].messages), [FRAME, "[noted]", "question 3"]);
    assert_eq!(
        (sent[3].tools.clone(), sent[3].system.clone()),
        (sent[2].tools.clone(), sent[2].system.clone())
    );
    assert_eq!(talk.summary().await, Some((4, "they spoke of 1 and 2".into())));
    // The summary is a step of its own. The refused request and its repetition are one step.
    assert_eq!((third.usage.steps, third.total.steps), (1, 2));
    assert_eq!(count(&talk, |kind| matches!(kind, EventKind::StepStarted { .. })), 1);
    assert_eq!(count(&talk, |kind| matches!(kind, EventKind::RunFinished { .. })), 1);
    assert_eq!(count(&talk, |kind| matches!(kind, EventKind::HistoryCompacted { .. })), 1);
    let seqs: Vec<u64> = talk.world.events.lock().unwrap().iter().map(|one| one.seq).collect();
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
    let live = talk.conversation.messages().to_vec();
    assert_eq!(outline(&live), [FRAME, "[noted]", "question 3", "answer 3"]);
    let (.., past) = talk.reopened().await;
    assert_eq!(past.request_messages(HistoryMode::Compacted), live);
    assert_eq!(past.request_messages(HistoryMode::Whole).len(), 6, "the store keeps all of it");
}

#[tokio::test]
async fn a_later_request_that_does_not_fit_is_sent_again_and_no_call_is_made_twice() {
    let answers = [READS, TOO_LONG, "      - say: answer 3\n"];
    let mut talk = third_turn(&answers, ONE).await;
    let third = talk.say("question 3").await;
    assert_eq!((third.status, &*third.output), (RunStatus::Completed, "answer 3"));
    assert_eq!(third.receipts.len(), 1);
    let sent = talk.world.sent_by("boss", 0);
    assert_eq!(outline(&sent[4].messages), [FRAME, "[noted]", "question 3", "", "tool"]);
    assert_eq!(sent[4].messages[2..], sent[3].messages[4..], "the turn itself stays as it was");
    assert_eq!(third.usage.steps, 2);
    let live = talk.conversation.messages().to_vec();
    let (.., past) = talk.reopened().await;
    assert_eq!(past.request_messages(HistoryMode::Compacted), live);
}

#[tokio::test]
async fn each_request_is_sent_again_once_and_then_the_turn_fails_as_too_long() {
    let mut talk = third_turn(&[TOO_LONG, TOO_LONG], ONE).await;
    let third = talk.say("question 3").await;
    assert_eq!(third.status, RunStatus::Failed);
    assert!(
        matches!(third.error, Some(RunError::Model { too_long: true, .. })),
        "{:?}",
        third.error
    );
    assert_eq!(talk.world.sent_by("boss", 0).len(), 4);
    assert_eq!(talk.world.sent_by("compaction", 0).len(), 1);
}

#[tokio::test]
async fn without_a_summary_the_turn_fails_and_a_person_is_told_why() {
    let down = "      - fail: {status: 500, message: down}\n";
    let mut talk = third_turn(&[TOO_LONG], down).await;
    let third = talk.say("question 3").await;
    assert!(
        matches!(third.error, Some(RunError::Model { too_long: true, .. })),
        "{:?}",
        third.error
    );
    let told = |kind: &EventKind| matches!(kind, EventKind::Warning { message } if message.contains("could not be summarised") && message.contains("down"));
    assert_eq!(count(&talk, told), 1);
    assert_eq!(talk.summary().await, None);
    // The history is unchanged, and the next turn begins with it.
    assert!(
        matches!(&talk.conversation.messages()[0], ChatMessage::User { text, .. } if text == "question 1")
    );
}
