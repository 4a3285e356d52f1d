//! A well-behaved jar beside fifty that burn fuel as fast as they can, and how late an endless
//! loop is cut.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use belljar_kit::{TestHost, TestJar, stock, wat_tool};
use belljar_policy::Limits;
use belljar_sandbox::{CallEnding, Wasm};
use tokio::task::JoinSet;

use crate::measure::{median, micros, millis};
use crate::report::Row;

/// Jars that attack.
const ATTACKERS: usize = 50;

/// The time that a neighbour may wait on top of its turns: timers and the machine's own noise.
const NOISE: Duration = Duration::from_millis(5);

/// How long one attack is watched.
const MOST: Duration = Duration::from_secs(20);

/// Fuel between two yields, as in the sandbox.
const INTERVAL: u64 = 100_000;

/// Fuel of the loop that says how long an interval takes.
const CALIBRATION: u64 = 2_000_000_000;

/// The wall-clock limit of the loops whose end is measured.
const LIMIT: Duration = Duration::from_secs(1);

/// Attackers by what they do between two yields.
const LOOP: &str = "(loop $again (br $again)) unreachable";

/// A megabyte at a time, over and over: each is charged by the byte and does not yield.
const FILL: &str = "(drop (memory.grow (i32.const 16)))
    (loop $again
      (memory.fill (i32.const 0x40000) (i32.const 7) (i32.const 0x100000))
      (br $again)) unreachable";

/// Traps at once, so that each call opens a store.
const TRAP: &str = "unreachable";

pub(crate) async fn rows(calls: usize) -> anyhow::Result<Vec<Row>> {
    let host = TestHost::new();
    host.write("page.txt", "0123456789abcde\n".repeat(256));
    let slice = slice(&host).await;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let neighbour = Arc::new(unmetered(&host, stock("file_read")).await);
    let (alone, _) = read_there(&neighbour, calls, Duration::MAX).await?;
    let mut rows = Vec::new();
    let attacks = [("loops", LOOP), ("fills of 1 MiB", FILL), ("traps", TRAP)];
    for (name, body) in attacks {
        let attack = Attack::start(&host, body).await;
        let (beside, polls) = read_there(&neighbour, calls, MOST).await?;
        let attacked = attack.stop().await;
        let added = percentile(&beside, 99).saturating_sub(percentile(&alone, 99));
        let turns = u32::try_from((ATTACKERS + 1).div_ceil(cores)).unwrap_or(u32::MAX);
        let bound = slice.saturating_mul(turns).saturating_mul(polls) + NOISE;
        let figure = format!(
            "p50 {}, p99 {}, {} attacking calls",
            micros(median(beside.clone())),
            micros(percentile(&beside, 99)),
            attacked
        );
        rows.push(
            Row::new(format!("file_read beside {ATTACKERS} jars of endless {name}"), figure)
                .against("alone, p99", micros(percentile(&alone, 99)))
                .verdict(
                    format!(
                        "+{} at p99; {polls} turns a call allow {}",
                        millis(added),
                        millis(bound)
                    ),
                    "(runnable / cores) x slice x turns + 5 ms",
                ),
        );
    }
    rows.push(late(&host).await);
    Ok(rows)
}

/// How long one interval of a tight loop takes here, nobody else running.
async fn slice(host: &TestHost) -> Duration {
    let wasm = Wasm::new(wat_tool("spin", LOOP));
    let mut builder = host.builder([wasm]);
    builder.limits = Limits { fuel_per_call: CALIBRATION, ..unmetered_limits() };
    let jar = host.build(builder).await;
    let started = Instant::now();
    let _ = jar.call("spin", "{}").await;
    started.elapsed().mul_f64(INTERVAL as f64 / CALIBRATION as f64)
}

fn unmetered_limits() -> Limits {
    Limits {
        fuel: u64::MAX,
        fuel_per_call: u64::MAX,
        read_bytes: u64::MAX,
        output_total_bytes: u64::MAX,
        call_timeout_seconds: 3600,
        ..Limits::default()
    }
}

