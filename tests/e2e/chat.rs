//! `belljar chat`, scripted through stdin.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use crate::kit::{Done, World};

/// Two turns; the second needs the first.
const TWO: &str = r#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - say: "Let me look.\n"
        calls: [{name: file_read, arguments: {path: note.txt}}]
        usage: {input: 100, output: 10}
      - say: The tide turns at six.
        usage: {input: 120, output: 10}
      - expect: {last_user_contains: and then}
        say: "Then it \u001b[2Jebbs."
        usage: {input: 140, output: 10}
"#;

const THIRD: &str = r#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - expect: {last_user_contains: who asked}
        say: You did, twice before.
"#;

fn world(transcript: &str) -> (World, String) {
    let world = World::new();
    world.file("note.txt", "the tide turns at six\n");
    let transcript = world.other("transcript.yaml", transcript.as_bytes());
    let transcript = transcript.to_str().unwrap().to_owned();
    (world, transcript)
}

fn chat(world: &World, transcript: &str, more: &[&str], lines: &str) -> Done {
    let mut args = vec!["chat", "--transcript", transcript];
    args.extend(more);
    world.run_with_stdin(&args, lines)
}

#[test]
fn lines_of_stdin_are_turns_and_what_the_agent_says_goes_to_stdout() {
    let (world, transcript) = world(TWO);
    let done = chat(&world, &transcript, &[], "what does the note say\n\nand then\n").exits(0);
    assert_eq!(done.stdout, "Let me look.\nThe tide turns at six.\nThen it \\u{1b}[2Jebbs.\n");
    assert!(!done.stderr.contains('\u{1b}'), "{}", done.stderr);
    done.complains("general-purpose on").complains("✓ file_read").complains("--resume");
}

#[test]
fn quiet_leaves_only_what_the_agent_says() {
    let (world, transcript) = world(TWO);
    let done = chat(&world, &transcript, &["-q"], "what does the note say\n").exits(0);
    assert_eq!(done.stdout, "Let me look.\nThe tide turns at six.\n");
    assert_eq!(done.stderr, "");
}

/// A configured model that reads 1,000 tokens: two answers of 950 bytes are too many.
fn reading_little(world: &World) {
    let long = "x".repeat(950);
    let turns: String = (1..=4).map(|n| format!("      - say: \"answer {n} {long}\"\n")).collect();
    let script = format!(
        "transcript: 1\nagents:\n  - agent: general-purpose\n    turns:\n{turns}  - agent: compaction\n    turns: [{{say: they spoke}}, {{say: they spoke again}}]\n"
    );
    world.home_file("model.yaml", &script);
    let settings =
        "[models.main]\nkind = 'scripted'\nmodel = 'model.yaml'\ncontext_tokens = 1000\n";
    world.home_file("belljar.toml", settings);
}

#[test]
fn a_summary_takes_the_place_of_turns_that_are_too_large_and_a_person_sees_it() {
    let world = World::new();
    reading_little(&world);
    let done = world.run_with_stdin(&["chat"], "one\ntwo\nthree\n/compact\n/compact\n").exits(1);
    assert_eq!(done.stdout.matches("answer").count(), 3, "{}", done.stdout);
    let done = done.complains("a summary stands for 2 earlier turns (history: about 6");
    let done = done.complains("a summary stands for 1 earlier turns");
    let done = done.complains("the conversation stays as it was: no turn is left to summarise");
    let id = done.stderr.split("--resume ").nth(1).unwrap().split('`').next().unwrap();
    let shown = world.run(&["sessions", "export", id]).exits(0);
    assert!(shown.stdout.contains("answer 1") && shown.stdout.contains("they spoke again"));
    let whole = world.run_with_stdin(&["chat", "--resume", "--whole-history"], "four\n").exits(0);
    assert!(!whole.stderr.contains("summary"), "{}", whole.stderr);
}

#[test]
fn a_chat_is_resumed_where_it_was_left() {
    let (world, transcript) = world(TWO);
    chat(&world, &transcript, &[], "what does the note say\nand then\n").exits(0);
    let third = world.other("third.yaml", THIRD.as_bytes());
    let third = third.to_str().unwrap();
    let done = chat(&world, third, &["--resume"], "who asked\n/budget\n").exits(0);
    assert!(done.stdout.starts_with("You did, twice before.\n"), "{}", done.stdout);
    let steps = done.stdout.lines().find(|line| line.trim_start().starts_with("steps")).unwrap();
    assert_eq!(steps.split_whitespace().nth(1), Some("4"), "all sittings count: {steps}");
    let done = done.complains("what does the note say").complains("The tide turns at six.");
    let line = done.stderr.lines().find(|line| line.starts_with("session ")).unwrap();
    let id = line.split_whitespace().nth(1).unwrap();
    let third = chat(&world, third, &["--resume", id], "who asked\n").exits(0);
    assert_eq!(third.stdout, "You did, twice before.\n");
    third.complains("You did, twice before.");
}

