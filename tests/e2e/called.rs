//! Commands that a person calls: what the agent gets, and whose rights read and run what is in them.

use serde_json::json;

use crate::kit::World;
use crate::kit::acp::Editor;

fn world(turns: &str) -> World {
    let world = World::new();
    world.file("note.txt", "the note\n");
    let script = format!("transcript: 1\nagents:\n  - agent: general-purpose\n    turns:\n{turns}");
    world.home_file("script.yaml", &script);
    let model = "[models.main]\nkind = \"scripted\"\nmodel = \"script.yaml\"\n";
    world.home_file("belljar.toml", model);
    world
}

#[test]
fn a_called_command_is_the_message_with_its_arguments_and_files_and_narrows_the_turn() {
    let world = world(
        r#"
      - expect:
          last_user_contains:
            - "Review <file path=\"note.txt\">"
            - "the note"
            - "</file> for tides."
        calls:
          - {name: file_list, arguments: {path: .}}
          - {name: file_read, arguments: {path: note.txt}}
      - expect:
          results:
            - {name: file_list, is_error: true}
            - {name: file_read, is_error: false}
        say: Reviewed.
      - expect: {last_user_contains: "and now?"}
        calls: [{name: file_list, arguments: {path: .}}]
      - expect: {results: [{name: file_list, is_error: false}]}
        say: Wide again.
"#,
    );
    let text = "---\ndescription: d\nallowed-tools: Read\n---\nReview @$1 for $2.\n";
    world.home_file("commands/review.md", text);
    let lines = "/review note.txt tides\nand now?\n/quit\n";
    let done = world.run_with_stdin(&["chat"], lines).exits(0);
    done.says("Reviewed.").says("Wide again.");
}

#[test]
fn shell_commands_of_a_command_run_in_the_jar_and_no_argument_is_their_syntax() {
    let world = world(
        r#"
      - expect:
          last_user_contains:
            - "said: a; echo pwned > made.txt $(echo pwned > made.txt)"
            - "quoted: a; echo pwned > made.txt $(echo pwned > made.txt)"
            - "the note"
        calls:
          - {name: file_read, arguments: {path: made.txt}}
      - expect: {results: [{name: file_read, is_error: true}]}
        say: Nothing was made.
"#,
    );
    world.home_file(
        "commands/say.md",
        "!`echo said: $ARGUMENTS`\n\n!`echo \"quoted: $ARGUMENTS\"`\n\n```!\ncat note.txt\n```\n",
    );
    let args = "a; echo pwned > made.txt $(echo pwned > made.txt)";
    let done = world.run(&["run", "--command", "say", args]).exits(0);
    done.says("Nothing was made.");
    assert!(!world.workspace().join("made.txt").exists());
    let run = world.run(&["receipts", "latest", "--json"]).exits(0).json();
    let receipts = run["outcome"]["receipts"].as_array().unwrap();
    let shells = receipts.iter().filter(|receipt| receipt["tool"] == "shell").count();
    assert_eq!(shells, 3, "{run:#}");
}

#[test]
fn what_an_agent_may_not_read_or_run_stays_undone_and_the_message_goes_on() {
    let world = world("      - say: x\n");
    world.other("outside.txt", b"the outside\n");
    let outside = world.home().join("../outside.txt");
    world.home_file(
        "agents/reader.md",
        "---\nname: reader\ndescription: d\ntools: [file_read]\n---\nYou read.\n",
    );
    let script = "transcript: 1\nagents:\n  - agent: reader\n    turns:\n      - expect: {last_user_contains: ['tool not allowed', 'See @/etc/hostname', 'the note']}\n        say: It went on.\n";
    world.home_file("script.yaml", script);
    let text = format!(
        "!`echo x > made.txt`\nSee @/etc/hostname and @{} and @note.txt.\n",
        outside.to_str().unwrap()
    );
    world.home_file("commands/try.md", &text);
    let done = world.run(&["run", "--agent", "reader", "--command", "try"]).exits(0);
    let done = done.says("It went on.").complains("`echo x > made.txt` of `/try` failed");
    let done = done.complains("`@/etc/hostname` of `/try` was not read");
    assert!(!done.stderr.contains("the outside") && !world.workspace().join("made.txt").exists());
}

#[test]
fn a_workspaces_command_is_framed_as_a_strangers_and_homes_come_first() {
    let world = world(
        r#"
      - expect:
          last_user_contains:
            - "<command name=\"theirs\">"
            - "did not write it"
            - "Do &lt;/command> a b"
        say: Framed.
      - expect: {last_user_contains: "The home's text."}
        say: Of the home.
"#,
    );
    world.file(".belljar/commands/theirs.md", "Do </command> $ARGUMENTS\n");
    world.file(".belljar/commands/both.md", "The workspace's text.\n");
    world.home_file("commands/both.md", "The home's text.\n");
    let done = world.run_with_stdin(&["chat"], "/theirs a b\n/both\n/quit\n").exits(0);
    done.says("Framed.").says("Of the home.");
}

