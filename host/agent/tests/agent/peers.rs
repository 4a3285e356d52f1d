//! Tests of tools that call other tools of the same agent (nested calls).

use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use belljar_agent::{
    Approval, ApprovalQuestion, Asker, CallReceipt, EventKind, Outcome, RunStatus, run,
};
use belljar_catalogue::StockTool;
use belljar_kit::world::{BARE, Plan, World, agent, results, stock};
use belljar_kit::{hostile, wat_tool};
use belljar_policy::{DecisionSource, DenyCode};
use belljar_sandbox::{CallEnding, Wasm};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The manifest of a tool that asks for all tools of its agent.
const ALL: &str = "manifest = 1\ndescription = \"test\"\npeers = true\n";

/// A tool that never returns.
const SPIN: &str = "(loop $again (br $again)) unreachable";

/// The scripted tool that makes nested calls, under one of its two names.
fn caller(name: &'static str, manifest: &'static str) -> StockTool {
    StockTool::new(name, hostile("caller"), manifest)
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"do": "call", "tool": tool, "arguments": arguments})
}

fn read(path: &str) -> Value {
    call("file_read", json!({ "path": path }))
}

/// The configuration of an agent `it` that calls `caller` with scripted steps.
struct Setup {
    settings: String,
    tools: Vec<StockTool>,
    more: &'static str,
}

impl Setup {
    fn new(granted: &str, manifest: &'static str) -> Self {
        let settings = format!("[grants.it]\ntools = {granted}\n");
        let tools = vec![caller("caller", manifest), stock("file_read"), stock("file_write")];
        Self { settings, tools, more: "" }
    }

    fn with(mut self, tool: StockTool) -> Self {
        self.tools.push(tool);
        self
    }

    fn limits(mut self, limits: &str) -> Self {
        self.settings.push_str(&format!("limits = {{ {limits} }}\n"));
        self
    }

    /// A world with the agent `it`, whose model calls `caller` with these steps.
    fn world(self, steps: &[Value]) -> World {
        let arguments = json!({ "steps": steps });
        let transcript = format!(
            "transcript: 1\nagents:\n  - agent: it\n    turns:\n      - calls: [{{name: caller, arguments: {arguments}}}]\n      - say: done\n{}",
            self.more
        );
        World::new(Plan {
            transcript: &transcript,
            settings: &self.settings,
            agents: &[("it.md", &agent("it", "")), ("scout.md", &agent("scout", ""))],
            files: &[("a.txt", "text of a\n"), ("b.txt", "text of b\n")],
            tools: self.tools,
            ..Plan::default()
        })
    }

    /// Runs `it` with these steps.
    async fn go(self, steps: &[Value]) -> (World, Outcome) {
        let world = self.world(steps);
        let outcome = world.go("it").await;
        assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
        (world, outcome)
    }
}

