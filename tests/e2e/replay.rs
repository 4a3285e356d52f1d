//! Replays: a stored run once more on overlays of its own, and which of its calls differ.

use std::fs;

use belljar_kit::peers::{HttpPeer, Reply};
use serde_json::Value;

use crate::kit::{Done, World};

const NOTEBOOK: &str = r#"{"cells":[{"cell_type":"markdown","id":"bb","metadata":{},"source":["t"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}"#;

/// An agent with all tools.
const WORKER: &str = "---\nname: worker\ndescription: d\ntools: ['*']\n---\nWork.\n";

/// Looks, changes, looks again: every stock tool but those of the network.
const ALL: &str = r#"
transcript: 1
agents:
  - agent: worker
    turns:
      - calls:
          - {name: file_list, arguments: {path: .}}
          - {name: file_find, arguments: {pattern: '**/*.txt'}}
          - {name: file_search, arguments: {pattern: tide}}
          - {name: file_read, arguments: {path: note.txt}}
      - calls:
          - {name: file_write, arguments: {path: new/made.txt, content: "one\n", create_dirs: true}}
          - {name: file_edit, arguments: {path: note.txt, old_text: six, new_text: seven}}
          - {name: notebook_edit, arguments: {path: n.ipynb, cell_id: bb, edit_mode: insert, new_source: x}}
      - calls:
          - {name: shell, arguments: {command: 'cat note.txt; ls -l new; date; echo more >> note.txt'}}
      - calls:
          - {name: attach_file, arguments: {path: note.txt}}
          - {name: file_read, arguments: {path: missing.txt}}
          - {name: todo_write, arguments: {todos: [{content: look, status: completed}]}}
      - calls:
          - {name: run_javascript, arguments: {code: "tools.file_read({path: 'note.txt'}) + Math.random()"}}
          - {name: run_python, arguments: {code: "import random\ntools.file_read(path='note.txt') + str(random.random())"}}
      - calls:
          - {name: web_search, arguments: {query: tides}}
          - {name: web_fetch, arguments: {url: 'http://127.0.0.1:1/'}}
      - say: All is done.
"#;

const READS: &str = r#"
transcript: 1
agents:
  - agent: worker
    turns:
      - calls: [{name: file_list, arguments: {path: .}}]
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: It turns at six.
"#;

const WRITES: &str = r#"
transcript: 1
agents:
  - agent: worker
    turns:
      - calls: [{name: file_write, arguments: {path: made.txt, content: "made"}}]
      - calls: [{name: shell, arguments: {command: 'rm -f note.txt; cat made.txt'}}]
      - say: Written.
"#;

const SPAWNS: &str = r#"
transcript: 1
agents:
  - agent: worker
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: reader, task: read the note}}]
      - say: Six, says the reader.
  - agent: reader
    turns:
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: It turns at six.
"#;

const READER: &str = "---\nname: reader\ndescription: reads\ntools: [file_read]\n---\nRead.\n";

fn world() -> World {
    let world = World::new();
    world.home_file("agents/worker.md", WORKER);
    world.home_file("agents/reader.md", READER);
    world.file("note.txt", "the tide turns at six\n");
    world.file("n.ipynb", NOTEBOOK);
    world
}

/// Runs the worker by this transcript.
fn run(world: &World, text: &str) -> Done {
    let script = world.other("script.yaml", text.as_bytes());
    world
        .run(&["run", "--agent", "worker", "--transcript", script.to_str().unwrap(), "go"])
        .exits(0)
}

fn replay(world: &World, more: &[&str]) -> Done {
    world.run(&[&["replay", "latest"], more].concat())
}

/// How each call compares.
fn compared(replayed: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let calls = replayed["calls"].as_array().unwrap();
    calls.iter().map(|call| (text(&call["tool"]), text(&call["result"]))).collect()
}

/// All files of the workspace.
fn workspace(world: &World) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut left = vec![world.workspace()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => left.push(entry.path()),
                false => {
                    let name = entry.path().to_string_lossy().into_owned();
                    files.push((name, fs::read(entry.path()).unwrap()));
                }
            }
        }
    }
    files.sort();
    files
}

/// The places of layers that are left where replays make them.
fn temporary(world: &World) -> Vec<String> {
    let store = world.home().join("sessions/store");
    let names = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("overlays-")).collect()
}

#[test]
fn a_run_replays_without_a_difference_with_every_stock_tool() {
    let world = world();
    run(&world, ALL);
    let replayed = replay(&world, &["--json"]).exits(0).json();
    assert_eq!(replayed["differences"], 0, "{replayed:#}");
    let calls = compared(&replayed);
    // Each stock tool is among them, and made again unless it asks for the network.
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools");
    let stock = fs::read_dir(tools).unwrap().map(Result::unwrap);
    let stock = stock.filter(|entry| entry.path().join("tool.toml").is_file());
    let mut known = 0;
    for tool in stock {
        let name = tool.file_name().into_string().unwrap();
        let result = if name.starts_with("web_") { "from-record" } else { "same" };
        let mut of = calls.iter().filter(|(tool, _)| *tool == name).peekable();
        assert!(of.peek().is_some(), "{name} is not called");
        assert!(of.all(|(_, found)| found == result), "{name}: {calls:?}");
        known += 1;
    }
    assert!(known >= 13, "{known}");
    let shown = replay(&world, &[]).exits(0).says("from the record").says("no requests");
    shown.says("15 calls: 13 same, 2 from the record");
    assert!(temporary(&world).is_empty(), "its layers are gone");
    assert!(!world.workspace().join("new").exists());
}

