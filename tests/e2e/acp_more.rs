//! `belljar acp`: images, thoughts, commands of belljar's own, and requests that are cancelled.

use serde_json::{Value, json};

use crate::acp::{agent, clerk, says, world};
use crate::kit::acp::Editor;

/// One pixel.
const GIF: &str = "R0lGODlhAQABAAAAACw=";

fn image() -> Value {
    json!({"type": "image", "mimeType": "image/gif", "data": GIF})
}

fn shown(session: &str, words: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": words}, image()]})
}

const SEES: &str = "      - expect: {images: [image/gif]}
        say: 'A pixel. '
      - expect: {images: [image/gif]}
        say: Still there.
";

#[test]
fn an_image_of_a_prompt_is_sent_to_the_model_also_after_the_agent_has_ended() {
    let world = world(SEES, "");
    let mut editor = clerk(&world);
    let session = editor.session();
    let result = editor.call("session/prompt", shown(&session, "what is it?"));
    assert_eq!(result["stopReason"], "end_turn");
    assert_eq!(editor.words(&session), "A pixel. ");
    assert!(editor.leave());
    says(&world, "      - expect: {images: [image/gif]}\n        say: Still there.\n");
    let mut editor = clerk(&world);
    let place = editor.place_of(&session);
    editor.call("session/load", place);
    let asked = editor.of(&session, "user_message_chunk");
    let kinds: Vec<_> = asked.iter().map(|chunk| chunk["content"]["type"].clone()).collect();
    assert_eq!(kinds, ["text", "image"], "it is shown again");
    assert_eq!(asked[1]["content"]["data"], GIF);
    assert_eq!(editor.say(&session, "sure?"), "end_turn");
    assert!(editor.words(&session).ends_with("Still there."), "{}", editor.words(&session));
}

/// INV-347.
#[test]
fn a_turn_whose_agent_was_killed_resumes_with_its_image() {
    let world = world("      - say: 'Looking. '\n        hang: true\n", "");
    let mut editor = clerk(&world);
    let session = editor.session();
    editor.begin("session/prompt", shown(&session, "what is it?"));
    editor.until(&session, |it| it["sessionUpdate"] == "agent_message_chunk");
    editor.kill();
    says(&world, "      - expect: {images: [image/gif]}\n        say: A pixel.\n");
    let mut editor = clerk(&world);
    let place = editor.place_of(&session);
    editor.call("session/load", place);
    editor.until(&session, |it| it["content"]["text"] == "A pixel.");
}

/// INV-346.
#[test]
fn a_model_that_is_said_to_read_text_alone_is_sent_no_image() {
    let settings = "[models.blind]\nkind = \"scripted\"\nmodel = \"script.yaml\"\nimages = false\n";
    let world = world("      - say: Here.\n", settings);
    let text = std::fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    let text = text.replace("main = \"local\"", "main = \"blind\"");
    world.home_file("belljar.toml", &text);
    let mut editor = clerk(&world);
    let session = editor.session();
    let refused = editor.refused("session/prompt", shown(&session, "what is it?"));
    assert_eq!(refused["code"], -32602, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("reads text alone"), "{refused}");
    assert_eq!(editor.say(&session, "and without?"), "end_turn");
    assert_eq!(editor.words(&session), "Here.");
}

#[test]
fn the_reasoning_of_a_model_is_apart_from_its_answer() {
    let world = world("      - think: It may be long.\n        say: Here.\n", "");
    let mut editor = clerk(&world);
    let session = editor.session();
    assert_eq!(editor.say(&session, "where?"), "end_turn");
    let thought = editor.of(&session, "agent_thought_chunk")[0].clone();
    assert_eq!(thought["content"]["text"], "It may be long.");
    assert_eq!(editor.words(&session), "Here.");
    let said = editor.of(&session, "agent_message_chunk")[0];
    assert_ne!(said["messageId"], thought["messageId"]);
}

#[test]
fn a_request_that_is_cancelled_ends_its_turn_and_no_other() {
    let world = world("      - say: 'Thinking. '\n        hang: true\n", "");
    agent(&world, "scribe", "tools: []");
    let script = "transcript: 1\nagents:\n  - agent: clerk\n    turns:\n      - say: 'Thinking. '\n        \
                  hang: true\n  - agent: scribe\n    turns:\n      - say: Written.\n";
    world.home_file("script.yaml", script);
    let mut editor = clerk(&world);
    let (hung, other) = (editor.session(), editor.session());
    editor.call("session/set_mode", json!({"sessionId": other, "modeId": "home/scribe"}));
    let id = editor.saying(&hung, "think");
    editor.until(&hung, |it| it["sessionUpdate"] == "agent_message_chunk");
    // Of no request that is there.
    editor.notify("$/cancel_request", json!({"requestId": 999_999}));
    assert_eq!(editor.say(&other, "write"), "end_turn");
    editor.notify("$/cancel_request", json!({"requestId": id}));
    assert_eq!(editor.result(id)["stopReason"], "cancelled");
    let listed = world.run(&["sessions", "list"]).exits(0);
    listed.says("think").says("write");
}

