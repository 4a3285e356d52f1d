//! Tests of code that calls tools: an agent with `run_javascript`.

use belljar_agent::{Outcome, RunStatus};
use belljar_kit::world::{Plan, World, agent, results, stock};
use serde_json::json;

/// A transcript with a call of `run_javascript` for each script, one a step, and then the end.
fn transcript(scripts: &[&str]) -> String {
    let calls: Vec<String> = scripts
        .iter()
        .map(|code| {
            let arguments = json!({ "code": code });
            format!("      - calls: [{{name: run_javascript, arguments: {arguments}}}]\n")
        })
        .collect();
    format!(
        "transcript: 1\nagents:\n  - agent: it\n    turns:\n{}      - say: done\n",
        calls.concat()
    )
}

/// A world with these settings and this transcript.
fn world(settings: &str, transcript: &str) -> World {
    World::new(Plan {
        transcript,
        settings,
        agents: &[("it.md", &agent("it", "")), ("other.md", &agent("other", ""))],
        files: &[("a.txt", "text of a\n"), ("b.txt", "text of b\n")],
        tools: vec![stock("run_javascript"), stock("file_read"), stock("file_write")],
        ..Plan::default()
    })
}

const READS: &str = "[grants.it]\ntools = [\"run_javascript\", \"file_read\"]\n";

/// Runs the scripts; returns for each result the text and whether the result is an error.
async fn run(settings: &str, scripts: &[&str]) -> (World, Outcome, Vec<(String, bool)>) {
    let world = world(settings, &transcript(scripts));
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let sent = world.sent_by("it", 0);
    let answers = sent.iter().skip(1).map(|request| results(request).remove(0)).collect();
    (world, outcome, answers)
}

#[tokio::test]
async fn tools_are_functions_and_only_what_the_script_returns_reaches_the_model() {
    let script = "const all = parallel(['a.txt', 'b.txt'].map(path => tools.file_read.of({path})));\n\
                  all.map(text => text.includes('text of')).join()";
    let (world, outcome, answers) = run(READS, &[script]).await;
    assert_eq!(answers, [("=> true,true\n".to_owned(), false)]);
    let sent = format!("{:?}", world.sent_by("it", 0));
    assert!(!sent.contains("text of a"), "what the tools gave stays in the script");
    let tools: Vec<_> = outcome.receipts.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, ["run_javascript", "file_read", "file_read"]);
}

#[tokio::test]
async fn variables_last_from_call_to_call_until_a_script_starts_anew() {
    let world = world(
        READS,
        "transcript: 1\nagents:\n  - agent: it\n    turns:\n      \
        - calls: [{name: run_javascript, arguments: {code: 'let s = 1; const f = () => s'}}]\n      \
        - calls: [{name: run_javascript, arguments: {code: 'let s = 2; f()'}}]\n      \
        - calls: [{name: run_javascript, arguments: {code: 'typeof f', fresh: true}}]\n      \
        - say: done\n",
    );
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let sent = world.sent_by("it", 0);
    let texts: Vec<_> = sent.iter().skip(1).map(|it| results(it).remove(0).0).collect();
    assert_eq!(texts, ["[belljar: no output]\n", "=> 2\n", "=> undefined\n"]);
}

