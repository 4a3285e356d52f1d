//! Handing work on: many children of one call, what one child costs beyond its own work, and
//! how soon a tree of agents is cancelled.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use belljar_agent::{EventKind, EventSink, Outcome, RunStatus, run};
use belljar_kit::world::{World, agent};
use belljar_model::{ModelRegistry, ScriptedModel, Transcript};
use tokio_util::sync::CancellationToken;

use crate::measure::{median, micros, millis};
use crate::report::Row;
use crate::runs;

/// Children that run at the same time.
const CONCURRENT: usize = 8;

const SETTINGS: &str = "[subagents]\nmax_depth = 2\n[grants.boss]\n\
tools = [\"spawn_agent\", \"delegate_parallel\", \"file_read\"]\n\
limits = { steps = 1_000_000, tokens = 1_000_000_000, fuel = 100_000_000_000_000, output_total_bytes = 10_000_000_000, read_bytes = 10_000_000_000 }\n\
subagents = { max_concurrent = 8 }\n\
[grants.middle]\ntools = [\"spawn_agent\", \"file_read\"]\n";

const READER: &str = "  - agent: reader\n    spawn: any\n    turns:\n\
\x20     - calls: [{name: file_read, arguments: {path: page.txt}}]\n\
\x20     - calls: [{name: file_read, arguments: {path: page.txt}}]\n\
\x20     - say: Done.\n";

const DEEP: &str = "transcript: 1\nagents:\n\
\x20 - agent: boss\n    turns: [{calls: [{name: spawn_agent, arguments: {agent: middle, task: go}}]}]\n\
\x20 - agent: middle\n    turns: [{calls: [{name: spawn_agent, arguments: {agent: reader, task: go}}]}]\n\
\x20 - agent: reader\n    turns: [{say: here, hang: true}]\n";

fn world(root: &Path) -> anyhow::Result<World> {
    let reads = "tools: [file_read]\n";
    let agents: &[(&str, &str)] = &[
        ("boss.md", &agent("boss", "")),
        ("middle.md", &agent("middle", "")),
        ("reader.md", &agent("reader", reads)),
    ];
    runs::world(root, SETTINGS, agents)
}

async fn go(world: &World, agent: &str, transcript: &Arc<Transcript>) -> anyhow::Result<Outcome> {
    let outcome =
        play(world, agent, transcript, EventSink::none(), CancellationToken::new()).await?;
    anyhow::ensure!(outcome.status == RunStatus::Completed, "{:?}", outcome.error);
    Ok(outcome)
}

async fn play(
    world: &World,
    agent: &str,
    transcript: &Arc<Transcript>,
    events: EventSink,
    cancel: CancellationToken,
) -> anyhow::Result<Outcome> {
    let mut host = world.host.clone();
    host.models =
        Arc::new(ModelRegistry::from_single(Arc::new(ScriptedModel::new(Arc::clone(transcript)))));
    Ok(run(&host, world.spec(agent, "Go."), events, cancel).await)
}

/// The rows; `children` of the one call, `times` for what is repeated.
pub(crate) async fn rows(root: &Path, children: usize, times: usize) -> anyhow::Result<Vec<Row>> {
    let world = world(root)?;
    Ok(vec![
        fan_out(&world, children).await?,
        overhead(&world, times).await?,
        cancelled(&world, times.min(50)).await?,
    ])
}

async fn fan_out(world: &World, children: usize) -> anyhow::Result<Row> {
    let tasks = vec!["{agent: reader, task: read}"; children].join(", ");
    let transcript = parse(&format!(
        "transcript: 1\nagents:\n  - agent: boss\n    turns:\n      - calls: [{{name: \
         delegate_parallel, arguments: {{tasks: [{tasks}]}}}}]\n      - say: ok\n{READER}"
    ))?;
    let started = Instant::now();
    let outcome = go(world, "boss", &transcript).await?;
    let took = started.elapsed();
    anyhow::ensure!(outcome.children.len() == children, "{} children", outcome.children.len());
    let each = took / u32::try_from(children.max(1))?;
    Ok(Row::new(
        format!("one parent, {children} children (3 turns, 2 tool calls), {CONCURRENT} at a time"),
        millis(took),
    )
    .verdict(format!("{} each", micros(each)), "1,000 in under 2 s"))
}

async fn overhead(world: &World, times: usize) -> anyhow::Result<Row> {
    let alone = parse(&format!("transcript: 1\nagents:\n{READER}"))?;
    let handed = parse(&format!(
        "transcript: 1\nagents:\n  - agent: boss\n    turns:\n      - calls: [{{name: spawn_agent, \
         arguments: {{agent: reader, task: read}}}}]\n      - say: ok\n{READER}"
    ))?;
    // The parent's own two turns, with a call that is answered at once.
    let parent = parse(
        "transcript: 1\nagents:\n  - agent: boss\n    turns:\n      - calls: [{name: nothing}]\n\
         \x20     - say: ok\n",
    )?;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let started = Instant::now();
        go(world, "boss", &handed).await?;
        ours.push(started.elapsed());
        let started = Instant::now();
        go(world, "boss", &parent).await?;
        go(world, "reader", &alone).await?;
        floor.push(started.elapsed());
    }
    let (ours, floor) = (median(ours), median(floor));
    Ok(Row::new("a parent's two turns and one child", micros(ours))
        .against("both, each by itself", micros(floor))
        .verdict(format!("+{}", micros(ours.saturating_sub(floor))), "under 200 µs more"))
}

/// Three agents, one above the other, the last of which waits for its model.
async fn cancelled(world: &World, times: usize) -> anyhow::Result<Row> {
    let transcript = parse(DEEP)?;
    let mut worst = Duration::ZERO;
    for _ in 0..times.max(1) {
        let (cancel, asked) = (CancellationToken::new(), Arc::new(Mutex::new(None)));
        let (token, at) = (cancel.clone(), Arc::clone(&asked));
        let sink = EventSink::with_listener(move |event| {
            if matches!(&event.kind, EventKind::TextDelta { .. }) {
                at.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
                token.cancel();
            }
        });
        let outcome = play(world, "boss", &transcript, sink, cancel).await?;
        anyhow::ensure!(outcome.status == RunStatus::Cancelled, "{:?}", outcome.status);
        let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        worst = worst.max(asked.context("nothing was said")?.elapsed());
    }
    Ok(Row::new("a tree three agents deep ends after a cancellation (worst)", millis(worst))
        .verdict(millis(worst), "within 100 ms"))
}

fn parse(text: &str) -> anyhow::Result<Arc<Transcript>> {
    Ok(Arc::new(Transcript::parse(text, Path::new("bench.yaml"))?))
}