/// The results of the steps, from the result that the model read.
fn said(world: &World) -> Vec<Value> {
    let sent = world.sent_by("it", 0);
    let (text, is_error) = results(sent.last().unwrap()).remove(0);
    assert!(!is_error, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// For each receipt, the tool and the outer call's tool.
fn tree(outcome: &Outcome) -> Vec<(&str, Option<&str>)> {
    let tool_of = |id: &str| {
        let call = outcome.receipts.iter().find(|call| call.call_id == id);
        call.map_or("?", |call| call.tool.as_str())
    };
    let row = |call: &'_ CallReceipt| call.parent.clone();
    let rows = outcome.receipts.iter();
    rows.map(|call| (call.tool.as_str(), row(call).map(|id| tool_of(&id)))).collect()
}

#[tokio::test]
async fn a_tool_calls_the_tools_of_its_agent_and_each_call_has_a_receipt_below_its_own() {
    let setup = Setup::new(r#"["caller", "file_read"]"#, ALL);
    let missing = read("none.txt");
    let many = json!({"do": "many", "calls": [
        {"tool": "file_read", "arguments": {"path": "b.txt"}},
        {"tool": "file_read", "arguments": {"path": "a.txt"}},
    ]});
    let steps = [json!({"do": "list"}), read("a.txt"), missing, many];
    let (world, outcome) = setup.go(&steps).await;
    let said = said(&world);
    assert_eq!(said[0], json!({"ok": ["file_read"]}));
    assert!(said[1]["ok"].as_str().unwrap().contains("text of a"), "{said:?}");
    assert_eq!(said[2]["error"], "not-found");
    let many = said[3]["ok"].as_array().unwrap();
    assert!(many[0]["ok"].as_str().unwrap().contains("text of b"), "in the order asked: {many:?}");
    assert!(many[1]["ok"].as_str().unwrap().contains("text of a"), "{many:?}");
    let below = ("file_read", Some("caller"));
    assert_eq!(tree(&outcome), [("caller", None), below, below, below, below]);
    assert!(outcome.receipts[1].receipt.paths_read.iter().any(|path| path.ends_with("a.txt")));
    assert!(outcome.receipts[0].receipt.paths_read.is_empty(), "each has what it did itself");
    assert_eq!(outcome.total.tool_calls, 5);
    let started: Vec<_> = world
        .kinds()
        .into_iter()
        .filter_map(|kind| match kind {
            EventKind::ToolCallStarted { tool, parent, .. } => Some((tool, parent.is_some())),
            _ => None,
        })
        .collect();
    assert_eq!(started[..2], [("caller".to_owned(), false), ("file_read".to_owned(), true)]);
}

#[tokio::test]
async fn without_a_manifest_that_asks_there_is_nobody() {
    let setup = Setup::new(r#"["caller", "file_read"]"#, BARE);
    let (world, outcome) = setup.go(&[json!({"do": "list"}), read("a.txt")]).await;
    let said = said(&world);
    assert_eq!(said[0], json!({"ok": []}));
    assert_eq!(said[1]["error"], "denied");
    assert_eq!(tree(&outcome), [("caller", None)]);
    let denials = &outcome.receipts[0].receipt.denials;
    assert_eq!(denials.len(), 1);
    assert_eq!(denials[0].code, DenyCode::InterfaceNotGranted);
}

#[tokio::test]
async fn a_flood_of_refused_calls_is_noted_up_to_a_bound_and_paid_for() {
    let setup = Setup::new(r#"["caller", "file_read"]"#, BARE);
    let one = json!({"tool": "file_read", "arguments": {}});
    let many = |n: usize| json!({"do": "many", "calls": vec![one.clone(); n]});
    let (world, outcome) = setup.go(&[many(2), many(2_000), json!({"do": "list"})]).await;
    let said = said(&world);
    for (answers, count) in [(&said[0], 2), (&said[1], 2_000)] {
        let answers = answers["ok"].as_array().unwrap();
        assert_eq!(answers.len(), count, "one for each");
        assert!(answers.iter().all(|it| it["error"] == "denied"), "{:?}", answers.first());
    }
    assert_eq!(said[2], json!({"ok": []}), "the tool goes on");
    let receipt = &outcome.receipts[0].receipt;
    let noted = receipt.denials.len() as u64 + receipt.denials_dropped;
    assert_eq!(noted, 2 + 64, "as many as can be made at once");
}

#[tokio::test]
async fn names_outside_the_manifest_the_rights_and_the_world_are_refused_alike() {
    const READ: &str = "manifest = 1\ndescription = \"test\"\npeers = [\"file_read\", \"shell\"]\n";
    let setup = Setup::new(r#"["caller", "file_read", "file_write"]"#, READ);
    let write = call("file_write", json!({"path": "new.txt", "content": "x"}));
    let steps = [json!({"do": "list"}), write, call("shell", json!({})), call("nope", json!({}))];
    let (world, outcome) = setup.go(&steps).await;
    let said = said(&world);
    assert_eq!(said[0], json!({"ok": ["file_read"]}));
    let text = "tool not allowed: the available tools are `file_read`";
    for refused in &said[1..] {
        assert_eq!(*refused, json!({"error": "denied", "text": text}));
    }
    assert!(!world.root().join("new.txt").exists());
    // Each refused attempt has its own receipt.
    let refused = outcome.receipts.iter().filter(|call| !call.receipt.denials.is_empty());
    assert_eq!(refused.count(), 3);
}

#[tokio::test]
async fn the_refusal_of_a_nested_call_names_who_decided() {
    const SOME: &str = "manifest = 1\ndescription = \"test\"\n\
        peers = [\"file_read\", \"file_write\", \"file_list\", \"file_search\", \"shell\"]\n";
    let called = [
        // The agent's file does not name the tool, and the operator grants the tool.
        ("file_write", Some(DecisionSource::Definition)),
        // The file names the tool, and the operator does not grant the tool.
        ("file_list", Some(DecisionSource::Grants)),
        // File and operator allow the tool, and the parent agent lacks the tool.
        ("file_search", Some(DecisionSource::Parent)),
        // File, operator and parent allow the tool, and the manifest of `caller` does not name the tool.
        ("file_find", Some(DecisionSource::Manifest)),
        // No such tool exists, whatever the manifest names.
        ("shell", Some(DecisionSource::Host)),
        ("nope", Some(DecisionSource::Host)),
        ("file_read", None),
    ];
    let steps: Vec<Value> = called
        .iter()
        .map(|(tool, _)| match *tool {
            "file_read" => read("a.txt"),
            tool => call(tool, json!({})),
        })
        .collect();
    let arguments = json!({ "steps": steps });
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: boss\n    turns:\n      \
        - calls: [{{name: spawn_agent, arguments: {{agent: it, task: go}}}}]\n      - say: done\n  \
        - agent: it\n    spawn: 0\n    turns:\n      \
        - calls: [{{name: caller, arguments: {arguments}}}]\n      - say: done\n"
    );
    let named = "tools: ['*']\ndisallowedTools: [file_write]\n";
    let others = ["file_read", "file_write", "file_find", "file_list", "file_search"].map(stock);
    let world = World::new(Plan {
        transcript: &transcript,
        settings: "[grants.boss]\n\
            tools = [\"spawn_agent\", \"caller\", \"file_read\", \"file_write\", \"file_find\"]\n\
            [grants.it]\n\
            tools = [\"caller\", \"file_read\", \"file_write\", \"file_find\", \"file_search\"]\n",
        agents: &[("boss.md", &agent("boss", "")), ("it.md", &agent("it", named))],
        files: &[("a.txt", "text of a\n")],
        tools: others.into_iter().chain([caller("caller", SOME)]).collect(),
        ..Plan::default()
    });
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    assert_eq!(outcome.children.len(), 1, "{:?}", world.sent_by("boss", 0));
    let receipts = &outcome.children[0].outcome.receipts;
    for (receipt, (tool, by)) in receipts[1..].iter().zip(called) {
        assert_eq!(receipt.tool, tool);
        let facts = receipt.receipt.denials.iter().map(|denial| denial.facts.as_str());
        let facts = facts.collect::<String>();
        match by {
            Some(by) => assert!(facts.contains(&by.to_string()), "{tool}, {by}: {facts}"),
            None => assert_eq!(facts, ""),
        }
    }
    // The calling tool learns nothing about the denied tool.
    let (text, is_error) = results(world.sent_by("it", 0).last().unwrap()).remove(0);
    assert!(!is_error, "{text}");
    let said: Vec<Value> = serde_json::from_str(&text).unwrap();
    let (read, refused) = said.split_last().unwrap();
    let alike = "tool not allowed: the available tools are `file_read`";
    assert!(refused.iter().all(|it| *it == json!({"error": "denied", "text": alike})), "{text}");
    assert!(read["ok"].as_str().unwrap().contains("text of a"), "{text}");
}

#[tokio::test]
async fn a_component_that_waits_cannot_be_called_and_depth_is_bounded() {
    let granted = r#"["caller", "caller_again", "file_read"]"#;
    let deeper = |steps: &[Value]| call("caller_again", json!({ "steps": steps }));
    let own = call("caller", json!({"steps": []}));
    // Two levels of nested calls; on the second level the component waits.
    let setup = Setup::new(granted, ALL).with(caller("caller_again", ALL));
    let steps = [own.clone(), deeper(&[json!({"do": "list"}), own, read("a.txt")])];
    let (world, outcome) = setup.go(&steps).await;
    let said_ = said(&world);
    assert!(said_[0]["text"].as_str().unwrap().contains("waits for this call"), "{said_:?}");
    let inner: Value = serde_json::from_str(said_[1]["ok"].as_str().unwrap()).unwrap();
    assert_eq!(inner[0], json!({"ok": ["file_read"]}));
    assert!(inner[1]["text"].as_str().unwrap().contains("waits for this call"), "{inner}");
    assert!(inner[2]["ok"].as_str().unwrap().contains("text of a"), "{inner}");
    let again = Some("caller_again");
    assert_eq!(
        tree(&outcome),
        [
            ("caller", None),
            ("caller", Some("caller")),
            ("caller_again", Some("caller")),
            ("caller", again),
            ("file_read", again),
        ]
    );
    // One level of nested calls only.
    let setup = Setup::new(granted, ALL).with(caller("caller_again", ALL)).limits("call_depth = 1");
    let (world, _) = setup.go(&[deeper(&[json!({"do": "list"}), read("a.txt")])]).await;
    let inner: Value = serde_json::from_str(said(&world)[0]["ok"].as_str().unwrap()).unwrap();
    assert_eq!(inner[0], json!({"ok": []}));
    assert!(inner[1]["text"].as_str().unwrap().contains("deeper than 1"), "{inner}");
}

#[tokio::test]
async fn a_nested_call_is_billed_to_the_call_that_makes_it_and_leaves_it_a_reserve() {
    let spin = StockTool::new("spin", Wasm::new(wat_tool("spin", SPIN)), BARE);
    let setup = Setup::new(r#"["caller", "spin", "file_read"]"#, ALL).with(spin);
    let setup = setup.limits("fuel_per_call = 400_000_000");
    let steps = [call("spin", json!({})), call("spin", json!({})), read("a.txt")];
    let (world, outcome) = setup.go(&steps).await;
    let said = said(&world);
    assert_eq!(said[0]["error"], "failed");
    assert!(said[0]["text"].as_str().unwrap().contains("fuel"), "{said:?}");
    assert!(said[2]["ok"].as_str().unwrap().contains("text of a"), "a reserve is left: {said:?}");
    let fuel: u64 = outcome.receipts.iter().map(|call| call.receipt.fuel).sum();
    assert_eq!(outcome.total.fuel, fuel);
    let slack = 2 * 100_000;
    assert!(fuel <= 400_000_000 + slack, "all together are within the outer call's: {fuel}");
}

#[tokio::test]
async fn the_clock_of_a_call_stands_still_while_its_calls_run() {
    let spin = StockTool::new("spin", Wasm::new(wat_tool("spin", SPIN)), BARE);
    let setup = Setup::new(r#"["caller", "spin", "file_read"]"#, ALL).with(spin);
    let setup = setup.limits(
        "call_timeout_seconds = 1, fuel_per_call = 900_000_000_000, fuel = 2_000_000_000_000",
    );
    let (world, outcome) = setup.go(&[call("spin", json!({})), read("a.txt")]).await;
    let said = said(&world);
    assert!(said[0]["text"].as_str().unwrap().contains("took over 1 seconds"), "{said:?}");
    assert!(said[1]["ok"].as_str().unwrap().contains("text of a"), "{said:?}");
    assert_eq!(outcome.receipts[0].receipt.ending, CallEnding::Completed);
    assert!(outcome.receipts[0].receipt.times.total >= 1_000_000);
}

#[tokio::test]
async fn floods_end_at_their_bounds() {
    let setup = Setup::new(r#"["caller", "file_read"]"#, ALL).limits("nested_calls = 10");
    let one = json!({"tool": "file_read", "arguments": {"path": "a.txt"}});
    let many = |n: usize| json!({"do": "many", "calls": vec![one.clone(); n]});
    let repeat = json!({"do": "repeat", "times": 20, "call": one});
    let (world, outcome) = setup.go(&[many(65), many(6), repeat]).await;
    let said = said(&world);
    let at_once = said[0]["ok"].as_array().unwrap();
    assert!(at_once.len() == 65 && at_once.iter().all(|it| it["error"] == "too-large"));
    assert!(said[1]["ok"].as_array().unwrap().iter().all(|it| it["ok"].is_string()));
    assert_eq!(said[2]["ok"], 4, "{said:?}");
    assert!(said[2]["last"]["text"].as_str().unwrap().contains("too many calls: at most 10"));
    assert_eq!(outcome.receipts.len(), 1 + 10);
}

#[tokio::test]
async fn what_a_call_had_under_way_ends_with_the_run() {
    let spin = StockTool::new("spin", Wasm::new(wat_tool("spin", SPIN)), BARE);
    let setup = Setup::new(r#"["caller", "spin"]"#, ALL).with(spin);
    let world = setup.world(&[call("spin", json!({}))]);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let sink = belljar_agent::EventSink::with_listener(move |event| {
        if let EventKind::ToolCallStarted { tool, .. } = &event.kind
            && tool == "spin"
        {
            stop.cancel();
        }
    });
    let outcome = run(&world.host, world.spec("it", "task"), sink, cancel).await;
    assert_eq!(outcome.status, RunStatus::Cancelled);
    assert!(outcome.unfinished.is_empty(), "{:?}", outcome.unfinished);
    assert_eq!(tree(&outcome), [("caller", None), ("spin", Some("caller"))]);
    for call in &outcome.receipts {
        assert_eq!(call.receipt.ending, CallEnding::Cancelled, "{}", call.tool);
    }
}

/// A person who says yes this many times, then no, and keeps the arguments of each question.
struct Yes(usize, Mutex<Vec<String>>);

#[async_trait]
impl Asker for Yes {
    async fn ask_approval(&self, question: ApprovalQuestion<'_>) -> Approval {
        let mut asked = self.1.lock().unwrap();
        asked.push(question.arguments.to_owned());
        if asked.len() <= self.0 { Approval::Yes } else { Approval::No }
    }
}

#[tokio::test]
async fn a_person_is_asked_about_each_nested_call() {
    let mut setup = Setup::new("[]", ALL);
    setup.settings =
        "[grants.it]\ntools = { caller = \"allow\", file_read = \"ask\" }\n".to_owned();
    let mut world = setup.world(&[read("a.txt"), read("b.txt")]);
    let person = Arc::new(Yes(1, Mutex::default()));
    world.host.asker = Arc::clone(&person) as Arc<dyn Asker>;
    let outcome = world.go("it").await;
    let said = said(&world);
    assert!(said[0]["ok"].as_str().unwrap().contains("text of a"), "{said:?}");
    assert_eq!(said[1]["error"], "denied", "{said:?}");
    let asked = person.1.lock().unwrap().clone();
    assert_eq!(asked, [r#"{"path":"a.txt"}"#, r#"{"path":"b.txt"}"#]);
    assert_eq!(outcome.receipts.len(), 3);
}

#[tokio::test]
async fn a_tool_starts_a_subagent() {
    let mut setup = Setup::new(r#"["caller", "spawn_agent"]"#, ALL);
    setup.settings.push_str("[grants.scout]\ntools = [\"file_read\"]\n");
    setup.more = "  - agent: scout\n    turns:\n      - calls: [{name: file_read, arguments: {path: a.txt}}]\n      - say: found it\n";
    let steps =
        [json!({"do": "list"}), call("spawn_agent", json!({"agent": "scout", "task": "look"}))];
    let (world, outcome) = setup.go(&steps).await;
    let said = said(&world);
    assert_eq!(said[0], json!({"ok": ["spawn_agent"]}));
    assert!(said[1]["ok"].as_str().unwrap().contains("found it"), "{said:?}");
    assert_eq!(outcome.children.len(), 1);
    let child = &outcome.children[0];
    assert!(child.call_id.starts_with(&outcome.receipts[0].call_id), "{}", child.call_id);
    assert_eq!(child.outcome.receipts.len(), 1);
}

#[tokio::test]
async fn a_tool_does_not_learn_who_called_it() {
    const READ: &str = "manifest = 1\ndescription = \"test\"\npeers = [\"file_read\"]\n";
    let granted = r#"["caller", "caller_again", "file_read"]"#;
    let setup = Setup::new(granted, ALL).with(caller("caller_again", READ));
    let steps = [call("caller", json!({"steps": []})), call("nope", json!({})), read("a.txt")];
    let (world, _) = setup.go(&[call("caller_again", json!({ "steps": steps }))]).await;
    let inner: Value = serde_json::from_str(said(&world)[0]["ok"].as_str().unwrap()).unwrap();
    assert_eq!(inner[0]["error"], "denied");
    assert_eq!(inner[0], inner[1], "its caller, which it may not call, is like any other name");
    assert!(inner[2]["ok"].as_str().unwrap().contains("text of a"), "{inner}");
}

#[tokio::test]
async fn no_call_of_a_model_has_the_id_of_one_that_a_tool_makes() {
    let one = json!({ "steps": [read("a.txt")] });
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: it\n    turns:\n      - calls:\n          \
         - {{name: caller, id: x, arguments: {one}}}\n          \
         - {{name: file_read, id: x.1, arguments: {{path: none.txt}}}}\n      - say: done\n"
    );
    let setup = Setup::new(r#"["caller", "file_read"]"#, ALL);
    let world = World::new(Plan {
        transcript: &transcript,
        settings: &setup.settings,
        agents: &[("it.md", &agent("it", ""))],
        files: &[("a.txt", "text of a\n")],
        tools: setup.tools,
        ..Plan::default()
    });
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let ids: std::collections::BTreeSet<&str> =
        outcome.receipts.iter().map(|call| call.call_id.as_str()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert_eq!(tree(&outcome)[..2], [("caller", None), ("file_read", Some("caller"))]);
    assert_eq!(outcome.receipts[2].parent, None);
}

#[tokio::test]
async fn receipts_of_nested_calls_keep_together_what_one_call_may_say() {
    let line = "x".repeat(1_000);
    let lines: Vec<Value> = (0..20).map(|_| json!({"do": "log", "text": line})).collect();
    let granted = r#"["caller", "caller_again", "file_read"]"#;
    let setup = Setup::new(granted, ALL).with(caller("caller_again", BARE));
    let call = json!({"tool": "caller_again", "arguments": {"steps": lines}});
    let steps = [json!({"do": "repeat", "times": 80, "call": call}), read("a.txt")];
    let (world, outcome) = setup.go(&steps).await;
    let said = said(&world);
    assert_eq!(said[0]["ok"], 80, "{said:?}");
    assert!(said[1]["ok"].as_str().unwrap().contains("text of a"), "{said:?}");
    let kept =
        |call: &CallReceipt| call.receipt.logs.iter().map(|it| it.message.len()).sum::<usize>();
    let all: usize = outcome.receipts.iter().map(kept).sum();
    assert!(all <= 1 << 20, "{all} bytes of log lines are kept");
    assert!(all >= 1 << 19, "the first of them are: {all}");
    let nested = outcome.receipts.iter().filter(|call| call.receipt.tool == "caller_again");
    let lines = nested.map(|call| call.receipt.logs.len() as u64 + call.receipt.logs_dropped);
    assert_eq!(lines.sum::<u64>(), 80 * 20, "what is not kept is counted");
}

#[tokio::test]
async fn what_belljars_own_tools_answer_to_a_tool_counts_as_output() {
    let setup =
        Setup::new(r#"["caller", "todo_write"]"#, ALL).limits("output_total_bytes = 60_000");
    let todo = json!({"content": "y".repeat(900), "status": "pending"});
    let write = call("todo_write", json!({ "todos": vec![todo; 20] }));
    let list = json!({"tool": "todo_write", "arguments": {"action": "list"}});
    let steps = [write, json!({"do": "repeat", "times": 50, "call": list})];
    let (world, outcome) = setup.go(&steps).await;
    let said = said(&world);
    assert_eq!(said[1]["ok"], 3, "{said:?}");
    assert!(said[1]["last"]["text"].as_str().unwrap().contains("output"), "{said:?}");
    assert_eq!(outcome.receipts.len(), 1 + 1 + 50);
}

/// A person who never answers. Counts the questions.
#[derive(Default)]
struct Away(Mutex<usize>);

#[async_trait]
impl Asker for Away {
    async fn ask_approval(&self, _: ApprovalQuestion<'_>) -> Approval {
        *self.0.lock().unwrap() += 1;
        // From here on the paused clock lets waiting time pass at once.
        if *self.0.lock().unwrap() == 1 {
            tokio::time::pause();
        }
        std::future::pending().await
    }
}

#[tokio::test]
async fn below_one_call_a_person_who_does_not_come_is_waited_for_once() {
    let mut setup = Setup::new("[]", ALL);
    setup.settings =
        "[grants.it]\ntools = { caller = \"allow\", file_read = \"ask\", clarify = \"allow\" }\n"
            .to_owned();
    let one = json!({"tool": "file_read", "arguments": {"path": "a.txt"}});
    let steps = [
        json!({"do": "repeat", "times": 5, "call": one}),
        call("clarify", json!({"question": "anybody?"})),
    ];
    let mut world = setup.world(&steps);
    let person = Arc::new(Away::default());
    world.host.asker = Arc::clone(&person) as Arc<dyn Asker>;
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    assert_eq!(*person.0.lock().unwrap(), 1);
    let said = said(&world);
    assert_eq!(said[0]["ok"], 0, "{said:?}");
    assert_eq!(said[0]["last"]["error"], "denied", "{said:?}");
    assert!(said[1]["text"].as_str().unwrap().contains("nobody answers"), "{said:?}");
}
