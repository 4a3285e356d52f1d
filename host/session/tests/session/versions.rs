//! Tests of settings that change while turns run and wait.

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use belljar_agent::{Approval, Host, RunStatus};
use belljar_definition::Settings;
use belljar_session::{
    LookDepth, PersonAnswer, RenewalOutcome, RunningTurn, ServiceError, ServiceLimits,
    SettingsVersion, VersionMaker,
};

use crate::service::{LIMITS, Questions, SETTINGS, again, ask, questions_with, until};

/// Returns the version that a test has put in, once.
#[derive(Default)]
struct Next(Mutex<Option<RenewalOutcome>>);

#[async_trait]
impl VersionMaker for Next {
    async fn renew_version(&self, _look: LookDepth) -> RenewalOutcome {
        self.0.lock().unwrap().take().unwrap_or(RenewalOutcome::Same)
    }
}

/// Makes a service whose settings a test can replace, with [`Next::change`].
async fn changing(limits: ServiceLimits) -> (Questions, Arc<Next>) {
    let questions = questions_with(limits).await;
    let next = Arc::new(Next::default());
    let Questions { world, store, service } = questions;
    let service = service.renewed_by(Arc::clone(&next) as Arc<dyn VersionMaker>);
    (Questions { world, store, service }, next)
}

impl Next {
    /// Puts in the settings that the next look for changes finds.
    fn change(&self, host: &Host, settings: &str, limits: ServiceLimits) {
        let path = Path::new("belljar.toml");
        let settings = Settings::parse(Some((path, settings)), None, None).unwrap();
        let mut host = host.clone();
        host.settings = Arc::new(settings);
        self.say(RenewalOutcome::New(Box::new(SettingsVersion { host, limits })));
    }

    fn say(&self, renewed: RenewalOutcome) {
        *self.0.lock().unwrap() = Some(renewed);
    }
}

/// Settings in which no agent may read files any more.
const NOTHING: &str = "[grants.asker]\ntools = []\n[grants.scout]\ntools = []\n\
    [grants.stuck]\ntools = [\"spawn_agent\"]\n";

/// Begins a turn that waits for an answer; returns the turn and the number of its question.
async fn asking(service: &belljar_session::Service) -> (RunningTurn, u64) {
    let turn = service.begin_turn(ask("asker")).await.unwrap();
    until(&mut turn.watch_events(), "permission_asked").await;
    let open = service.open_questions(Some(&turn.session));
    let [(_, question)] = &open[..] else { panic!("{open:?}") };
    (turn, question.id)
}

#[tokio::test]
async fn a_turn_has_one_version_to_its_end_and_the_next_turn_the_new_one() {
    let (Questions { world, service, .. }, next) = changing(LIMITS).await;
    let (turn, question) = asking(&service).await;
    next.change(&world.host, NOTHING, LIMITS);
    service.look_for_changes(LookDepth::IfChanged).await;
    service
        .answer_question(&turn.session, question, PersonAnswer::Permission(Approval::Yes), "key:1")
        .unwrap();
    let end = turn.wait_for_end().await.unwrap();
    assert_eq!((end.status, end.output.as_str()), (RunStatus::Completed, "I was let"));
    // A turn in the old session, and a turn in a new one.
    for request in [again(&turn.session), ask("asker")] {
        let refused = service.begin_turn(request).await.unwrap_err();
        assert!(matches!(&refused, ServiceError::Blocked { .. }), "{refused}");
    }
}

