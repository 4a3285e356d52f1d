//! Tests of owners, deadlines and the ends of jobs.

use std::sync::mpsc;
use std::time::Duration;

use futures::future::join_all;

use super::*;

const QUICK: WorkKind = WorkKind { name: "a quick job", time: Duration::from_secs(60) };
const SHORT: WorkKind = WorkKind { name: "a short job", time: Duration::from_millis(50) };

/// Runs until the signal is raised.
fn endless(stop: &StopSignal) -> bool {
    while !stop.is_raised() {
        std::thread::yield_now();
    }
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_who_fills_its_threads_leaves_those_of_others_free() {
    let (send, held) = mpsc::channel();
    let jobs: Vec<_> = (0..MAX_RUNNING_PER_OWNER)
        .map(|_| {
            let send = send.clone();
            tokio::spawn(run_job(&QUICK, "greedy", move |stop| {
                send.send(()).unwrap();
                endless(stop)
            }))
        })
        .collect();
    for _ in 0..MAX_RUNNING_PER_OWNER {
        held.recv().unwrap();
    }
    let late = run_job(&SHORT, "greedy", |_| ()).await;
    assert_eq!(late, Err(WorkError::TimedOut { kind: "a short job", limit: SHORT.time }));
    assert_eq!(run_job(&QUICK, "neighbour", |_| 7).await, Ok(7));
    jobs.iter().for_each(tokio::task::JoinHandle::abort);
    // The threads are free again once the jobs have seen their signals.
    assert_eq!(run_job(&QUICK, "greedy", |_| 8).await, Ok(8));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_ends_when_its_caller_has_gone_or_its_time_is_up() {
    let (send, ended) = mpsc::channel();
    let (begun, first) = mpsc::channel();
    let gone = send.clone();
    let caller = tokio::spawn(run_job(&QUICK, "gone", move |stop| {
        begun.send(()).unwrap();
        gone.send(endless(stop)).unwrap();
    }));
    first.recv().unwrap();
    caller.abort();
    assert!(ended.recv().unwrap());
    // After the time limit, the job may return before or after the caller stops waiting.
    let _ = run_job(&SHORT, "slow", move |stop| send.send(endless(stop)).unwrap()).await;
    assert!(ended.recv().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_and_a_panic_ends_one_job() {
    let more = 5;
    let all = MAX_RUNNING_PER_OWNER + MAX_WAITING_PER_OWNER + more;
    let jobs = (0..all).map(|_| run_job(&SHORT, "flood", endless));
    let ended = join_all(jobs).await;
    let busy = ended.iter().filter(|ended| matches!(ended, Err(WorkError::Busy { .. }))).count();
    assert_eq!(busy, more);
    let broken = run_job(&QUICK, "broken", |_| -> u8 { panic!("a fault") }).await;
    assert_eq!(broken, Err(WorkError::Panicked { kind: "a quick job" }));
    assert_eq!(run_job(&QUICK, "broken", |_| 1).await, Ok(1));
}

#[test]
fn a_part_of_a_job_has_the_earlier_of_two_deadlines() {
    let whole = StopSignal::with_timeout(Duration::from_secs(3600));
    let part = whole.with_part_timeout(Duration::ZERO);
    assert_eq!((whole.check_raised(), part.check_raised()), (Ok(()), Err(WorkStopped)));
    whole.raise();
    assert!(whole.is_raised() && whole.with_part_timeout(Duration::from_secs(1)).is_raised());
    assert!(!StopSignal::never_raised().is_raised());
}