#[test]
fn a_changed_file_is_a_difference_of_the_call_that_reads_it() {
    let world = world();
    run(&world, READS);
    replay(&world, &[]).exits(0).says("2 calls: 2 same");
    world.file("note.txt", "the tide turns at ten\n");
    let shown =
        replay(&world, &[]).exits(6).says("first difference: `file_read` of worker, step 2");
    let shown = shown.says("-the tide turns at six").says("+the tide turns at ten");
    shown.says("2 calls: 1 same, 1 differs");
    let replayed = replay(&world, &["--json"]).exits(6).json();
    assert_eq!(replayed["first"]["step"], 2, "{replayed:#}");
    let call = &replayed["calls"][1];
    assert!(call["then"]["content"].as_str().unwrap().contains("six"), "{call:#}");
    assert!(call["now"]["content"].as_str().unwrap().contains("ten"), "{call:#}");
    // A file that is new is one of the call that lists.
    world.file("note.txt", "the tide turns at six\n");
    world.file("other.txt", "");
    replay(&world, &[]).exits(6).says("first difference: `file_list` of worker, step 1");
}

#[test]
fn a_replay_of_a_run_that_may_write_leaves_the_workspace_as_it_is() {
    let world = world();
    let grant = "[grants.worker]\nmounts = [{ path = '/workspace', access = 'read-write' }]\ntools = ['file_write', 'shell']\n";
    world.home_file("belljar.toml", grant);
    run(&world, WRITES);
    assert!(!world.workspace().join("note.txt").exists(), "the run itself has written");
    // As it was before the run, so that there is something to lose.
    fs::remove_file(world.workspace().join("made.txt")).unwrap();
    world.file("note.txt", "the tide turns at six\n");
    let before = workspace(&world);
    let replayed = replay(&world, &["--json"]).exits(0).json();
    assert_eq!(
        compared(&replayed),
        [("file_write".into(), "same".into()), ("shell".into(), "same".into())]
    );
    assert_eq!(workspace(&world), before);
    assert!(temporary(&world).is_empty());
    // The neighbour: a run of the same agent still writes.
    run(&world, WRITES);
    assert!(world.workspace().join("made.txt").exists());
}

#[test]
fn a_right_that_is_gone_is_said_to_be_the_reason() {
    let world = world();
    run(&world, READS);
    world.home_file("belljar.toml", "[grants.worker]\ntools = ['file_list']\n");
    let shown = replay(&world, &[]).exits(6).says("first difference: `file_read` of worker");
    shown.says("refused now").says("1 same, 1 differs");
}

#[test]
fn subagents_are_replayed_with_their_own_answers() {
    let world = world();
    run(&world, SPAWNS);
    let replayed = replay(&world, &["--json"]).exits(0).json();
    let calls = compared(&replayed);
    assert_eq!(calls, [("spawn_agent".into(), "same".into()), ("file_read".into(), "same".into())]);
    assert_eq!(replayed["calls"][1]["agent"], "worker/reader#0");
    world.file("note.txt", "the tide turns at ten\n");
    let shown = replay(&world, &[]).exits(6);
    shown
        .says("first difference: `file_read` of worker/reader#0, step 1")
        .says("+the tide turns at ten");
}

#[test]
fn what_is_recorded_is_played_by_run() {
    let world = world();
    let first = run(&world, SPAWNS);
    let file = world.other("recorded.yaml", b"");
    let file = file.to_str().unwrap();
    replay(&world, &["--record", file]).exits(0).complains("recorded in");
    let again = world.run(&["run", "--agent", "worker", "--transcript", file, "go"]).exits(0);
    assert_eq!(again.stdout, first.stdout);
    let receipts = world.run(&["receipts", "latest", "--json"]).exits(0).json();
    let child = &receipts["outcome"]["children"][0]["outcome"];
    assert_eq!(child["output"], "It turns at six.", "{receipts:#}");
    // It is a test: without the file that the reader read it fails.
    fs::remove_file(world.workspace().join("note.txt")).unwrap();
    world.run(&["run", "--agent", "worker", "--transcript", file, "go"]).exits(1);
}

