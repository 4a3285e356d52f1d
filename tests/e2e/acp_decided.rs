//! Deciding in an editor about changes, and only about those that it showed.

use crate::acp::{WRITES, agent, clerk, says, world};

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
