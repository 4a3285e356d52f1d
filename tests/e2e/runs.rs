//! Runs as sessions of one turn: kept while they run, resumed, found, and deleted.

use serde_json::Value;

use crate::kit::{Done, World};

const SAY: &str = "transcript: 1\nagents: [{agent: general-purpose, turns: [{say: Well.}]}]\n";

/// Reads, hands over, and hangs.
const HANGING: &str = r#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - calls: [{name: spawn_agent, arguments: {agent: summarizer, task: sum up}}]
      - say: Thinking
        hang: true
  - agent: summarizer
    turns: [{say: It is about tides.}]
"#;

/// The requests that are left to ask.
const LEFT: &str = r#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - expect: {last_message_contains: It is about tides.}
        say: All is told.
      - expect: {last_user_contains: and then}
        say: Nothing more.
"#;

fn world() -> World {
    let world = World::new();
    world.file("note.txt", "the tide turns at six\n");
    world
}

fn script(world: &World, name: &str, text: &str) -> String {
    world.other(name, text.as_bytes()).to_str().unwrap().to_owned()
}

fn list(world: &World, command: &[&str]) -> Vec<Value> {
    world.run(command).exits(0).json().as_array().unwrap().clone()
}

fn sessions(world: &World) -> Vec<Value> {
    list(world, &["sessions", "list", "--json"])
}

/// Starts this, waits until it prints `until`, and kills it.
#[cfg(unix)]
fn kill(world: &World, args: &[&str], until: &str) {
    use std::io::{BufRead as _, BufReader};
    let mut child = world.spawn(args);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.contains(until));
    assert!(line.is_some(), "it ended before it printed `{until}`");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[cfg(unix)]
#[test]
fn a_run_that_is_killed_is_told_of_and_gone_on_with() {
    let world = world();
    let (hanging, left) = (script(&world, "a.yaml", HANGING), script(&world, "b.yaml", LEFT));
    let run = ["run", "--output-format", "stream-json", "--context", "known", "--max-steps", "9"];
    kill(&world, &[&run[..], &["--transcript", &hanging, "look"]].concat(), "Thinking");
    let session = sessions(&world).remove(0);
    let id = session["id"].as_str().unwrap();
    assert_eq!(session["kind"], "run");
    let shown = world.run(&["sessions", "show", id]).exits(0);
    let shown = shown.says("agent, interrupted").says("summarizer#0 completed: It is about tides.");
    shown.complains(&format!("belljar chat --resume {id}"));
    let receipts = world.run(&["receipts", id]).exits(0).says("interrupted").says("file_read");
    receipts.says("→ summarizer#0").complains("--resume");
    let record = world.run(&["receipts", id, "--json"]).exits(0).json();
    assert_eq!((&record["status"], &record["context"]), (&"interrupted".into(), &"known".into()));
    assert_eq!(record["outcome"]["usage"]["steps"], 2);

    let chat = ["chat", "--transcript", &left, "--resume", id];
    let done = world.run_with_stdin(&chat, "").exits(0).complains("resumes the turn");
    assert_eq!(done.stdout, "All is told.\n");
    let record = world.run(&["receipts", id, "--json"]).exits(0).json();
    assert_eq!(record["status"], "completed");
    assert_eq!(record["outcome"]["receipts"].as_array().unwrap().len(), 1, "not read again");
    let export = world.run(&["sessions", "export", id]).exits(0).json();
    let said = &export["messages"][1]["content"]["messages"][0]["text"];
    assert_eq!(*said, "Context:\nknown\n\nTask:\nlook");
    assert_eq!(export["messages"][0]["metadata"]["limits"]["steps"], 9);
}

#[cfg(unix)]
#[test]
fn a_team_that_is_killed_keeps_the_stages_that_have_ended() {
    let world = world();
    world.home_file(
        "teams/pair.yaml",
        "name: pair\ndescription: d\nstages:\n  - agent: summarizer\n  - agent: general-purpose\n",
    );
    let text = "
transcript: 1
agents:
  - agent: summarizer
    turns: [{say: It is about tides.}]
  - agent: general-purpose
    turns: [{say: Thinking, hang: true}]
";
    let script = script(&world, "a.yaml", text);
    let args = ["teams", "run", "--output-format", "stream-json", "--transcript", &script];
    kill(&world, &[&args[..], &["pair", "look"]].concat(), "Thinking");
    let session = sessions(&world).remove(0);
    let id = session["id"].as_str().unwrap();
    assert_eq!((&session["kind"], &session["title"]), (&"team".into(), &"look".into()));
    let shown = world.run(&["sessions", "show", id]).exits(0);
    let shown = shown.says("summarizer#0 completed: It is about tides.");
    // What it says is shown before the word that it runs is on disk.
    let left = ["queued", "running"].map(|status| format!("general-purpose#0 {status}"));
    assert!(left.iter().any(|left| shown.stdout.contains(left)), "{}", shown.stdout);
    world.run(&["receipts", id]).exits(0).says("team home/pair").says("interrupted");

    let left = "
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - expect: {last_user_contains: and then}
        say: I know of the tides.
";
    let left = self::script(&world, "b.yaml", left);
    let chat = ["chat", "--transcript", &left, "--resume", id];
    world.run_with_stdin(&chat, "and then\n").exits(2).complains("--agent NAME");
    let chat = [&chat[..], &["--agent", "general-purpose"]].concat();
    let done = world.run_with_stdin(&chat, "and then\n").exits(0);
    assert_eq!(done.stdout, "I know of the tides.\n");
    let export = world.run(&["sessions", "export", id]).exits(0).json();
    assert_eq!(export["messages"][1]["status"], "interrupted");
    assert_eq!(export["session"]["kind"], "chat", "it is a conversation now");
}

