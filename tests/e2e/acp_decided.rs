//! Deciding in an editor about changes, and only about those that it showed.

use serde_json::Value;

use crate::acp::{WRITES, agent, clerk, says, world};
use crate::kit::World;
use crate::kit::server::{Server, key};

#[test]
fn what_a_turn_of_another_entrance_changed_before_the_yes_is_not_applied() {
    let world = world(WRITES, "");
    let mut editor = clerk(&world);
    let session = editor.session();
    assert_eq!(editor.say(&session, "change it"), "end_turn");
    for (command, yes) in [("/apply", ".apply"), ("/discard", ".discard")] {
        let deciding = editor.saying(&session, command);
        let question = editor.question();
        let name = format!("unseen{}", yes.replace('.', "-"));
        let call = format!("{{name: file_write, arguments: {{path: {name}, content: x}}}}");
        says(&world, &format!("      - calls: [{call}]\n      - say: More.\n"));
        let mut other = clerk(&world);
        let place = other.place_of(&session);
        other.call("session/load", place);
        assert_eq!(other.say(&session, "more"), "end_turn");
        assert!(other.leave());
        editor.choose(&question, yes);
        let error = editor.answer(deciding)["error"]["message"].to_string();
        assert!(error.contains("gone on since"), "{command}: {error}");
        assert!(!world.workspace().join(name).exists());
        assert!(!world.workspace().join("new.txt").exists());
    }
    // Nothing is lost: what is there now is shown, and taken.
    let applying = editor.saying(&session, "/apply");
    let question = editor.question();
    assert!(question["params"]["toolCall"]["content"].to_string().contains("unseen-discard"));
    editor.choose(&question, ".apply");
    editor.result(applying);
    for name in ["unseen-apply", "unseen-discard", "new.txt"] {
        assert!(world.workspace().join(name).exists(), "{name}");
    }
}

#[test]
fn changes_that_an_editor_cannot_even_name_are_not_decided_about_at_once() {
    let moves = "      - calls:
          - {name: shell, arguments: {command: 'mv many moved'}}
          - {name: file_write, arguments: {path: new.txt, content: x}}
      - say: Done.
";
    let world = world(moves, "");
    agent(&world, "clerk", "tools: [shell, file_write]");
    for number in 0..1_200 {
        world.file(&format!("many/{number}.txt"), "x");
    }
    let mut editor = clerk(&world);
    let session = editor.session();
    assert_eq!(editor.say(&session, "move them"), "end_turn");
    for command in ["/apply", "/discard", "/apply moved"] {
        let deciding = editor.saying(&session, command);
        let error = editor.answer(deciding)["error"]["message"].to_string();
        assert!(error.contains("more than can be shown here"), "{command}: {error}");
        assert!(world.workspace().join("many/7.txt").exists());
    }
    let applying = editor.saying(&session, "/apply new.txt");
    let question = editor.question();
    editor.choose(&question, ".apply");
    editor.result(applying);
    assert!(world.workspace().join("new.txt").exists());
}

/// The lines of the audit log of what was decided about changes.
fn decisions(world: &World, key: &str) -> Vec<String> {
    let server = Server::start(world, &[]);
    let (status, said) = server.get("/v1/audit?limit=200", Some(key));
    assert_eq!(status, 200, "{said}");
    let audit: Value = serde_json::from_str(&said).unwrap();
    let actions = audit["entries"].as_array().unwrap().iter().map(|line| line["action"].as_str());
    let actions = actions.map(|action| action.unwrap().to_owned());
    let of_changes = ["changes_applied", "changes_discarded", "apply_undone"];
    actions.filter(|action| of_changes.contains(&action.as_str())).collect()
}

/// INV-413.
#[test]
fn a_decision_that_changed_nothing_leaves_no_line_in_the_audit_log() {
    let world = world(WRITES, "");
    let admin = key(&world, "local", "admin");
    let mut editor = clerk(&world);
    let session = editor.session();
    assert_eq!(editor.say(&session, "/undo"), "end_turn");
    assert_eq!(editor.say(&session, "change it"), "end_turn");
    let note = world.workspace().join("note.txt");
    // The person has the file otherwise by now, so that all that is named is left.
    std::fs::write(&note, "one\nthe person's\n").unwrap();
    let applying = editor.saying(&session, "/apply note.txt");
    let question = editor.question();
    editor.choose(&question, ".apply");
    editor.result(applying);
    assert!(editor.words(&session).contains("0 applied to /workspace.\nLeft: "));
    assert_eq!(decisions(&world, &admin), [""; 0]);
    // What is applied has its line, and an undo that is refused has none.
    let applying = editor.saying(&session, "/apply new.txt");
    let question = editor.question();
    editor.choose(&question, ".apply");
    editor.result(applying);
    let new = world.workspace().join("new.txt");
    std::fs::write(&new, "the person's\n").unwrap();
    for _ in 0..3 {
        assert_eq!(editor.say(&session, "/undo"), "end_turn");
        assert!(editor.words(&session).contains("Nothing is taken back"));
    }
    assert_eq!(decisions(&world, &admin), ["changes_applied"]);
    assert_eq!(std::fs::read_to_string(&new).unwrap(), "the person's\n");
    std::fs::write(&new, "new\n").unwrap();
    assert_eq!(editor.say(&session, "/undo"), "end_turn");
    assert!(!new.exists());
    assert_eq!(decisions(&world, &admin), ["apply_undone", "changes_applied"]);
    assert!(editor.leave());
}