#[tokio::test]
async fn an_exception_has_the_scripts_lines_and_the_variables_stay() {
    let scripts = [
        "let kept = 5\nfunction f() {\n  return tools.file_read({path: 'none.txt'})\n}\nf()",
        "kept",
    ];
    let (_, _, answers) = run(READS, &scripts).await;
    let (text, is_error) = &answers[0];
    assert!(*is_error, "{text}");
    for part in ["ToolError: ", "none.txt", "at f (script:3:", "(script:5:"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(answers[1], ("=> 5\n".to_owned(), false));
}

#[tokio::test]
async fn a_script_can_call_what_its_agent_has_and_nothing_else() {
    let script = "const kind = f => { try { f(); return 'done' } catch (e) { return e.kind } };\n\
        [Object.keys(tools).join(), kind(() => tools.file_write({path: 'x.txt', content: 'x'})),\n\
         kind(() => tools.nonsense({})), kind(() => tools.run_javascript({code: '1'})),\n\
         kind(() => tools.file_read({path: 'a.txt'}))].join(' ')";
    let (world, outcome, answers) = run(READS, &[script]).await;
    assert_eq!(answers[0].0, "=> file_read denied denied denied done\n");
    assert!(!world.root().join("x.txt").exists());
    let done = outcome.receipts.iter().filter(|call| call.error.is_none()).count();
    assert_eq!(done, 2, "the script and what it read");
}

#[tokio::test]
async fn a_store_that_is_lost_is_said_so_once() {
    let settings = format!("{READS}limits = {{ fuel_per_call = 200000000 }}\n");
    let scripts = ["let kept = 5; kept", "while (true) {}", "typeof kept", "typeof kept"];
    let (_, _, answers) = run(&settings, &scripts).await;
    assert_eq!(answers[0].0, "=> 5\n");
    assert!(answers[1].1, "{answers:?}");
    assert!(answers[2].0.starts_with("[belljar: the tool began anew"), "{answers:?}");
    assert!(answers[2].0.ends_with("=> undefined\n"), "{answers:?}");
    assert_eq!(answers[3].0, "=> undefined\n");
}

#[tokio::test]
async fn a_memory_hog_ends_as_an_error_of_its_own_and_keeps_its_variables() {
    let settings = format!("{READS}limits = {{ memory_bytes = 268435456 }}\n");
    let hog = "let kept = 1; let big = []; for (;;) big.push(new Array(1e6).fill(1))";
    let (_, _, answers) = run(&settings, &[hog, "big = null; kept"]).await;
    assert!(answers[0].1 && answers[0].0.contains("out of memory"), "{answers:?}");
    assert_eq!(answers[1].0, "=> 1\n");
}

#[tokio::test]
async fn scripts_of_two_agents_share_nothing() {
    let transcript = "transcript: 1\nagents:\n  - agent: it\n    turns:\n      \
        - calls: [{name: run_javascript, arguments: {code: \"Array.prototype.map = () => 'mine'; globalThis.leak = 1; Object.prototype.polluted = 1; JSON.stringify = () => '{}'; 1\"}}]\n      \
        - calls: [{name: run_javascript, arguments: {code: \"tools.file_read({path: 'a.txt'}).length > 0\"}}]\n      \
        - calls: [{name: spawn_agent, arguments: {agent: other, task: go}}]\n      - say: done\n  \
        - agent: other\n    spawn: 0\n    turns:\n      \
        - calls: [{name: run_javascript, arguments: {code: \"[typeof leak, ({}).polluted, [1].map(x => x + 1)[0], JSON.stringify({a: 1})].join()\"}}]\n      \
        - say: done\n";
    let settings = "[grants.it]\ntools = [\"run_javascript\", \"file_read\", \"spawn_agent\"]\n\
        [grants.other]\ntools = [\"run_javascript\"]\n";
    let world = world(settings, transcript);
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let own = world.sent_by("it", 0);
    assert_eq!(results(&own[2]).remove(0).0, "=> true\n", "the stubs hold what they need");
    let other = world.sent_by("other", 0);
    assert_eq!(results(&other[1]).remove(0).0, "=> undefined,,2,{\"a\":1}\n");
}

#[tokio::test]
async fn with_tools_as_code_the_model_is_shown_one_tool_and_can_call_no_other() {
    let settings = format!("{READS}tools_as = \"code\"\n");
    let transcript = "transcript: 1\nagents:\n  - agent: it\n    turns:\n      \
        - calls: [{name: file_read, arguments: {path: a.txt}}]\n      \
        - calls: [{name: run_javascript, arguments: {code: \"tools.file_read({path: 'a.txt'}).includes('text of a')\"}}]\n      \
        - say: done\n";
    let world = world(&settings, transcript);
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let sent = world.sent_by("it", 0);
    let names: Vec<_> = sent[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["run_javascript"]);
    let description = &sent[0].tools[0].description;
    assert!(description.contains("tools.file_read({path: string, "), "{description}");
    let (text, is_error) = results(&sent[1]).remove(0);
    assert!(is_error && text.contains("the available tools are `run_javascript`"), "{text}");
    assert_eq!(results(&sent[2]).remove(0), ("=> true\n".to_owned(), false));
    // The denied call has no effect, and the script's own call succeeded.
    let tools: Vec<_> =
        outcome.receipts.iter().map(|call| (call.tool.as_str(), call.error.is_none())).collect();
    assert_eq!(tools, [("file_read", false), ("run_javascript", true), ("file_read", true)]);
}

#[tokio::test]
async fn with_both_each_tool_can_be_called_and_without_an_interpreter_nothing_changes() {
    let shown = async |settings: &str| {
        let world = world(
            settings,
            "transcript: 1\nagents:\n  - agent: it\n    turns:\n      - say: done\n",
        );
        world.go("it").await;
        let sent = world.sent_by("it", 0);
        let row = |tool: &belljar_model::ToolSpec| {
            (tool.name.clone(), tool.description.contains("The tools:"))
        };
        sent[0].tools.iter().map(row).collect::<Vec<_>>()
    };
    let name = |name: &str, stubs: bool| (name.to_owned(), stubs);
    let both = shown(&format!("{READS}tools_as = \"both\"\n")).await;
    assert_eq!(both, [name("file_read", false), name("run_javascript", true)]);
    let calls = shown(READS).await;
    assert_eq!(calls, [name("file_read", false), name("run_javascript", false)]);
    let none = shown("[grants.it]\ntools = [\"file_read\"]\ntools_as = \"code\"\n").await;
    assert_eq!(none, [name("file_read", false)]);
}

#[tokio::test]
async fn a_call_can_give_itself_less_time_than_its_limit() {
    let transcript = "transcript: 1\nagents:\n  - agent: it\n    turns:\n      \
        - calls: [{name: run_javascript, arguments: {code: 'while (true) {}', timeout: 0.05}}]\n      \
        - say: done\n";
    let settings = format!("{READS}limits = {{ fuel_per_call = 1000000000000 }}\n");
    let world = world(&settings, transcript);
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let (text, is_error) = results(world.sent_by("it", 0).last().unwrap()).remove(0);
    assert!(is_error && text.contains("took over"), "{text}");
}