#[cfg(unix)]
#[test]
fn the_store_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let (world, transcript) = world(TWO);
    chat(&world, &transcript, &[], "what does the note say\n").exits(0);
    let mode = std::fs::metadata(world.home().join("sessions/store/belljar.db"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_session_that_is_not_there_is_a_usage_error() {
    let (world, transcript) = world(TWO);
    chat(&world, &transcript, &["--resume"], "").exits(2).complains("no session of this workspace");
    chat(&world, &transcript, &["--resume", "2020\u{1b}"], "").exits(2).complains("2020\\u{1b}");
}

#[test]
fn a_session_of_another_workspace_is_not_gone_on_with_here() {
    let (world, transcript) = world(TWO);
    let done = chat(&world, &transcript, &[], "what does the note say\n").exits(0);
    let last = done.stderr.lines().last().unwrap();
    let id = last.split_whitespace().find(|word| word.contains("Z-")).unwrap();
    let id = id.trim_matches('`');
    let elsewhere = world.home();
    let args = ["--workspace", elsewhere.to_str().unwrap(), "--resume", id];
    chat(&world, &transcript, &args, "and then\n").exits(2).complains("--workspace");
}

#[test]
fn commands_answer_without_the_model() {
    let (world, transcript) = world("transcript: 1\nagents: []\n");
    let done = chat(
        &world,
        &transcript,
        &[],
        "/help\n/agents\n/teams\n/skills\n/tools\n/budget\n/cancel\n/quit\nx\n",
    );
    let done = done.exits(0);
    for text in
        ["/agent [-b|-k] NAME TASK", "general-purpose", "file_read", "steps", "nothing runs"]
    {
        assert!(done.stdout.contains(text), "no `{text}` in {}", done.stdout);
    }
    assert!(!done.stderr.contains("--resume"), "nothing was said: {}", done.stderr);
}

#[test]
fn a_wrong_command_names_the_likely_one_and_the_chat_goes_on() {
    let (world, transcript) = world(TWO);
    let lines = "/agnets\nwhat does the note say\n";
    let done = chat(&world, &transcript, &[], lines).exits(2);
    assert!(done.stdout.contains("The tide turns at six."), "{}", done.stdout);
    done.complains("no command `/agnets`; did you mean `/agents`?");
}

const ASIDE: &str = r#"
transcript: 1
agents:
  - agent: code-analyst
    turns:
      - expect: {last_user_contains: find the limit}
        say: It is in limits.rs.
  - agent: general-purpose
    turns:
      - expect: {last_user_contains: hello}
        say: Good day.
"#;

#[test]
fn an_agent_runs_beside_the_conversation() {
    for lines in [
        "/agent code-analyst find the limit\nhello\n",
        "/agent  -b  code-analyst  find the limit\nhello\n/cancel all\n",
    ] {
        let (world, transcript) = world(ASIDE);
        let done = chat(&world, &transcript, &[], lines);
        assert!(done.stdout.contains("Good day."), "{}{}", done.stdout, done.stderr);
        if lines.contains("-b") {
            done.complains("number 1 (`code-analyst`) has ended");
        } else {
            let done = done.exits(0);
            assert_eq!(done.stdout, "It is in limits.rs.\nGood day.\n");
        }
    }
    let (world, transcript) = world(ASIDE);
    let done = chat(&world, &transcript, &[], "/agent code-analyst\n/agent nobody x\n").exits(2);
    done.complains("`/agent [-b|-k] NAME TASK`").complains("nobody");
}

#[test]
fn without_a_model_four_lines_say_what_to_do() {
    let (world, _) = world(TWO);
    let done = world.run_with_stdin(&["chat"], "hello\n").exits(5);
    assert_eq!(done.stderr.lines().count(), 4, "{}", done.stderr);
    assert!(!world.home().join("sessions/store/belljar.db").exists());
}

#[test]
fn a_store_that_cannot_be_used_is_refused_and_left_alone() {
    let (world, transcript) = world(TWO);
    let path = world.home_file("sessions/store/belljar.db", "these are my notes, not a database");
    let done = chat(&world, &transcript, &[], "what does the note say\n").exits(1);
    assert_eq!(done.stdout, "");
    done.complains("belljar.db").complains("move it away");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "these are my notes, not a database");
}

#[test]
fn the_budget_of_the_session_ends_a_turn_and_not_the_chat() {
    let (world, transcript) = world(TWO);
    let lines = "what does the note say\nand then\n/budget\n";
    let done = chat(&world, &transcript, &["--max-steps", "2"], lines).exits(3);
    assert!(done.stdout.contains("each turn at most"), "{}", done.stdout);
    done.complains("budget of the session is used up");
}

#[test]
fn a_team_runs_beside_the_conversation_and_below_its_budget() {
    let transcript = r#"
transcript: 1
agents:
  - agent: code-analyst
    turns:
      - say: Found in limits.rs.
  - agent: summarizer
    turns:
      - expect: {last_user_contains: Found in limits.rs.}
        say: "In short: limits.rs."
"#;
    let team = "name: pair\ndescription: Looks, then sums up.\nstages:\n  - agent: code-analyst\n  - agent: summarizer\n";
    let (world, transcript) = world(transcript);
    world.home_file("teams/pair.yaml", team);
    let done = chat(&world, &transcript, &[], "/team pair find the limit\n/budget\n").exits(0);
    assert!(done.stdout.starts_with("In short: limits.rs.\n"), "{}", done.stdout);
    let steps = done.stdout.lines().find(|line| line.trim_start().starts_with("steps")).unwrap();
    assert_eq!(steps.split_whitespace().nth(1), Some("2"), "{steps}");
    world.run(&["receipts"]).exits(0).says("team home/pair");
    let done = chat(&world, &transcript, &["--max-steps", "1"], "/team pair find the limit\n");
    done.exits(3).complains("budget of the session is used up");
    chat(&world, &transcript, &[], "/team pair\n/team nosuch x\n").exits(2).complains("nosuch");
}

#[test]
fn a_conclusion_joins_the_conversation_only_when_that_is_said() {
    let told = r#"
transcript: 1
agents:
  - agent: code-analyst
    turns:
      - say: It is in limits.rs.
      - say: It is in limits.rs.
  - agent: general-purpose
    turns:
      - say: I know of nothing.
      - say: In limits.rs, I hear.
"#;
    let (world, transcript) = world(told);
    let lines = "/agent code-analyst look\nwhat is known\n/agent -k code-analyst look\nand now\n";
    let done = chat(&world, &transcript, &["-q"], lines).exits(0);
    assert!(done.stdout.ends_with("In limits.rs, I hear.\n"), "{}", done.stdout);
    let none = world.other("none.yaml", b"transcript: 1\nagents: []\n");
    let done = chat(&world, none.to_str().unwrap(), &["--resume"], "").exits(0);
    done.complains("(3 turns)").complains("`code-analyst`: look");
}

const HANGING: &str = "
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - say: \"Thinking\\n\"
        hang: true
      - say: Still here.
";

#[cfg(unix)]
fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

/// A chat with an open stdin, its turn hanging.
#[cfg(unix)]
fn hanging(world: &World, transcript: &str) -> (Child, impl Iterator<Item = String> + use<>) {
    let args = ["chat", "--transcript", transcript];
    let mut child = world.command(&args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"look\n").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("Thinking"));
    (child, lines)
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_turn_and_the_chat_goes_on() {
    let (world, transcript) = world(HANGING);
    let (mut child, mut lines) = hanging(&world, &transcript);
    interrupt(&child);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"are you there\n").unwrap();
    assert_eq!(lines.next().as_deref(), Some("Still here."));
    drop(stdin);
    let done = Done::of(child.wait_with_output().unwrap());
    done.exits(130).complains("what was said until then is kept");
}

#[cfg(unix)]
#[test]
fn a_chat_that_is_killed_goes_on_with_its_turn() {
    let (world, transcript) = world(HANGING);
    let (mut child, _lines) = hanging(&world, &transcript);
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(&transcript, HANGING.replace("hang: true", "stop: end-turn")).unwrap();
    let done = chat(&world, &transcript, &["--resume"], "").exits(0);
    done.complains("resumes the turn that the program ended in: look").says("Thinking");
    // It is over now, and is not run again.
    let done = chat(&world, &transcript, &["--resume"], "").exits(0);
    done.complains("you:   look").complains("agent: Thinking");
}

#[test]
fn a_line_that_is_not_utf8_is_named_and_the_chat_goes_on() {
    let (world, transcript) = world(TWO);
    let mut child = world
        .command(&["chat", "--transcript", &transcript])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = b"what does the note say\n\xff\xfe\nand then\n";
    child.stdin.take().unwrap().write_all(lines).unwrap();
    let done = Done::of(child.wait_with_output().unwrap()).exits(2);
    done.says("The tide turns at six.\n")
        .says("ebbs.\n")
        .complains("line 2 of stdin is not valid UTF-8");
}
