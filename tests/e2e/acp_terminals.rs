//! `belljar acp`: output as a terminal of the editor's, in which nothing runs.

use serde_json::{Value, json};

use crate::acp::{agent, world};
use crate::kit::World;
use crate::kit::acp::Editor;

const RUNS: &str =
    "      - calls: [{name: shell, arguments: {command: 'echo tide > tide.txt; cat tide.txt'}}]
      - calls: [{name: shell, arguments: {command: 'printf \"\\033]52;c;eHg=\\007\"; exit 3'}}]
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: Done.
";

fn running() -> World {
    let world = world(RUNS, "");
    agent(&world, "clerk", "tools: [shell, file_read]");
    world
}

/// Says something to an editor with these capabilities; gives it and the session.
fn said(world: &World, capabilities: &Value) -> (Editor, String) {
    let mut editor = Editor::with(world, &["--agent", "clerk"], capabilities);
    let session = editor.session();
    assert_eq!(editor.say(&session, "run it"), "end_turn");
    (editor, session)
}

/// The words of all updates of calls on a terminal, in this entry of their `_meta`.
fn told<'a>(editor: &'a Editor, session: &str, entry: &str) -> Vec<&'a Value> {
    let all = ["tool_call", "tool_call_update"].into_iter();
    let all = all.flat_map(|kind| editor.of(session, kind));
    all.filter_map(|update| update["_meta"].get(entry)).collect()
}

/// INV-378.
#[test]
fn output_is_a_terminal_where_the_editor_shows_such() {
    let world = running();
    let (mut editor, session) = said(&world, &json!({"_meta": {"terminal_output": true}}));
    let check = |editor: &Editor| {
        let calls = editor.of(&session, "tool_call");
        let content = |at: usize| calls[at]["content"].clone();
        let infos = told(editor, &session, "terminal_info");
        assert_eq!(infos.len(), 2, "a file that is read is none: {calls:#?}");
        for (at, info) in infos.iter().enumerate() {
            let terminal = json!([{"type": "terminal", "terminalId": info["terminal_id"]}]);
            assert_eq!(content(at), terminal);
        }
        let outputs = told(editor, &session, "terminal_output");
        assert!(outputs[0]["data"].as_str().unwrap().starts_with("tide\n"), "{outputs:#?}");
        assert_eq!(outputs[0]["terminal_id"], infos[0]["terminal_id"]);
        assert!(!outputs[1]["data"].as_str().unwrap().contains('\u{1b}'), "{outputs:#?}");
        let exits = told(editor, &session, "terminal_exit");
        let codes: Vec<_> = exits.iter().map(|exit| exit["exit_code"].clone()).collect();
        assert_eq!(codes, [0, 3], "{exits:#?}");
    };
    check(&editor);
    assert!(!world.workspace().join("tide.txt").exists(), "it was written to the overlay");
    // It is told again as it was.
    editor.updates.clear();
    let place = editor.place_of(&session);
    editor.call("session/load", place);
    check(&editor);
}

#[test]
fn output_is_text_for_an_editor_that_says_nothing_of_terminals() {
    let world = running();
    let without =
        [json!({}), json!({"terminal": true}), json!({"_meta": {"terminal_output": false}})];
    for capabilities in without {
        let (editor, session) = said(&world, &capabilities);
        for entry in ["terminal_info", "terminal_output", "terminal_exit"] {
            assert!(told(&editor, &session, entry).is_empty(), "{capabilities}");
        }
        let all: Vec<String> =
            editor.of(&session, "tool_call_update").iter().map(|it| it.to_string()).collect();
        assert!(all.iter().any(|it| it.contains("tide")), "{all:#?}");
        assert!(!all.iter().any(|it| it.contains("terminalId")), "{all:#?}");
    }
}

/// INV-379.
#[test]
fn no_terminal_and_no_file_is_ever_asked_of_an_editor_that_offers_all_of_it() {
    let world = running();
    let everything = json!({
        "terminal": true,
        "fs": {"readTextFile": true, "writeTextFile": true},
        "_meta": {"terminal_output": true, "terminal-auth": true},
    });
    let (editor, session) = said(&world, &everything);
    assert_eq!(editor.asked_for(), [""; 0]);
    assert_eq!(told(&editor, &session, "terminal_output").len(), 2);
    assert!(!world.workspace().join("tide.txt").exists(), "it ran in its jar");
}
