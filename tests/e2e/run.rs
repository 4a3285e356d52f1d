//! `belljar run` with a scripted model, and `belljar receipts`.

use serde_json::{Value, json};

use crate::kit::World;

/// Reads one file that is there and one outside the mount, then answers.
pub(crate) const TRANSCRIPT: &str = r#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - expect:
          last_user_contains: what does the note say
        say: Let me look.
        calls:
          - name: file_read
            arguments: {path: note.txt}
          - name: file_read
            arguments: {path: ../secret.txt}
        usage: {input: 100, cached: 40, output: 10}
      - expect:
          results:
            - {name: file_read, contains: the tide turns at six, is_error: false}
            - {name: file_read, is_error: true}
        say: It says that the tide turns at six.
        usage: {input: 150, cached: 100, output: 12}
"#;

pub(crate) const TASK: &str = "what does the note say";

/// A world with a note, something beside the workspace, and the transcript.
pub(crate) fn world() -> (World, String) {
    let world = World::new();
    world.file("note.txt", "the tide turns at six\n");
    world.other("secret.txt", b"nobody may read this");
    let transcript = world.other("transcript.yaml", TRANSCRIPT.as_bytes());
    let transcript = transcript.to_str().unwrap().to_owned();
    (world, transcript)
}

#[test]
fn a_run_prints_the_last_words_to_stdout_and_the_way_there_to_stderr() {
    let (world, transcript) = world();
    let done = world.run(&["run", "--transcript", &transcript, TASK]).exits(0);
    assert_eq!(done.stdout, "It says that the tide turns at six.\n");
    let done = done.complains("file_read").complains("note.txt");
    assert!(!done.stderr.contains('\u{1b}'), "colour without a terminal: {}", done.stderr);
}

#[test]
fn what_a_model_says_is_escaped_in_a_pipe_too() {
    let world = World::new();
    let said = "transcript: 1\nagents:\n  - agent: general-purpose\n    turns:\n      - say: \"a\\e]0;b\\a\\u202Ec\\n\\td\"\n";
    let transcript = world.other("transcript.yaml", said.as_bytes());
    let transcript = transcript.to_str().unwrap();
    let run = world.run(&["run", "--transcript", transcript, "go"]).exits(0);
    assert_eq!(run.stdout, "a\\u{1b}]0;b\\u{7}\\u{202e}c\n\td\n");
    let run = world.run(&["run", "--transcript", transcript, "--json", "go"]).exits(0);
    let outcome: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(outcome["output"], "a\u{1b}]0;b\u{7}\u{202e}c\n\td", "the very text");
}

#[test]
fn the_task_may_come_from_stdin() {
    let (world, transcript) = world();
    for args in
        [&["run", "--transcript", &transcript][..], &["run", "--transcript", &transcript, "-"]]
    {
        let done = world.run_with_stdin(args, TASK).exits(0);
        assert_eq!(done.stdout, "It says that the tide turns at six.\n");
    }
}

#[test]
fn an_empty_task_is_refused() {
    let (world, transcript) = world();
    world.run(&["run", "--transcript", &transcript, " \n"]).exits(2).complains("task");
    world.run_with_stdin(&["run", "--transcript", &transcript], "").exits(2).complains("task");
}

#[test]
fn quiet_leaves_only_the_result() {
    let (world, transcript) = world();
    let done = world.run(&["run", "--quiet", "--transcript", &transcript, TASK]).exits(0);
    assert_eq!(done.stdout, "It says that the tide turns at six.\n");
    assert_eq!(done.stderr, "");
}

#[test]
fn json_is_one_object_with_receipts_and_usage() {
    let (world, transcript) = world();
    let done = world.run(&["run", "--json", "--transcript", &transcript, TASK]).exits(0);
    let outcome = done.json();
    assert_eq!(outcome["status"], "completed");
    assert_eq!(outcome["output"], "It says that the tide turns at six.");
    assert_eq!(outcome["usage"]["steps"], 2);
    assert_eq!(outcome["usage"]["cached_tokens"], 140);
    let receipts = outcome["receipts"].as_array().unwrap();
    assert_eq!(receipts.len(), 2);
    assert_eq!(receipts[0]["receipt"]["ending"]["kind"], "completed");
    assert!(receipts[0]["receipt"]["fuel"].as_u64().unwrap() > 0);
    assert_eq!(receipts[0]["receipt"]["paths_read"], serde_json::json!(["/workspace/note.txt"]));
    assert_ne!(receipts[1]["receipt"]["ending"]["kind"], "completed");
    assert!(!done.stdout.contains("nobody may read this"));
}

#[test]
fn stream_json_is_one_event_a_line_and_ends_with_the_outcome() {
    let (world, transcript) = world();
    let args = ["run", "--output-format", "stream-json", "--transcript", &transcript, TASK];
    let done = world.run(&args).exits(0);
    let events: Vec<Value> =
        done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types.first(), Some(&"run_started"));
    assert_eq!(types.last(), Some(&"outcome"));
    assert_eq!(types.iter().filter(|kind| **kind == "tool_call_finished").count(), 2);
    let last = events.last().unwrap();
    assert_eq!(last["outcome"]["status"], "completed");
    for (number, event) in events.iter().enumerate().take(events.len() - 1) {
        assert_eq!(event["seq"], number, "{event}");
    }
}

#[test]
fn running_out_of_steps_is_partial() {
    let (world, _) = world();
    let transcript = world.other(
        "partial.yaml",
        br#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - expect: {no_tools: true}
        say: I got as far as the note.
"#,
    );
    let args = ["run", "--max-steps", "1", "--transcript", transcript.to_str().unwrap(), "look"];
    let done = world.run(&args).exits(3);
    assert_eq!(done.stdout, "I got as far as the note.\n");
}