#[tokio::test]
async fn a_turn_that_waits_for_its_place_begins_with_what_is_in_force_by_then() {
    let limits = ServiceLimits { concurrent_turns: 1, ..LIMITS };
    let (Questions { world, service, .. }, next) = changing(limits).await;
    let first = service.begin_turn(ask("stuck")).await.unwrap();
    until(&mut first.watch_events(), "subagent_batch_start").await;
    let waiting = tokio::spawn({
        let service = service.clone();
        async move { service.begin_turn(ask("asker")).await.map(drop) }
    });
    while service.running_turns().len() < 2 {
        tokio::task::yield_now().await;
    }
    next.change(&world.host, NOTHING, limits);
    assert!(service.cancel_turn(&first.session, "key:1").is_ending());
    let refused = waiting.await.unwrap().unwrap_err();
    assert!(matches!(&refused, ServiceError::Blocked { .. }), "{refused}");
    // The refused turns left nothing in the store.
    assert_eq!(service.store().latest_sessions(10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_version_that_is_not_valid_leaves_the_one_before_in_force_until_one_is() {
    let (Questions { world, service, .. }, next) = changing(LIMITS).await;
    next.say(RenewalOutcome::Invalid("belljar.toml:1:1: no".to_owned()));
    service.look_for_changes(LookDepth::IfChanged).await;
    assert!(service.is_on_older_settings());
    let (turn, question) = asking(&service).await;
    assert!(service.is_on_older_settings(), "nothing has changed since");
    service
        .answer_question(&turn.session, question, PersonAnswer::Permission(Approval::Yes), "key:1")
        .unwrap();
    assert_eq!(turn.wait_for_end().await.unwrap().status, RunStatus::Completed);
    next.change(&world.host, SETTINGS, LIMITS);
    service.look_for_changes(LookDepth::IfChanged).await;
    assert!(!service.is_on_older_settings());
}

#[tokio::test]
async fn agents_of_the_api_are_in_every_version() {
    let (Questions { world, store, service }, next) = changing(LIMITS).await;
    let text = belljar_kit::world::agent("told", "tools: []\n");
    store.save_agent("told", &text, 7, None).await.unwrap();
    service.reload_agents().await.unwrap();
    let library = || service.current_host().library.catalog().find_by_name("told").is_ok();
    assert!(library());
    next.change(&world.host, SETTINGS, LIMITS);
    service.look_for_changes(LookDepth::IfChanged).await;
    assert!(library());
}

#[tokio::test]
async fn other_limits_hold_at_once_and_what_was_used_of_a_day_stays_used() {
    let (Questions { world, service, .. }, next) = changing(LIMITS).await;
    let (turn, question) = asking(&service).await;
    // A limit below what that turn has used already.
    let less = ServiceLimits { tokens_per_day: Some(1), ..LIMITS };
    next.change(&world.host, SETTINGS, less);
    let refused = service.begin_turn(ask("asker")).await.unwrap_err();
    assert!(matches!(&refused, ServiceError::DayUsed { left: 0, .. }), "{refused}");
    // The turn that began earlier keeps its rights and limits.
    service
        .answer_question(&turn.session, question, PersonAnswer::Permission(Approval::Yes), "key:1")
        .unwrap();
    assert_eq!(turn.wait_for_end().await.unwrap().status, RunStatus::Completed);
    // Its usage since the change counts in the new limit too.
    let used = service.store().usage_by_day("2000-01-01").await.unwrap();
    let used: i64 = used.iter().map(|row| row.input_tokens + row.output_tokens).sum();
    let most = u64::try_from(used).unwrap();
    next.change(&world.host, SETTINGS, ServiceLimits { tokens_per_day: Some(most), ..LIMITS });
    let refused = service.begin_turn(ask("asker")).await.unwrap_err();
    assert!(matches!(&refused, ServiceError::DayUsed { left: 0, .. }), "{refused}");
    next.change(&world.host, SETTINGS, LIMITS);
    service.begin_turn(ask("asker")).await.unwrap();
}

#[tokio::test]
async fn fewer_places_hold_as_those_that_are_taken_come_back() {
    let (Questions { world, service, .. }, next) = changing(LIMITS).await;
    let mut turns = Vec::new();
    for _ in 0..2 {
        turns.push(service.begin_turn(ask("stuck")).await.unwrap());
    }
    let fewer = ServiceLimits { concurrent_turns: 1, queued_turns: 0, ..LIMITS };
    next.change(&world.host, SETTINGS, fewer);
    service.look_for_changes(LookDepth::IfChanged).await;
    let full = |error: ServiceError| matches!(error, ServiceError::TenantFull { .. });
    assert!(service.begin_turn(ask("stuck")).await.is_err_and(full), "two run");
    let second = turns.pop().unwrap();
    let first = turns.pop().unwrap();
    end(&service, second).await;
    assert!(service.begin_turn(ask("stuck")).await.is_err_and(full), "one runs, and one may");
    end(&service, first).await;
    let last = service.begin_turn(ask("stuck")).await.unwrap();
    assert!(service.begin_turn(ask("stuck")).await.is_err_and(full));
    next.change(&world.host, SETTINGS, LIMITS);
    end(&service, service.begin_turn(ask("stuck")).await.unwrap()).await;
    end(&service, last).await;
}

async fn end(service: &belljar_session::Service, turn: RunningTurn) {
    assert!(service.cancel_turn(&turn.session, "key:1").is_ending());
    assert_eq!(turn.wait_for_end().await.unwrap().status, RunStatus::Cancelled);
}