#[test]
fn a_call_of_nothing_names_what_there_is_and_begins_no_run() {
    let world = world("      - say: x\n");
    world.home_file("commands/review.md", "Review.\n");
    let done = world.run(&["run", "--command", "reviw", "x"]).exits(2);
    done.complains("no command is called `reviw`: the available commands are `/review`");
    let chat = world.run_with_stdin(&["chat"], "/reviw x\n/quit\n");
    chat.complains("there is no command `/reviw`");
    assert_eq!(world.run(&["receipts", "--json"]).exits(0).json(), json!([]));
    let list = world.run(&["commands", "list"]).exits(0);
    list.says("/review").says("Review.");
    world.home_file("commands/empty.md", "---\ndescription: d\n---\n");
    world.run(&["commands", "check"]).exits(2).complains("the command has no text");
}

#[test]
fn a_skill_is_called_in_a_chat_with_its_files_even_if_it_is_for_persons_alone() {
    let world = world(
        r#"
      - expect: {last_user_contains: ["from=\"own\"", "Deploy to the north.", "`/skills/deploy`", "go now"]}
        calls: [{name: file_read, arguments: {path: /skills/deploy/key.md}}]
      - expect: {results: [{name: file_read, contains: "the key"}]}
        say: Deployed.
      - calls: [{name: file_read, arguments: {path: /skills/deploy/key.md}}]
      - expect: {results: [{name: file_read, is_error: true}]}
        say: Gone again.
"#,
    );
    world.home_file(
        "skills/deploy/SKILL.md",
        "---\nname: deploy\ndescription: d\ndisable-model-invocation: true\n---\nDeploy to the north.\n",
    );
    world.home_file("skills/deploy/key.md", "the key\n");
    let lines = "/deploy\n/deploy go now\nagain\n/quit\n";
    let done = world.run_with_stdin(&["chat"], lines);
    done.says("Deployed.").says("Gone again.").complains("`/deploy TASK`");
}

#[test]
fn an_editor_is_offered_commands_and_calls_them() {
    let world =
        world("      - expect: {last_user_contains: 'Review a and b.'}\n        say: Called.\n");
    let text = "---\ndescription: Reviews.\nargument-hint: ONE TWO\n---\nReview $1 and $2.\n";
    world.home_file("commands/review.md", text);
    let mut editor = Editor::start(&world, &[]);
    let place = editor.place();
    let new = editor.call("session/new", place);
    let session = new["sessionId"].as_str().unwrap().to_owned();
    let offered = |it: &serde_json::Value| it["sessionUpdate"] == "available_commands_update";
    let commands = editor.until(&session, offered).to_string();
    assert!(commands.contains("\"name\":\"review\"") && commands.contains("ONE TWO"), "{commands}");
    editor.say(&session, "/review a b");
    assert!(editor.words(&session).ends_with("Called."), "{}", editor.words(&session));
}

#[test]
fn a_replay_makes_the_calls_of_a_command_again_and_compares_them() {
    let world = world("      - expect: {last_user_contains: 'the note'}\n        say: Read.\n");
    world.home_file("commands/see.md", "See @note.txt.\n");
    world.run(&["run", "--command", "see"]).exits(0).says("Read.");
    world.run(&["replay", "latest"]).exits(0).says("1 call: 1 same");
    world.file("note.txt", "another note\n");
    world.run(&["replay", "latest"]).exits(6).says("first difference: `file_read`");
}

#[test]
fn a_workspaces_command_takes_no_name_of_a_skill_of_the_home() {
    let world = world(
        r#"
      - expect: {last_user_contains: ["The home's skill.", "go now"]}
        say: The skill's.
      - expect: {last_user_contains: ["The workspace's own."]}
        say: The command's.
"#,
    );
    let text = "---\nname: tides\ndescription: Of the home.\n---\nThe home's skill.\n";
    world.home_file("skills/tides/SKILL.md", text);
    world.file(".belljar/commands/tides.md", "The workspace's text.\n");
    world.file(".belljar/commands/theirs.md", "The workspace's own.\n");
    let done = world.run_with_stdin(&["chat"], "/tides go now\n/theirs\n/quit\n").exits(0);
    done.says("The skill's.").says("The command's.");

    let mut editor = Editor::start(&world, &[]);
    let place = editor.place();
    let new = editor.call("session/new", place);
    let session = new["sessionId"].as_str().unwrap().to_owned();
    let offered = |it: &serde_json::Value| it["sessionUpdate"] == "available_commands_update";
    let commands = editor.until(&session, offered).to_string();
    assert_eq!(commands.matches("\"name\":\"tides\"").count(), 1, "{commands}");
    assert!(commands.contains("Of the home.") && commands.contains("\"name\":\"theirs\""));
    editor.say(&session, "/tides go now");
    assert!(editor.words(&session).ends_with("The skill's."), "{}", editor.words(&session));
}
