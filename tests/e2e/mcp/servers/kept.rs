//! The traces of a server's requests after the call: what a person said is stored nowhere, and what a model
//! wrote counts for a run that resumes too.

use std::io::{BufRead as _, BufReader};

use belljar_kit::peers::{HttpRequest, McpPeer};
use serde_json::{Value, json};

use super::Stage;
use super::asks::{SAMPLE, asking_of, form, replies, sample, written};
use crate::kit::acp::Editor;
use crate::kit::server::Server;
use crate::kit::until;

/// A word that a person says.
const OWN: &str = "canary-of-a-person-8c1d";

/// A number that a person says.
const NUMBER: &str = "4711300815";

/// A grant of the server's tools for the agent that is there by itself.
const GRANT: &str = "\n[grants.general-purpose]\nadd_tools = ['mcp__peer__echo']\n";

fn granted(stage: &Stage) {
    let config = stage.world.home().join("belljar.toml");
    let text = std::fs::read_to_string(config).unwrap();
    stage.world.home_file("belljar.toml", &format!("{text}{GRANT}"));
}

/// A script of what the agent says, and what a model writes for the server.
fn script(stage: &Stage, name: &str, turns: &Value, texts: &Value) -> String {
    let agents = json!([
        {"agent": "general-purpose", "turns": turns},
        {"agent": "mcp__peer", "turns": texts},
    ]);
    let script = json!({"transcript": 1, "agents": agents}).to_string();
    stage.world.other(name, script.as_bytes()).to_str().unwrap().to_owned()
}

/// The model of every agent plays this script.
fn plays(stage: &Stage, script: &str) {
    let config = stage.world.home().join("belljar.toml");
    let text = std::fs::read_to_string(config).unwrap();
    let model = format!("[models.local]\nkind = 'scripted'\nmodel = '{script}'\n");
    let text = format!("{text}\n{model}\n[roles]\nmain = 'local'\n");
    stage.world.home_file("belljar.toml", &text);
}

fn call() -> Value {
    json!([{"name": "mcp__peer__echo", "arguments": {"text": "a"}}])
}

/// The question that is open, once there is one with these words.
fn open(server: &Server, words: &str) -> Value {
    until(words, || server.get("/v1/questions", None).1.contains(words));
    let open: Value = serde_json::from_str(&server.get("/v1/questions", None).1).unwrap();
    open["questions"][0].clone()
}

/// Whether these words are somewhere in the files of the store.
fn is_stored(stage: &Stage, words: &str) -> bool {
    let files = std::fs::read_dir(stage.world.home().join("sessions/store")).into_iter().flatten();
    let mut bytes = files.map(|file| std::fs::read(file.unwrap().path()).unwrap_or_default());
    bytes.any(|bytes| bytes.windows(words.len()).any(|it| it == words.as_bytes()))
}

/// INV-366.
#[test]
fn a_persons_answers_to_a_form_are_stored_nowhere_and_that_they_answered_is() {
    let stage = Stage::with(McpPeer::start(), "elicitation = true\n");
    granted(&stage);
    let fields = json!({"age": {"type": "integer"}, "name": {"type": "string"}});
    stage.peer.calls(asking_of(vec![form("who are you?", fields)]));
    let turns = json!([{"calls": call()}, {"say": "Done."}]);
    plays(&stage, &script(&stage, "a.yaml", &turns, &json!([{"say": "A text."}])));
    let server = Server::start(&stage.world, &[]);
    let body = json!({"agent": "general-purpose", "text": "go", "wait": true}).to_string();
    let session = std::thread::scope(|scope| {
        let running = scope.spawn(|| server.post("/v1/chat", "", &body));
        let (mut session, mut shown) = (String::new(), Vec::new());
        let years = format!("{OWN} years");
        for (words, says) in [
            ("asks you", "Answer it"),
            ("age", years.as_str()),
            ("does not fit", NUMBER),
            ("name", OWN),
            ("this goes to", "Send it"),
        ] {
            let question = open(&server, words);
            session = question["session"].as_str().unwrap().to_owned();
            shown.push(question["question"].as_str().unwrap().to_owned());
            let path = format!("/v1/sessions/{session}/questions/{}", question["id"]);
            let answer = json!({"text": says}).to_string();
            assert_eq!(server.post(&path, "", &answer).0, 200);
        }
        assert!(shown[4].contains(OWN) && shown[4].contains(NUMBER), "shown whole: {shown:?}");
        let (status, body) = running.join().unwrap();
        assert!(status == 200 && body.contains("Done."), "{body}");
        session
    });
    let content = json!({"action": "accept", "content": {"age": 4_711_300_815_u64, "name": OWN}});
    assert_eq!(replies(&stage), [content], "the server has what was said");
    let export = stage.world.run(&["sessions", "export", &session]).exits(0);
    let whole = export.json();
    let answers = whole["answers"].as_array().unwrap_or_else(|| panic!("{whole}"));
    assert_eq!(answers.len(), 5, "{answers:?}");
    assert!(answers.iter().all(|it| it["arguments"]["private"] == true && it["actor"] != ""));
    let asked = whole["events"].as_array().unwrap().iter();
    assert_eq!(asked.filter(|it| it.to_string().contains("question_asked")).count(), 5);
    server.terminate().exits(0);
    // Not in a page of the file that nobody reads any more, either.
    assert!(is_stored(&stage, "question_asked"));
    for word in [OWN, NUMBER] {
        assert!(!is_stored(&stage, word), "{word}");
    }
    assert!([OWN, NUMBER].iter().all(|word| !export.stdout.contains(word)), "{}", export.stdout);
}