#[test]
fn a_model_that_is_asked_again_may_ask_for_something_else() {
    let world = world();
    run(&world, READS);
    let text = READS.replace("path: .", "path: ./");
    world.home_file("again.yaml", &text);
    world.home_file("same.yaml", READS);
    let models = "[models.other]\nkind = 'scripted'\nmodel = 'again.yaml'\n[models.main]\nkind = 'scripted'\nmodel = 'same.yaml'\n";
    world.home_file("belljar.toml", models);
    replay(&world, &["--model", "live"]).exits(0).says("2 calls: 2 same");
    let shown = replay(&world, &["--model", "other"]).exits(6).says("added").says("missing");
    shown.says("the model asked for something else then");
    replay(&world, &["--model", "nobody"]).exits(6).complains("nobody");
}

#[test]
fn a_replay_makes_no_request_unless_it_is_told_to() {
    let peer = HttpPeer::with_reply(Reply::text("page"));
    let port = peer.address.port();
    let world = world();
    let grants =
        format!("[grants.worker]\ntools = ['web_fetch']\nhosts = ['http://127.0.0.1:{port}']\n");
    world.home_file("belljar.toml", &grants);
    let text = format!(
        "transcript: 1\nagents:\n  - agent: worker\n    turns:\n      - calls: [{{name: web_fetch, arguments: {{url: 'http://127.0.0.1:{port}/'}}}}]\n      - say: Read.\n"
    );
    run(&world, &text);
    let made = peer.connection_count();
    assert!(made > 0, "the run itself has asked");
    replay(&world, &[]).exits(0).says("1 call: 1 from the record");
    assert_eq!(peer.connection_count(), made, "nothing was sent");
    replay(&world, &["--network"]).exits(0).says("1 call: 1 same");
    assert!(peer.connection_count() > made);
}

#[cfg(unix)]
#[test]
fn no_hook_runs_and_nobody_is_asked() {
    let world = world();
    run(&world, READS);
    let hook = "[[hooks]]\nevent = 'PreToolUse'\ncommand = 'touch ran; exit 2'\n";
    let ask = "[grants.worker]\ntools = { file_read = 'ask', file_list = 'ask' }\n";
    world.home_file("belljar.toml", &format!("{hook}{ask}"));
    let done = world.run_with_stdin(&["replay", "latest"], "n\nn\n").exits(0);
    done.says("2 calls: 2 same").complains("hooks do not run");
    assert!(!world.workspace().join("ran").exists() && !world.home().join("ran").exists());
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_is_replayed_as_far_as_it_is_stored() {
    use std::io::{BufRead as _, BufReader};
    let world = world();
    let text = READS.replace("say: It turns at six.", "say: Thinking\n        hang: true");
    let script = world.other("script.yaml", text.as_bytes());
    let script = script.to_str().unwrap();
    let args = [
        "run",
        "--agent",
        "worker",
        "--output-format",
        "stream-json",
        "--transcript",
        script,
        "go",
    ];
    let mut child = world.spawn(&args);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.contains("Thinking")));
    replay(&world, &[]).exits(2).complains("has not ended");
    child.kill().unwrap();
    child.wait().unwrap();
    let done = replay(&world, &[]).exits(0).says("2 calls: 2 same");
    done.complains("was interrupted").complains("the record of `worker` ends");
}

#[test]
fn what_cannot_be_replayed_is_said_in_one_message() {
    let world = world();
    world.run(&["replay", "latest"]).exits(2).complains("there is no run `latest`");
    run(&world, READS);
    world.run(&["replay", "nosuch"]).exits(2).complains("nosuch").complains("belljar receipts");
    let elsewhere = world.other("elsewhere/x", b"");
    let elsewhere = elsewhere.parent().unwrap().to_str().unwrap();
    let done = world.run(&["replay", "latest", "--workspace", elsewhere]).exits(2);
    done.complains("worked in").complains("--workspace");
    fs::rename(world.workspace(), world.home().join("gone")).unwrap();
    let mut command = world.command(&["replay", "latest", "--workspace", elsewhere]);
    let output = command.current_dir(elsewhere).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is no longer there"), "{said}");
    fs::rename(world.home().join("gone"), world.workspace()).unwrap();
    fs::remove_file(world.home().join("agents/worker.md")).unwrap();
    world.run(&["replay", "latest"]).exits(2).complains("worker");
}

#[test]
fn a_turn_of_a_conversation_and_a_team() {
    let world = world();
    let script = world.other("chat.yaml", READS.as_bytes());
    let chat = ["chat", "--agent", "worker", "--transcript", script.to_str().unwrap()];
    world.run_with_stdin(&chat, "go\n").exits(0);
    let sessions = world.run(&["sessions", "list", "--json"]).exits(0).json();
    let id = sessions[0]["id"].as_str().unwrap();
    world
        .run(&["replay", id])
        .exits(0)
        .says("2 calls: 2 same")
        .complains("a turn of a conversation");
    world.run(&["replay", id, "--model", "live"]).exits(2).complains("is not asked again");
    world.home_file("teams/one.yaml", "name: one\ndescription: d\nstages:\n  - agent: worker\n");
    let team = ["teams", "run", "--transcript", script.to_str().unwrap(), "one", "go"];
    world.run(&team).exits(0);
    world.run(&["replay", "latest"]).exits(2).complains("the run of a team");
}