async fn unmetered(host: &TestHost, wasm: Wasm) -> TestJar {
    let mut builder = host.builder([wasm]);
    builder.limits = unmetered_limits();
    host.build(builder).await
}

/// Jars that call without end until they are stopped.
struct Attack {
    tasks: JoinSet<()>,
    jars: Vec<Arc<TestJar>>,
    over: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
}

impl Attack {
    async fn start(host: &TestHost, body: &str) -> Self {
        let wasm = Wasm::new(wat_tool("attack", body));
        let (over, calls) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (mut tasks, mut jars) = (JoinSet::new(), Vec::new());
        for _ in 0..ATTACKERS {
            let jar = Arc::new(unmetered(host, wasm.clone()).await);
            let (own, over, calls) = (Arc::clone(&jar), Arc::clone(&over), Arc::clone(&calls));
            tasks.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let _ = own.call("attack", "{}").await;
                    calls.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            });
            jars.push(jar);
        }
        Self { tasks, jars, over, calls }
    }

    /// Gives how many calls they made.
    async fn stop(mut self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.jars.iter().for_each(|jar| jar.cancel.cancel());
        while self.tasks.join_next().await.is_some() {}
        self.calls.load(Ordering::Relaxed)
    }
}

/// Reads on one of the runtime's own threads, where the attackers are.
async fn read_there(
    jar: &Arc<TestJar>,
    calls: usize,
    most: Duration,
) -> anyhow::Result<(Vec<Duration>, u32)> {
    let jar = Arc::clone(jar);
    tokio::spawn(async move { reads(&jar, calls, most).await }).await?
}

/// The times of the neighbour's calls, sorted, and the most turns that one took: after each poll
/// but the last it waits for the others.
async fn reads(
    jar: &TestJar,
    calls: usize,
    most: Duration,
) -> anyhow::Result<(Vec<Duration>, u32)> {
    let begun = Instant::now();
    let (mut times, mut polls) = (Vec::with_capacity(calls), Vec::with_capacity(calls));
    while times.len() < calls && (times.is_empty() || begun.elapsed() < most) {
        let started = Instant::now();
        let mut turns = 0u32;
        let mut call = pin!(jar.call("file_read", r#"{"path":"page.txt"}"#));
        let counted = std::future::poll_fn(|cx| {
            turns += 1;
            call.as_mut().poll(cx)
        });
        let result = counted.await;
        result.outcome?;
        times.push(started.elapsed());
        polls.push(turns);
    }
    times.sort_unstable();
    polls.sort_unstable();
    Ok((times, polls.last().copied().unwrap_or(1)))
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// How long past its wall-clock limit an endless loop goes on, beside fifty others.
async fn late(host: &TestHost) -> Row {
    let wasm = Wasm::new(wat_tool("spin", LOOP));
    let mut tasks = JoinSet::new();
    for _ in 0..=ATTACKERS {
        let mut builder = host.builder([wasm.clone()]);
        builder.limits = Limits { call_timeout_seconds: LIMIT.as_secs(), ..unmetered_limits() };
        let jar = host.build(builder).await;
        tasks.spawn(async move {
            let started = Instant::now();
            let result = jar.call("spin", "{}").await;
            (started.elapsed(), result.receipt.ending == CallEnding::TimedOut)
        });
    }
    let (mut worst, mut check_timed_out) = (Duration::ZERO, 0usize);
    while let Some(Ok((took, late))) = tasks.join_next().await {
        worst = worst.max(took.saturating_sub(LIMIT));
        check_timed_out += usize::from(late);
    }
    Row::new(
        format!("{} endless loops at once, each with {} s", ATTACKERS + 1, LIMIT.as_secs()),
        format!("{check_timed_out} cut"),
    )
    .verdict(format!("the last {} late", millis(worst)), "within 50 ms of the limit")
}