/// INV-366: the event of a private question is not all of it.
#[test]
fn an_editor_shows_whole_what_is_sent_to_a_server() {
    let stage = Stage::with(McpPeer::start(), "elicitation = true\n");
    granted(&stage);
    stage.peer.calls(asking_of(vec![form("who?", json!({"name": {"type": "string"}}))]));
    let turns = json!([{"calls": call()}, {"say": "Done."}]);
    let script = script(&stage, "a.yaml", &turns, &json!([{"say": "A text."}]));
    let forms = json!({"elicitation": {"form": {}}});
    let mut editor = Editor::with(&stage.world, &["--transcript", &script], &forms);
    let session = editor.session();
    let prompt = editor.saying(&session, "go");
    let mut read = Vec::new();
    for says in ["Answer it", OWN, "Send it"] {
        let question = editor.question();
        read.push(question["params"]["message"].as_str().unwrap().to_owned());
        editor.respond(&question, json!({"action": "accept", "content": {"answer": says}}));
    }
    editor.result(prompt);
    assert!(read[2].contains(&format!("`name` = \"{OWN}\"")), "{read:?}");
    assert_eq!(replies(&stage), [json!({"action": "accept", "content": {"name": OWN}})]);
    assert!(editor.leave());
    let export = stage.world.run(&["sessions", "export", &session]).exits(0);
    assert!(!export.stdout.contains(OWN), "{}", export.stdout);
}

/// INV-364.
#[cfg(unix)]
#[test]
fn a_run_that_resumes_after_a_kill_gives_no_server_its_tokens_again() {
    let stage = written(260, (0..12).map(|_| sample("a poem")).collect());
    granted(&stage);
    let hangs = json!([
        {"calls": call(), "usage": {"input": 10, "output": 1}},
        {"say": "Thinking", "hang": true},
    ]);
    let left = json!([
        {"calls": call(), "usage": {"input": 10, "output": 1}},
        {"say": "Done.", "usage": {"input": 10, "output": 1}},
    ]);
    let text = |n: u64| json!({"say": format!("text {n}"), "usage": {"input": 70, "output": 5}});
    let texts = json!([text(0), text(1), text(2)]);
    let hangs = script(&stage, "a.yaml", &hangs, &texts);
    let left = script(&stage, "b.yaml", &left, &texts);
    let run = ["run", "--output-format", "stream-json", "--transcript", &hangs, "go"];
    let mut child = stage.world.spawn(&run);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.contains("Thinking")));
    child.kill().unwrap();
    child.wait().unwrap();
    let before = replies(&stage);
    let written = before.iter().filter(|it| it.is_object()).count();
    // The server ends its call at once, so how many of twelve replies reach it is open.
    assert!((1..=3).contains(&written) && before.len() <= 12, "{before:?}");

    let sessions = stage.world.run(&["sessions", "list", "--json"]).exits(0).json();
    let id = sessions[0]["id"].as_str().unwrap();
    let chat = ["chat", "--transcript", &left, "--resume", id];
    let done = stage.world.run_with_stdin(&chat, "").exits(0).complains("resumes the turn");
    assert_eq!(done.stdout, "Done.\n");
    let after = replies(&stage).split_off(before.len());
    assert!(after.iter().all(|it| *it == json!(-1)), "nothing is left for it: {after:?}");
    let record = stage.world.run(&["receipts", id, "--json"]).exits(0).json();
    let usage = &record["outcome"]["usage"];
    // Three answers of the agent's own, and the texts from before, of which a reply may have been lost.
    let billed = usage["input_tokens"].as_u64().unwrap() - 3 * 10;
    let written = u64::try_from(written).unwrap();
    assert!(billed.is_multiple_of(70) && (written..=3).contains(&(billed / 70)), "{usage}");
    assert_eq!(usage["steps"], 3, "{usage}");
}

/// A text that was being written when the process died has taken what was held for it.
#[cfg(unix)]
#[test]
fn a_text_that_a_kill_cut_off_counts_for_the_run_that_resumes() {
    let (_, mut long) = sample("a poem");
    long["maxTokens"] = json!(4_000);
    let stage = written(260, vec![(SAMPLE, long)]);
    granted(&stage);
    let hangs = json!([{"say": "A poem", "hang": true}]);
    let hangs = script(&stage, "a.yaml", &json!([{"calls": call()}]), &hangs);
    let mut child = stage.world.spawn(&["run", "--transcript", &hangs, "go"]);
    until("a text is being written", || is_stored(&stage, "\"written\""));
    child.kill().unwrap();
    child.wait().unwrap();

    let turns = json!([{"calls": call()}, {"say": "Done."}]);
    let left = script(&stage, "b.yaml", &turns, &json!([{"say": "Another"}]));
    let sessions = stage.world.run(&["sessions", "list", "--json"]).exits(0).json();
    let id = sessions[0]["id"].as_str().unwrap();
    let chat = ["chat", "--transcript", &left, "--resume", id];
    let done = stage.world.run_with_stdin(&chat, "").exits(0);
    assert_eq!(done.stdout, "Done.\n");
    let asked: Vec<HttpRequest> = stage.peer.seen();
    assert_eq!(asked.iter().filter(|it| it.method() == "tools/call").count(), 2);
    assert_eq!(replies(&stage), [json!(-1)], "the second call has nothing left of them");
}