#[test]
fn a_transcript_that_does_not_fit_fails_loudly() {
    let (world, transcript) = world();
    world
        .run(&["run", "--transcript", &transcript, "something else"])
        .exits(1)
        .complains("what does the note say");
}

#[test]
fn a_transcript_that_is_none_is_a_usage_error() {
    let (world, _) = world();
    let bad = world.other("bad.yaml", b"transcript: 1\nagents: 7\n");
    world.run(&["run", "--transcript", bad.to_str().unwrap(), TASK]).exits(2).complains("bad.yaml");
    world.run(&["run", "--transcript", "/nowhere.yaml", TASK]).exits(2).complains("/nowhere.yaml");
}

#[test]
fn runs_are_saved_and_receipts_shows_them() {
    let (world, transcript) = world();
    world.run(&["receipts"]).exits(0).complains("no runs");
    world.run(&["run", "-q", "--transcript", &transcript, TASK]).exits(0);
    let list = world.run(&["receipts", "--json"]).exits(0).json();
    let runs = list.as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let id = runs[0]["id"].as_str().unwrap();
    world.run(&["receipts"]).exits(0).says(id).says("completed");
    for name in [id, &id[..12], "latest"] {
        let done = world.run(&["receipts", name]).exits(0);
        assert!(done.stdout.contains("file_read"), "{}", done.stdout);
    }
    let run = world.run(&["receipts", id, "--json"]).exits(0).json();
    assert_eq!(run["outcome"]["receipts"].as_array().unwrap().len(), 2);
    world.run(&["receipts", "nonesuch"]).exits(2).complains("nonesuch");
    world.run(&["receipts", "../../etc/passwd"]).exits(2);
}

#[test]
fn a_recorded_run_plays_again() {
    let (world, transcript) = world();
    let model = format!("[models.main]\nkind = \"scripted\"\nmodel = \"{transcript}\"\n");
    world.home_file("belljar.toml", &model);
    let record = world.workspace().join("recorded.yaml");
    let record = record.to_str().unwrap();
    world.run(&["run", "--record", record, TASK]).exits(0);
    let done = world.run(&["run", "--transcript", record, TASK]).exits(0);
    assert_eq!(done.stdout, "It says that the tide turns at six.\n");
}

#[test]
fn without_a_model_four_lines_say_what_to_do() {
    let (world, _) = world();
    let done = world.run(&["run", TASK]).exits(5);
    assert_eq!(done.stdout, "");
    assert_eq!(done.stderr.lines().count(), 4, "{}", done.stderr);
    done.complains("belljar.toml").complains("belljar demo");
}

#[test]
fn attachments_go_where_they_are_wanted_and_nowhere_else() {
    let (world, _) = world();
    let transcript = world.other(
        "attach.yaml",
        br#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - calls: [{name: attach_file, arguments: {path: note.txt}}]
      - say: Here it is.
"#,
    );
    let transcript = transcript.to_str().unwrap();
    let to = world.workspace().join("out");
    let args =
        ["run", "--transcript", transcript, "--attachments", to.to_str().unwrap(), "attach it"];
    let done = world.run(&args).exits(0);
    let names: Vec<_> = std::fs::read_dir(&to).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "{names:?} {}", done.stderr);
    assert_eq!(std::fs::read_to_string(to.join(&names[0])).unwrap(), "the tide turns at six\n");
    done.complains("note.txt");
}

#[test]
fn a_call_that_fails_says_why_to_the_person_at_once_and_in_the_receipts() {
    let world = World::new();
    let turns = "[{calls: [{name: file_read, arguments: {path: gone.txt}}, {name: file_read, arguments: {path: ../../etc/passwd}}]}, {say: done}]";
    let transcript =
        format!("transcript: 1\nagents:\n  - agent: general-purpose\n    turns: {turns}\n");
    let transcript = world.other("failing.yaml", transcript.as_bytes());
    let transcript = transcript.to_str().unwrap();
    let done = world.run(&["run", "--transcript", transcript, "look"]).exits(0);
    done.complains("gone.txt").complains("leads above");
    let done = world.run(&["receipts", "latest"]).exits(0);
    done.says("failed").says("why").says("leads above");
}

#[test]
fn a_name_that_is_no_agents_is_told_before_a_missing_model() {
    let world = World::new();
    world.run(&["run", "-a", "nonesuch", "x"]).exits(2).complains("nonesuch");
}

#[test]
fn a_budget_that_runs_low_is_told_once() {
    let world = World::new();
    world.file("note.txt", "the tide turns at six\n");
    let read = "calls: [{name: file_read, arguments: {path: note.txt}}]";
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: general-purpose\n    turns:\n      - {{{read}, usage: \
         {{input: 90000, output: 10}}}}\n      - {{{read}, usage: {{input: 10, output: 1}}}}\n      \
         - {{say: six, usage: {{input: 10, output: 1}}}}\n"
    );
    let transcript = world.other("low.yaml", transcript.as_bytes());
    let transcript = transcript.to_str().unwrap();
    let args = ["run", "--transcript", transcript, "--max-tokens", "100000"];
    let stream = ["--output-format", "stream-json", "when"];
    let done = world.run(&[&args[..], &stream].concat()).exits(0);
    let warnings: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["type"] == "budget_warning")
        .collect();
    assert_eq!(warnings.len(), 1, "{}", done.stdout);
    assert_eq!((&warnings[0]["meter"], &warnings[0]["limit"]), (&json!("tokens"), &json!(100_000)));
    let done = world.run(&[&args[..], &["when"]].concat()).exits(0);
    done.complains("token budget: 90\u{a0}010 of 100\u{a0}000 used");
}