#[test]
fn a_run_that_ended_is_talked_about_and_then_kept_like_any_chat() {
    let world = world();
    let script = script(&world, "a.yaml", SAY);
    world.run(&["run", "--transcript", &script, "first"]).exits(0);
    let id = sessions(&world)[0]["id"].as_str().unwrap().to_owned();
    let chat = ["chat", "--transcript", &script, "--resume", &id];
    let done = world.run_with_stdin(&chat, "second\n").exits(0);
    done.complains("you:   first").complains("agent: Well.");
    world.home_file("belljar.toml", "keep_runs = 0\n");
    let talked = ["chat", "--transcript", &script];
    world.run_with_stdin(&talked, "hello\n").exits(0);
    world.run(&["run", "--transcript", &script, "third"]).exits(0).says("Well.");
    let left = sessions(&world);
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.iter().all(|session| session["kind"] == "chat"), "{left:?}");
    // The turns of a conversation are listed as runs are, and found by their own ids.
    let runs = list(&world, &["receipts", "--json"]);
    let tasks: Vec<_> = runs.iter().map(|run| run["task"].as_str().unwrap()).collect();
    assert_eq!(tasks, ["hello", "second", "first"]);
    let turn = runs[1]["id"].as_str().unwrap();
    world.run(&["receipts", turn]).exits(0).says("task    second").says(&id);
    world.run(&["receipts", &id]).exits(0).says("task    first");
    world.run(&["receipts", "20"]).exits(2).complains("several runs begin with");
}

#[test]
fn runs_at_the_same_time_are_all_kept() {
    let world = world();
    let script = script(&world, "a.yaml", SAY);
    let args = ["run", "--transcript", &script, "at once"];
    let runs: Vec<_> = (0..8).map(|_| world.spawn(&args)).collect();
    for run in runs {
        Done::of(run.wait_with_output().unwrap()).exits(0).says("Well.");
    }
    let kept = list(&world, &["receipts", "--json"]);
    assert_eq!(kept.len(), 8);
    assert!(kept.iter().all(|run| run["status"] == "completed"), "{kept:?}");
}

#[test]
fn where_nothing_can_be_saved_nothing_is_run_unless_that_is_said() {
    let world = world();
    let script = script(&world, "a.yaml", SAY);
    let team = "name: one\ndescription: d\nstages:\n  - agent: general-purpose\n";
    world.home_file("teams/one.yaml", team);
    let store = world.home_file("sessions/store/belljar.db", "these are my notes, not a database");
    let to = world.workspace().join("recorded.yaml");
    let model = format!("[models.main]\nkind = \"scripted\"\nmodel = \"{script}\"\n");
    world.home_file("belljar.toml", &model);
    for args in [&["run", "hello"][..], &["teams", "run", "one", "hello"]] {
        let record = [args, &["--record", to.to_str().unwrap()]].concat();
        let done = world.run(&record).exits(1).complains("nothing was run");
        done.complains("--no-save").complains("move it away");
        assert_eq!(std::fs::read(&to).unwrap(), b"", "no model was asked");
        world.run(&[args, &["--no-save"]].concat()).exits(0).says("Well.");
    }
    assert_eq!(std::fs::read_to_string(store).unwrap(), "these are my notes, not a database");
    let fresh = self::world();
    let script = self::script(&fresh, "a.yaml", SAY);
    fresh.run(&["run", "--no-save", "--transcript", &script, "hello"]).exits(0).says("Well.");
    fresh.run(&["receipts"]).exits(0).complains("no runs");
    assert!(!fresh.home().join("sessions/store/belljar.db").exists());
}

#[test]
fn where_a_file_was_put_stands_in_the_receipts() {
    let world = world();
    let text = "
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - calls: [{name: attach_file, arguments: {path: note.txt}}]
      - say: Here it is.
";
    let script = script(&world, "a.yaml", text);
    world.run(&["run", "--transcript", &script, "attach it"]).exits(0).complains("note.txt");
    let run = world.run(&["receipts", "latest", "--json"]).exits(0).json();
    let file = &run["outcome"]["attachments"][0];
    assert_eq!((&file["name"], &file["size"]), (&"note.txt".into(), &22.into()));
    let path = std::path::Path::new(file["saved_to"].as_str().unwrap());
    assert_eq!(path.parent().unwrap().file_name().unwrap(), run["id"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(path).unwrap(), "the tide turns at six\n");
}
