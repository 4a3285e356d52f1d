//! Questions that an editor cancels, or cannot put: no yes, and no blank answer either.

use serde_json::{Value, json};

use crate::acp::{clerk, says, world};
use crate::kit::acp::Editor;

const ASKS: &str = "[grants.clerk]\nadd_tools = { file_write = 'ask', clarify = 'allow' }\n";

const WRITES: &str = "      - calls: [{name: file_write, arguments: {path: made.txt, content: x}}]
      - expect: {results: [{name: file_write, is_error: true}]}
        say: Not written.
";

fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

fn fails(editor: &mut Editor, question: &Value) {
    let error = json!({"code": -32603, "message": "the dialog is gone"});
    let line = json!({"jsonrpc": "2.0", "id": question["id"], "error": error});
    editor.line(&line.to_string());
}

/// INV-390.
#[test]
fn a_permission_that_an_editor_cancels_or_cannot_ask_for_is_a_refusal_with_its_reason() {
    let again = "      - calls: [{name: file_write, arguments: {path: made.txt, content: x}}]
      - say: Written.
";
    let world = world(&format!("{WRITES}{WRITES}{again}"), ASKS);
    let mut editor = clerk(&world);
    let session = editor.session();
    for fail in [false, true] {
        let prompt = editor.saying(&session, "write");
        let question = editor.question();
        match fail {
            true => fails(&mut editor, &question),
            false => editor.respond(&question, cancelled()),
        }
        assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
        assert!(editor.words(&session).ends_with("Not written."));
        assert!(!world.workspace().join("made.txt").exists());
    }
    let export = world.run(&["sessions", "export", &session]).exits(0).json();
    let receipts = export["receipts"].as_array().unwrap();
    let why: Vec<String> = receipts.iter().map(|it| it["body"]["error"].to_string()).collect();
    assert_eq!(why.len(), 2, "{why:?}");
    assert!(why.iter().all(|why| why.contains("the question was cancelled")), "{why:?}");
    let words: Vec<_> =
        export["answers"].as_array().unwrap().iter().map(|it| &it["answer"]).collect();
    assert_eq!(words, ["cancelled", "cancelled"]);
    // The session is as good as before.
    let prompt = editor.saying(&session, "write");
    let question = editor.question();
    editor.choose(&question, ".yes");
    editor.result(prompt);
    assert!(editor.words(&session).ends_with("Written."));
}

/// INV-390.
#[test]
fn a_question_that_an_editor_cancels_or_cannot_put_is_not_answered_blank() {
    let turns =
        "      - calls: [{name: clarify, arguments: {question: 'Which?', options: [red, blue]}}]
      - expect: {results: [{name: clarify, contains: the question was cancelled, is_error: true}]}
        say: I take red.
";
    let world = world(turns, "");
    let forms = json!({"elicitation": {"form": {}}});
    for (capabilities, answer) in [
        (json!({}), Some(cancelled())),
        (json!({}), None),
        (forms.clone(), Some(json!({"action": "cancel"}))),
        (forms, None),
    ] {
        let mut editor = Editor::with(&world, &["--agent", "clerk"], &capabilities);
        let session = editor.session();
        let prompt = editor.saying(&session, "paint");
        let question = editor.question();
        match answer {
            Some(answer) => editor.respond(&question, answer),
            None => fails(&mut editor, &question),
        }
        editor.result(prompt);
        assert_eq!(editor.words(&session), "I take red.");
    }
    // Nor is one in words, where the editor shows no forms.
    says(&world, &turns.replace(", options: [red, blue]", ""));
    let mut editor = clerk(&world);
    let session = editor.session();
    assert_eq!(editor.say(&session, "paint"), "end_turn");
    assert_eq!(editor.words(&session), "I take red.");
}
