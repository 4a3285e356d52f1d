//! `belljar teams`: good and bad files, and a run with a scripted model.

use serde_json::Value;

use crate::kit::World;

const TEAM: &str = "name: report\ndescription: Reads, then writes.\nstages:\n  - agent: general-purpose\n  - { agent: summarizer, task: 'Sum up for {task}: {input}' }\n";

const TRANSCRIPT: &str = r#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - expect: {last_user_contains: what does the note say}
        calls: [{name: file_read, arguments: {path: note.txt}}]
        usage: {input: 100, output: 10}
      - say: The tide turns at six.
        usage: {input: 150, output: 12}
  - agent: summarizer
    turns:
      - expect: {last_user_contains: [Sum up for what does the note say, The tide turns at six.]}
        say: Six.
        usage: {input: 80, output: 2}
"#;

const TASK: &str = "what does the note say";

fn world() -> (World, String) {
    let world = World::new();
    world.file("note.txt", "the tide turns at six\n");
    world.home_file("teams/report.yaml", TEAM);
    let transcript = world.other("transcript.yaml", TRANSCRIPT.as_bytes());
    let transcript = transcript.to_str().unwrap().to_owned();
    (world, transcript)
}

#[test]
fn a_team_runs_and_its_receipts_are_kept_like_those_of_any_run() {
    let (world, transcript) = world();
    let args = ["teams", "run", "--transcript", &transcript, "report", TASK];
    let done = world.run(&args).exits(0);
    assert_eq!(done.stdout, "Six.\n");
    done.complains("stage 1 of 2: general-purpose")
        .complains("file_read")
        .complains("stage 2 of 2: summarizer")
        .complains("2 of 2 stages");
    world.run(&["receipts"]).exits(0).says("team home/report").says("completed");
    world.run(&["receipts", "latest"]).exits(0).says("general-purpose#0").says("file_read");
    let run = world.run(&["receipts", "latest", "--json"]).exits(0).json();
    assert_eq!(run["task"], TASK);
    assert_eq!(run["outcome"]["children"].as_array().unwrap().len(), 2);
}

#[test]
fn a_recorded_team_plays_again() {
    let (world, transcript) = world();
    let model = format!("[models.main]\nkind = \"scripted\"\nmodel = \"{transcript}\"\n");
    world.home_file("belljar.toml", &model);
    let record = world.workspace().join("recorded.yaml");
    let record = record.to_str().unwrap();
    world.run(&["teams", "run", "--record", record, "report", TASK]).exits(0);
    let done = world.run(&["teams", "run", "--transcript", record, "report", TASK]).exits(0);
    assert_eq!(done.stdout, "Six.\n");
}

#[test]
fn the_task_may_come_from_stdin_and_the_outcome_be_json() {
    let (world, transcript) = world();
    let args = ["teams", "run", "report", "--json", "--transcript", &transcript];
    let outcome = world.run_with_stdin(&args, TASK).exits(0).json();
    assert_eq!(outcome["status"], "completed");
    assert_eq!(outcome["output"], "Six.");
    let stages = outcome["stages"].as_array().unwrap();
    assert_eq!(stages[0]["agents"][0]["outcome"]["output"], "The tide turns at six.");
    assert_eq!(stages[1]["agents"][0]["path"], "report/summarizer#0");
    assert_eq!(outcome["total"]["steps"], 3);
    world.run_with_stdin(&args, " ").exits(2).complains("the task is empty");
}

#[test]
fn stream_json_is_one_numbered_stream_that_ends_with_the_outcome() {
    let (world, transcript) = world();
    let args = [
        "teams",
        "run",
        "--output-format",
        "stream-json",
        "--transcript",
        &transcript,
        "report",
        TASK,
    ];
    let done = world.run(&args).exits(0);
    let events: Vec<Value> =
        done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["type"], "team_started");
    assert_eq!(events.last().unwrap()["outcome"]["status"], "completed");
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], number, "{event}");
    }
}

