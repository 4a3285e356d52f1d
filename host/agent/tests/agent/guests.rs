//! Tests of the loop with guests that spin, trap and hand over files.

use std::sync::Arc;
use std::time::Duration;

use belljar_agent::{EventKind, EventSink, RunError, RunStatus, run};
use belljar_catalogue::StockTool;
use belljar_kit::world::{BARE, Plan, World, agent, results, stock};
use belljar_kit::{WatTool, wat_tool};
use belljar_policy::{BudgetLevel, Meter};
use belljar_sandbox::{CallEnding, Wasm};
use tokio_util::sync::CancellationToken;

/// A tool that never returns.
const SPIN: &str = "(loop $again (br $again)) unreachable";

/// A tool that answers `ok` after this many turns of a loop.
fn ok_after(turns: u32) -> String {
    format!(
        "(local $n i32)
         (local.set $n (i32.const {turns}))
         (loop $again
           (local.set $n (i32.sub (local.get $n) (i32.const 1)))
           (br_if $again (i32.gt_s (local.get $n) (i32.const 0))))
         (i32.store (i32.const 0x300) (i32.const 0x6b6f))
         (call $text (i32.const 0x300) (i32.const 2))"
    )
}

fn tool(name: &'static str, invoke: &str) -> StockTool {
    StockTool::new(name, Wasm::new(wat_tool(name, invoke)), BARE)
}

/// A world with this transcript and these limits.
fn world(transcript: &str, limits: &str) -> World {
    let settings = format!(
        "[grants.it]\ntools = [\"spin\", \"crash\", \"slow\", \"quick\", \"attach_file\"]\nlimits = {{ {limits} }}\n"
    );
    World::new(Plan {
        transcript,
        settings: &settings,
        agents: &[("it.md", &agent("it", ""))],
        files: &[("a.txt", "text of a\n")],
        tools: vec![
            tool("spin", SPIN),
            tool("crash", "unreachable"),
            tool("slow", &ok_after(20_000_000)),
            tool("quick", &ok_after(1)),
            stock("attach_file"),
        ],
        ..Plan::default()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_keep_the_order_asked_whichever_call_ends_first() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: it
    turns:
      - calls: [{name: slow}, {name: quick}, {name: nope}, {name: quick}]
      - expect:
          results:
            - {name: slow, contains: ok}
            - {name: quick, contains: ok}
            - {name: nope, is_error: true}
            - {name: quick, contains: ok}
        say: done
"#,
        "",
    );
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let order: Vec<&str> = outcome.receipts.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(order, ["slow", "quick", "nope", "quick"]);
    let finished: Vec<String> = world
        .kinds()
        .into_iter()
        .filter_map(|kind| match kind {
            EventKind::ToolCallFinished { tool, .. } => Some(tool),
            _ => None,
        })
        .collect();
    assert_eq!(finished.last().map(String::as_str), Some("slow"), "read-only calls overlap");
}

/// A tool that reports progress `times` times, each time with the arguments as the message.
fn reporting(times: u32) -> StockTool {
    let mut tool = WatTool::new(
        "report",
        &format!(
            "(local $n i64)
             (loop $again
               (local.set $n (i64.add (local.get $n) (i64.const 1)))
               (call $report (local.get $n) (i32.const 1) (i64.const {times}) (local.get $args) (local.get $args_len))
               (br_if $again (i64.lt_u (local.get $n) (i64.const {times}))))
             (call $text (local.get $args) (local.get $args_len))"
        ),
    );
    tool.imports = r#"(import "belljar:tool/progress@0.1.0" "report" (func $report (param i64 i32 i64 i32 i32)))"#.to_owned();
    tool.world = "import belljar:tool/progress@0.1.0;".to_owned();
    StockTool::new("report", Wasm::new(tool.build()), BARE)
}

/// A world with a tool that reports progress `times` times.
fn reporting_world(times: u32) -> World {
    World::new(Plan {
        transcript: "transcript: 1\nagents: [{agent: it, turns: [{calls: [{id: c1, name: report, arguments: {a: 1}}]}, {say: done}]}]",
        settings: "[grants.it]\ntools = [\"report\"]\n",
        agents: &[("it.md", &agent("it", ""))],
        tools: vec![reporting(times)],
        ..Plan::default()
    })
}

#[tokio::test]
async fn a_tools_own_reports_stand_between_its_start_and_its_end() {
    let world = reporting_world(2);
    assert_eq!(world.go("it").await.status, RunStatus::Completed);
    let kinds = world.kinds();
    let start =
        kinds.iter().position(|kind| matches!(kind, EventKind::ToolCallStarted { .. })).unwrap();
    let report = |done| EventKind::ToolProgress {
        call_id: "c1".to_owned(),
        tool: "report".to_owned(),
        done,
        total: Some(2),
        message: "{\"a\":1}".to_owned(),
    };
    assert_eq!(kinds[start + 1..start + 3], [report(1), report(2)]);
    assert!(matches!(kinds[start + 3], EventKind::ToolCallFinished { .. }));
}

#[tokio::test]
async fn a_flood_of_reports_is_cut_at_the_bound_of_a_call_and_counted() {
    let world = reporting_world(5_000);
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed);
    let reports =
        world.kinds().iter().filter(|kind| matches!(kind, EventKind::ToolProgress { .. })).count();
    assert_eq!(reports, 200);
    assert_eq!(outcome.receipts[0].receipt.logs_dropped, 4_800);
}