#[test]
fn a_summary_that_a_person_asks_for_stands_for_the_turns_so_far() {
    let world = world("      - say: x\n", "");
    let long = "All that there is to say about the tides of this coast. ".repeat(200);
    let script = format!(
        "transcript: 1\nagents:\n  - agent: clerk\n    turns:\n      - say: '{long}'\n      \
         - expect: {{last_user_contains: and now}}\n        say: Now.\n  - agent: compaction\n    \
         turns:\n      - say: They spoke of tides.\n"
    );
    world.home_file("script.yaml", &script);
    let mut editor = clerk(&world);
    let session = editor.session();
    editor.say(&session, "tell me");
    assert_eq!(editor.say(&session, "/compact"), "end_turn");
    let words = editor.words(&session);
    assert!(words.ends_with("A summary stands for 1 turns now; all of them are still stored."));
    assert_eq!(editor.say(&session, "and now?"), "end_turn");
    assert!(editor.words(&session).ends_with("Now."));
}

const TWO: &str = "transcript: 1
agents:
  - agent: clerk
    turns:
      - say: 'From the clerk. '
      - say: 'Again the clerk. '
  - agent: scribe
    turns:
      - say: 'From the scribe. '
";

#[test]
fn commands_of_a_chat_are_those_of_an_editor() {
    let world = world("      - say: x\n", "");
    agent(&world, "scribe", "tools: []");
    world.home_file("script.yaml", TWO);
    let mut editor = clerk(&world);
    let session = editor.session();
    let commands =
        editor.until(&session, |it| it["sessionUpdate"] == "available_commands_update").to_string();
    for name in ["agent", "compact", "budget"] {
        assert!(commands.contains(&format!("\"name\":\"{name}\"")), "{name}: {commands}");
    }
    editor.say(&session, "who?");
    assert_eq!(editor.say(&session, "/budget"), "end_turn");
    assert!(editor.words(&session).contains("| steps | 1 |"), "{}", editor.words(&session));
    // On the side: the conversation stays with whom it was.
    assert_eq!(editor.say(&session, "/agent scribe write"), "end_turn");
    let words = editor.words(&session);
    assert!(words.contains("From the scribe.") && words.contains("belljar receipts"), "{words}");
    editor.say(&session, "who?");
    assert!(editor.words(&session).ends_with("Again the clerk. "), "{}", editor.words(&session));
    assert_eq!(editor.say(&session, "/agent scribe"), "end_turn");
    let mode = editor.of(&session, "current_mode_update")[0];
    assert_eq!(mode["currentModeId"], "home/scribe");
    for wrong in ["/agent", "/agent nobody", "/agent nobody write", "/agent ../../x write"] {
        let prompt = json!([{"type": "text", "text": wrong}]);
        let refused =
            editor.refused("session/prompt", json!({"sessionId": session, "prompt": prompt}));
        assert_eq!(refused["code"], -32602, "{wrong}: {refused}");
    }
    let side = json!({"sessionId": session, "prompt": [
        {"type": "text", "text": "/agent clerk look"}, image(),
    ]});
    let refused = editor.refused("session/prompt", side);
    assert!(refused["message"].as_str().unwrap().contains("text alone"), "{refused}");
}

/// INV-304.
#[test]
fn an_agent_or_a_team_on_the_side_is_refused_where_a_turn_would_be() {
    let script = "transcript: 1\nagents:\n  - agent: clerk\n    turns:\n      - say: 'Thinking. '\n        \
                  hang: true\n  - agent: scribe\n    turns:\n      - say: Written.\n      - say: Written.\n";
    let world = world("", "[server]\ntenant_turns = 1\ntenant_queue = 0\n");
    agent(&world, "scribe", "tools: []");
    let team = "name: pair\ndescription: Writes.\nstages:\n  - agent: scribe\n";
    world.home_file("teams/pair.yaml", team);
    world.home_file("script.yaml", script);
    let mut editor = clerk(&world);
    let (busy, other) = (editor.session(), editor.session());
    let asked = editor.saying(&busy, "think");
    editor.until(&busy, |it| it["sessionUpdate"] == "agent_message_chunk");
    for side in ["/agent scribe write", "/team:pair write"] {
        let prompt = json!([{"type": "text", "text": side}]);
        let prompt = json!({"sessionId": other, "prompt": prompt});
        let refused = editor.refused("session/prompt", prompt);
        assert_eq!(refused["code"], -32600, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("too many turns"), "{refused}");
    }
    assert_eq!(editor.words(&other), "", "nothing ran");
    editor.notify("session/cancel", json!({"sessionId": busy}));
    assert_eq!(editor.result(asked)["stopReason"], "cancelled", "it was not harmed");
    for side in ["/agent scribe write", "/team:pair write"] {
        assert_eq!(editor.say(&other, side), "end_turn");
    }
    let words = editor.words(&other);
    assert!(words.contains("Written."), "{words}");
    assert_eq!(words.matches("belljar receipts").count(), 2, "{words}");
}

/// INV-307.
#[test]
fn an_editor_without_notices_is_told_in_words_what_becomes_of_its_servers() {
    let world = world("      - say: Here.\n", "");
    let mut editor = Editor::with(&world, &["--agent", "clerk"], &json!({}));
    let server = json!({"name": "x", "command": "/usr/bin/touch", "args": ["y"], "env": []});
    let mut place = editor.place();
    place["mcpServers"] = json!([server]);
    let new = editor.call("session/new", place);
    let session = new["sessionId"].as_str().unwrap().to_owned();
    editor.until(&session, |it| it["sessionUpdate"] == "agent_message_chunk");
    let words = editor.words(&session);
    assert!(words.contains("not used (1)") && words.contains("[mcp.NAME]"), "{words}");
    assert_eq!(editor.say(&session, "here?"), "end_turn");
    assert!(!world.workspace().join("y").exists());
}