#[test]
fn a_budget_of_the_whole_ends_the_team_early() {
    let (world, transcript) = world();
    let args = ["teams", "run", "--max-steps", "2", "--transcript", &transcript, "report", TASK];
    let done = world.run(&args).exits(3).complains("the output is partial");
    assert_eq!(done.stdout, "The tide turns at six.\n");
    done.complains("1 of 2 stages").complains("step budget of the team");
}

#[test]
fn a_team_with_a_blocked_or_unknown_agent_starts_nothing() {
    let (world, transcript) = world();
    world.home_file(
        "agents/w.md",
        "---\nname: w\ndescription: d\ntools: [file_write]\nvisibility: user-facing\n---\nbody\n",
    );
    world.home_file(
        "teams/blocked.yaml",
        &TEAM.replace("report", "blocked").replace("summarizer", "w"),
    );
    world.home_file("belljar.toml", "[agents]\noverlay = 'never'\n");
    world.home_file(
        "teams/gone.yaml",
        &TEAM.replace("report", "gone").replace("summarizer", "summarzer"),
    );
    let run = |name: &str| world.run(&["teams", "run", "--transcript", &transcript, name, TASK]);
    run("blocked").exits(4).complains("`home/w` is blocked").complains("`belljar grant w --asked`");
    run("gone").exits(2).complains("did you mean `summarizer`").complains("gone.yaml:5");
    run("reprot").exits(2).complains("did you mean `report`");
    world.run(&["receipts"]).exits(0).complains("no runs");
    world.run(&["teams", "list"]).exits(0).says("blocked").says("incomplete").says("ready");
}

#[test]
fn check_tells_what_is_wrong_with_its_place_and_one_bad_file_stops_no_other() {
    let (world, _) = world();
    world.run(&["teams", "check"]).exits(0).says("team `report`: ready");
    let bad = world.other("bad.yaml", TEAM.replace("agent: general", "agnet: general").as_bytes());
    let done = world.run(&["teams", "check", bad.to_str().unwrap()]).exits(2);
    done.complains("bad.yaml:4:5").complains("did you mean `agent`?");
    world.run(&["teams", "check", "nowhere.yaml"]).exits(2).complains("nowhere.yaml");
    world.run(&["teams", "check", "reprot"]).exits(2).complains("did you mean `report`");
    world.home_file("teams/broken.yaml", "name: [");
    let done = world.run(&["teams", "list"]).exits(2).says("report").complains("broken.yaml");
    assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);
    let rows = world.run(&["teams", "check", "--json"]).exits(2).json();
    assert_eq!(rows[0]["code"], "yaml");
}

#[test]
fn the_stock_team_is_there_and_complete() {
    let world = World::new();
    let teams = world.run(&["teams", "list", "--json"]).exits(0).json();
    assert_eq!(teams[0]["id"], "home/research-report");
    assert_eq!(teams[0]["problems"], serde_json::json!([]));
    world.home_file("teams/research-report.yaml", &TEAM.replace("report\n", "research-report\n"));
    let teams = world.run(&["teams", "list", "--json"]).exits(0).json();
    assert_eq!(teams.as_array().unwrap().len(), 1);
    assert_eq!(teams[0]["description"], "Reads, then writes.");
}

#[test]
fn without_a_model_a_team_says_what_to_do() {
    let (world, _) = world();
    world.run(&["teams", "run", "report", TASK]).exits(5).complains("belljar demo");
}

#[test]
fn hostile_text_of_a_team_reaches_the_terminal_escaped() {
    let world = World::new();
    world.home_file("teams/e.yaml", &TEAM.replace("Reads, then writes.", "\"a\\e[2Jb\\u202ec\""));
    for args in [&["teams", "list"][..], &["teams", "check"]] {
        let done = world.run(args);
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(!all.contains('\u{1b}') && !all.contains('\u{202e}'), "{all:?}");
    }
}