#[tokio::test]
async fn a_crash_is_an_error_result_and_the_run_goes_on() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: it
    turns:
      - calls: [{name: crash}, {name: quick}]
      - say: one of them
"#,
        "",
    );
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed);
    let answers = results(&world.sent()[1]);
    assert!(answers[0].1 && answers[0].0.contains("crashed"), "{answers:?}");
    assert_eq!(answers[1], ("ok".to_owned(), false));
    assert!(matches!(outcome.receipts[0].receipt.ending, CallEnding::Trapped(_)));
}

#[tokio::test]
async fn a_call_at_its_own_fuel_limit_is_an_error_and_the_agents_limit_ends_the_run() {
    let twice = r#"
transcript: 1
agents:
  - agent: it
    turns:
      - say: trying
        calls: [{name: spin}]
      - say: again
        calls: [{name: spin}]
      - say: enough
"#;
    let outcome = world(twice, "fuel_per_call = 3000000, fuel = 1000000000").go("it").await;
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Completed, "enough"));
    let outcome = world(twice, "fuel_per_call = 3000000, fuel = 5000000").go("it").await;
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Partial, "again"));
    let Some(RunError::Budget { exhausted }) = outcome.error else { panic!("{outcome:?}") };
    assert_eq!((exhausted.meter, exhausted.level), (Meter::Fuel, BudgetLevel::Subagent));
    assert_eq!(outcome.receipts.len(), 2);
}

#[tokio::test]
async fn a_spinning_guest_ends_with_the_runs_time() {
    let world = world(
        "transcript: 1\nagents: [{agent: it, turns: [{say: so far, calls: [{name: spin}]}]}]",
        "timeout_seconds = 1, fuel = 1000000000000000, fuel_per_call = 1000000000000000",
    );
    let outcome = world.go("it").await;
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Partial, "so far"));
    assert_eq!(outcome.error, Some(RunError::WallTime { seconds: 1 }));
    assert_eq!(outcome.receipts[0].receipt.ending, CallEnding::Cancelled);
    assert!(outcome.unfinished.is_empty());
}

#[tokio::test]
async fn cancelling_a_spinning_guest_gives_its_receipt_and_then_nothing() {
    let world = world(
        "transcript: 1\nagents: [{agent: it, turns: [{say: so far, calls: [{name: spin}, {name: quick}]}]}]",
        "fuel = 1000000000000000, fuel_per_call = 1000000000000000",
    );
    let cancel = CancellationToken::new();
    let (token, kept) = (cancel.clone(), Arc::clone(&world.events));
    let sink = EventSink::with_listener(move |event| {
        kept.lock().unwrap().push(event.clone());
        // The quick call has ended, so the other call is spinning.
        if matches!(&event.kind, EventKind::ToolCallFinished { tool, .. } if tool == "quick") {
            token.cancel();
        }
    });
    let running = run(&world.host, world.spec("it", "t"), sink, cancel);
    let outcome = tokio::time::timeout(Duration::from_secs(60), running).await.unwrap();
    assert_eq!((outcome.status, outcome.output.as_str()), (RunStatus::Cancelled, "so far"));
    let endings: Vec<_> = outcome.receipts.iter().map(|call| &call.receipt.ending).collect();
    assert_eq!(endings, [&CallEnding::Cancelled, &CallEnding::Completed]);
    assert!(outcome.unfinished.is_empty());
    assert_eq!(world.sent().len(), 1, "no model call follows");
}

#[tokio::test]
async fn an_attached_file_goes_to_the_person_and_a_note_to_the_model() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: it
    turns:
      - calls: [{name: attach_file, arguments: {path: a.txt}}]
      - say: attached
"#,
        "",
    );
    let outcome = world.go("it").await;
    let answer = results(&world.sent()[1])[0].clone();
    assert!(!answer.1 && answer.0.contains("[attached a.txt, text/plain"), "{answer:?}");
    assert!(!answer.0.contains("text of a"), "{answer:?}");
    let file = &outcome.attachments[0];
    assert_eq!((file.name.as_str(), &file.data[..]), ("a.txt", &b"text of a\n"[..]));
}
