//! `belljar acp` over stdin and stdout, as an editor meets it.

use std::fs;

use serde_json::{Value, json};

use crate::kit::World;
use crate::kit::acp::Editor;

const SETTINGS: &str =
    "[models.local]\nkind = \"scripted\"\nmodel = \"script.yaml\"\n[roles]\nmain = \"local\"\n";

/// An agent with these lines in its file.
pub(crate) fn agent(world: &World, name: &str, lines: &str) {
    let text =
        format!("---\nname: {name}\ndescription: Does as it is told.\n{lines}\n---\nDo it.\n");
    world.home_file(&format!("agents/{name}.md"), &text);
}

/// A world in which the agent `clerk` says this.
pub(crate) fn world(turns: &str, settings: &str) -> World {
    let world = World::new();
    agent(&world, "clerk", "tools: [file_read, file_write, file_edit, todo_write, clarify]");
    world.home_file("belljar.toml", &format!("{SETTINGS}{settings}"));
    says(&world, turns);
    world.file("note.txt", "one\ntwo\n");
    world
}

pub(crate) fn says(world: &World, turns: &str) {
    let script = format!("transcript: 1\nagents:\n  - agent: clerk\n    turns:\n{turns}");
    world.home_file("script.yaml", &script);
}

pub(crate) fn clerk(world: &World) -> Editor {
    Editor::start(world, &["--agent", "clerk"])
}

fn path(world: &World, name: &str) -> Value {
    json!(world.workspace().canonicalize().unwrap().join(name))
}

const READS: &str = "      - say: 'Reading. '
        calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: There are two lines.
";

#[test]
fn a_prompt_is_answered_in_pieces_with_its_calls_and_their_results() {
    let world = world(READS, "");
    let mut editor = clerk(&world);
    let session = editor.session();
    editor.until(&session, |it| it["sessionUpdate"] == "available_commands_update");
    assert_eq!(editor.say(&session, "what is in note.txt?"), "end_turn");
    assert_eq!(editor.words(&session), "Reading. There are two lines.");
    let call = editor.of(&session, "tool_call")[0].clone();
    assert_eq!(call["title"], "file_read note.txt");
    assert_eq!(call["kind"], "read");
    assert_eq!(call["status"], "in_progress");
    assert_eq!(call["rawInput"], json!({"path": "note.txt"}));
    assert_eq!(call["locations"][0]["path"], path(&world, "note.txt"));
    let updates = editor.of(&session, "tool_call_update");
    assert!(updates.iter().all(|it| it["toolCallId"] == call["toolCallId"]), "{updates:#?}");
    assert!(updates.iter().any(|it| it["status"] == "completed"), "{updates:#?}");
    let result = updates.iter().find(|it| it.get("rawOutput").is_some()).unwrap();
    assert!(result["rawOutput"].to_string().contains("two"), "{result:#}");
    let title = editor.of(&session, "session_info_update")[0];
    assert_eq!(title["title"], "what is in note.txt?");
    assert!(editor.leave());
    // It is an ordinary session.
    world.run(&["sessions", "list"]).exits(0).says("what is in note.txt?");
}

pub(crate) const WRITES: &str = "      - calls:
          - {name: file_edit, arguments: {path: note.txt, old_text: two, new_text: '2'}}
          - {name: file_write, arguments: {path: new.txt, content: \"new\\n\"}}
      - say: Done.
";

#[test]
fn changes_are_differences_and_reach_the_workspace_when_the_person_says_so() {
    let world = world(WRITES, "");
    let mut editor = clerk(&world);
    let session = editor.session();
    assert_eq!(editor.say(&session, "change it"), "end_turn");
    let calls: Vec<Value> = editor.of(&session, "tool_call").into_iter().cloned().collect();
    let diff = &calls[0]["content"][0];
    assert_eq!(diff["type"], "diff", "{calls:#?}");
    assert_eq!((&diff["oldText"], &diff["newText"]), (&json!("two"), &json!("2")));
    // All of it, with what was there.
    let changes = calls.last().unwrap();
    assert!(changes["title"].as_str().unwrap().starts_with("2 files changed"), "{changes:#}");
    let of = |name: &str| {
        let all = changes["content"].as_array().unwrap().iter();
        all.into_iter().find(|it| it["path"] == path(&world, name)).unwrap().clone()
    };
    assert_eq!(of("note.txt")["oldText"], "one\ntwo\n");
    assert_eq!(of("note.txt")["newText"], "one\n2\n");
    assert_eq!(of("new.txt").get("oldText").unwrap_or(&Value::Null), &Value::Null);
    let note = || fs::read_to_string(world.workspace().join("note.txt")).unwrap();
    assert_eq!(note(), "one\ntwo\n", "nobody has agreed yet");
    let applying = editor.saying(&session, "/apply");
    let question = editor.question();
    assert!(question["params"]["toolCall"]["content"].to_string().contains("one\\n2\\n"));
    editor.choose(&question, ".no");
    editor.result(applying);
    assert_eq!(note(), "one\ntwo\n");
    let applying = editor.saying(&session, "/apply note.txt");
    let question = editor.question();
    editor.choose(&question, ".apply");
    editor.result(applying);
    assert_eq!(note(), "one\n2\n");
    assert!(!world.workspace().join("new.txt").exists(), "it was not named");
    assert_eq!(editor.say(&session, "/undo"), "end_turn");
    assert_eq!(note(), "one\ntwo\n");
    let discarding = editor.saying(&session, "/discard");
    let question = editor.question();
    editor.choose(&question, ".discard");
    editor.result(discarding);
    assert_eq!(editor.say(&session, "/changes"), "end_turn");
    assert!(editor.words(&session).ends_with("Nothing is changed."));
}

const ASKS: &str =
    "[grants.clerk]\nadd_tools = { file_read = 'ask', clarify = 'allow', todo_write = 'allow' }\n";

#[test]
fn a_call_that_is_granted_as_ask_waits_for_the_persons_word() {
    let twice = "      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: Read.
";
    let world = world(&format!("{twice}{twice}"), ASKS);
    let mut editor = clerk(&world);
    let session = editor.session();
    let prompt = editor.saying(&session, "read");
    let question = editor.question();
    assert_eq!(question["method"], "session/request_permission");
    let params = &question["params"];
    assert_eq!(params["sessionId"], json!(session));
    assert_eq!(params["toolCall"]["rawInput"], json!({"path": "note.txt"}));
    let kinds: Vec<_> =
        params["options"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    editor.choose(&question, ".for_run");
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn", "asked once for both calls");
    let prompt = editor.saying(&session, "again");
    let question = editor.question();
    editor.choose(&question, ".no");
    let question = editor.question();
    editor.choose(&question, ".yes");
    editor.result(prompt);
    let failed: Vec<_> = editor
        .of(&session, "tool_call_update")
        .into_iter()
        .filter(|it| it["status"] == "failed")
        .collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
}

#[test]
fn an_agent_asks_for_a_choice_and_keeps_a_plan() {
    let turns = "      - calls:
          - {name: todo_write, arguments: {todos: [{content: ask, status: in_progress}, {content: do, status: pending}]}}
          - {name: clarify, arguments: {question: 'Which?', options: [red, blue]}}
      - expect: {results: [{name: todo_write}, {name: clarify, contains: blue}]}
        say: Blue it is.
";
    let world = world(turns, "");
    for forms in [false, true] {
        let capabilities = match forms {
            true => json!({"elicitation": {"form": {}}}),
            false => json!({}),
        };
        let mut editor = Editor::with(&world, &["--agent", "clerk"], &capabilities);
        let session = editor.session();
        let prompt = editor.saying(&session, "paint");
        let question = editor.question();
        match forms {
            false => editor.choose(&question, ".1"),
            true => {
                assert_eq!(question["method"], "elicitation/create", "{question:#}");
                let answer = json!({"action": "accept", "content": {"answer": "blue"}});
                editor.respond(&question, answer);
            }
        }
        editor.result(prompt);
        assert_eq!(editor.words(&session), "Blue it is.");
        let plan = editor.of(&session, "plan")[0];
        assert_eq!(plan["entries"][0]["status"], "in_progress");
        assert_eq!(plan["entries"][1]["content"], "do");
    }
}

#[test]
fn a_prompt_that_is_cancelled_says_so_and_the_session_goes_on() {
    let turns = "      - say: Thinking.\n        hang: true\n      - say: Here.\n";
    let world = world(turns, "");
    let mut editor = clerk(&world);
    let session = editor.session();
    let prompt = editor.saying(&session, "think");
    editor.until(&session, |it| it["content"]["text"] == "Thinking.");
    let busy = editor.refused(
        "session/prompt",
        json!({"sessionId": session, "prompt": [{"type": "text", "text": "and?"}]}),
    );
    assert!(busy["message"].as_str().unwrap().contains("cancel it"), "{busy}");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(prompt)["stopReason"], "cancelled");
    assert_eq!(editor.say(&session, "now"), "end_turn");
    assert!(editor.words(&session).ends_with("Here."));
}

/// INV-308.
#[test]
fn a_session_outlives_a_killed_agent_and_its_interrupted_turn_is_resumed() {
    let turns = format!("{READS}      - say: Half.\n        hang: true\n");
    let world = world(&turns, "");
    let mut editor = clerk(&world);
    let session = editor.session();
    editor.say(&session, "what is in note.txt?");
    let told = editor.words(&session);
    editor.saying(&session, "and then?");
    editor.until(&session, |it| it["content"]["text"] == "Half.");
    editor.kill();
    says(&world, "      - say: The rest.\n");
    let mut editor = clerk(&world);
    let place = editor.place_of(&session);
    editor.call("session/load", place);
    let asked = editor.of(&session, "user_message_chunk");
    let asked: Vec<_> = asked.iter().map(|it| it["content"]["text"].as_str().unwrap()).collect();
    assert_eq!(asked, ["what is in note.txt?", "and then?"]);
    assert!(editor.words(&session).starts_with(&told), "{}", editor.words(&session));
    let call = editor.of(&session, "tool_call")[0];
    assert_eq!(call["title"], "file_read note.txt");
    let results = editor.of(&session, "tool_call_update");
    assert!(results.iter().any(|it| it["rawOutput"].to_string().contains("two")), "{results:#?}");
    editor.until(&session, |it| it["content"]["text"] == "The rest.");
    let place = editor.place_of("20200101T000000000Z-0000000000000");
    let unknown = editor.refused("session/load", place);
    assert_eq!(unknown["code"], -32002, "{unknown}");
    // Nothing is left to resume, and the past is the same.
    assert!(editor.leave());
    let mut editor = clerk(&world);
    let place = editor.place_of(&session);
    editor.call("session/load", place);
    assert!(editor.words(&session).ends_with("The rest."), "{}", editor.words(&session));
}

#[test]
fn sessions_are_listed_resumed_closed_and_deleted() {
    let world = world("      - say: One.\n      - say: Two.\n", "");
    let mut editor = clerk(&world);
    let (first, empty) = (editor.session(), editor.session());
    editor.say(&first, "count");
    let listed = editor.call("session/list", json!({}));
    let ids: Vec<_> =
        listed["sessions"].as_array().unwrap().iter().map(|it| &it["sessionId"]).collect();
    assert_eq!(ids, [&json!(first)], "one in which nothing was said is not listed");
    editor.call("session/close", json!({"sessionId": first}));
    let prompt = json!({"sessionId": first, "prompt": [{"type": "text", "text": "more"}]});
    assert_eq!(editor.refused("session/prompt", prompt)["code"], -32002);
    let place = editor.place_of(&first);
    editor.call("session/resume", place);
    assert!(editor.of(&first, "user_message_chunk").is_empty(), "resuming tells nothing again");
    assert_eq!(editor.say(&first, "more"), "end_turn");
    editor.call("session/delete", json!({"sessionId": first}));
    let place = editor.place_of(&first);
    assert_eq!(editor.refused("session/load", place)["code"], -32002);
    let place = editor.place_of(&empty);
    editor.call("session/resume", place);
    assert_eq!(editor.call("session/list", json!({}))["sessions"], json!([]));
}

#[test]
fn agents_are_modes_models_an_option_and_skills_and_teams_commands() {
    let other = "[models.other]\nkind = \"scripted\"\nmodel = \"other.yaml\"\n";
    let world = world("      - say: From the clerk.\n", other);
    agent(&world, "scribe", "tools: []");
    world.home_file(
        "skills/tides/SKILL.md",
        "---\nname: tides\ndescription: Of tides.\n---\nHIGH.\n",
    );
    let team = "name: pair\ndescription: Both.\nstages:\n  - agent: scribe\n";
    world.home_file("teams/pair.yaml", team);
    let script = "transcript: 1\neach_run: true\nagents:\n  - agent: scribe\n    turns:\n      - say: From the scribe.\n";
    world.home_file("other.yaml", script);
    world.home_file(
        "script.yaml",
        "transcript: 1\nagents:\n  - agent: clerk\n    turns:\n      - say: From the clerk.\n  - agent: scribe\n    turns:\n      - expect: {last_user_contains: 'HIGH.'}\n        say: At six.\n      - say: Of the team.\n",
    );
    let mut editor = clerk(&world);
    let place = editor.place();
    let new = editor.call("session/new", place);
    let session = new["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(new["modes"]["currentModeId"], "home/clerk");
    let modes = new["modes"]["availableModes"].to_string();
    assert!(modes.contains("home/scribe") && modes.contains("home/general-purpose"), "{modes}");
    assert_eq!(new["configOptions"][0]["category"], "model", "{new:#}");
    let commands =
        editor.until(&session, |it| it["sessionUpdate"] == "available_commands_update").to_string();
    for name in ["changes", "apply", "tides", "team:pair", "code-review"] {
        assert!(commands.contains(&format!("\"name\":\"{name}\"")), "{name}: {commands}");
    }
    editor.say(&session, "who?");
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "home/scribe"}));
    let set = json!({"sessionId": session, "configId": "model", "value": "other"});
    let set = editor.call("session/set_config_option", set);
    assert_eq!(set["configOptions"][0]["currentValue"], "other", "{set:#}");
    editor.say(&session, "who?");
    assert_eq!(editor.words(&session), "From the clerk.From the scribe.");
    let set = json!({"sessionId": session, "configId": "model", "value": ":agent"});
    editor.call("session/set_config_option", set);
    editor.say(&session, "/tides when?");
    assert!(editor.words(&session).ends_with("At six."), "{}", editor.words(&session));
    editor.say(&session, "/team:pair write");
    assert!(editor.words(&session).contains("Of the team."), "{}", editor.words(&session));
    let refused =
        editor.refused("session/set_mode", json!({"sessionId": session, "modeId": "home/nobody"}));
    assert_eq!(refused["code"], -32602, "{refused}");
}

const SPAWNS: &str = "transcript: 1
agents:
  - agent: clerk
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: Look around.}}]
      - say: It has looked.
  - agent: scout
    turns:
      - say: 'I look. '
        calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: I have seen it.
";

/// A world in which `clerk` has `scout` look around; this grants `scout` its tool.
fn spawning(granted: &str, script: &str) -> World {
    let grants = format!(
        "[grants.clerk]\ntools = {{ spawn_agent = 'allow', file_read = 'allow' }}\n[grants.scout]\ntools = {{ file_read = '{granted}' }}\n"
    );
    let world = world("", &grants);
    agent(&world, "clerk", "tools: [spawn_agent, file_read]");
    agent(&world, "scout", "tools: [file_read]");
    world.home_file("script.yaml", script);
    world
}

/// The child that was announced on a session.
fn child_of(editor: &Editor, session: &str) -> String {
    let announced = editor.of(session, "subagent_update")[0];
    announced["sessionId"].as_str().unwrap().to_owned()
}

#[test]
fn a_subagent_is_a_session_of_its_own_also_after_a_load() {
    let world = spawning("ask", SPAWNS);
    let mut editor = clerk(&world);
    let session = editor.session();
    let prompt = editor.saying(&session, "send somebody");
    let question = editor.question();
    let child = child_of(&editor, &session);
    assert_eq!(question["params"]["sessionId"], json!(child), "the child asks by itself");
    editor.choose(&question, ".yes");
    editor.result(prompt);
    let seen = |editor: &Editor| {
        assert_eq!(editor.words(&child), "I look. I have seen it.");
        assert_eq!(editor.words(&session), "It has looked.");
        assert_eq!(editor.of(&child, "tool_call")[0]["title"], "file_read note.txt");
        let task = editor.of(&child, "session_message")[0];
        assert_eq!(task["content"][0]["text"], "Look around.");
        assert_eq!(task["senderSessionId"], json!(session));
        let states: Vec<_> = editor
            .of(&session, "subagent_update")
            .iter()
            .filter_map(|it| it["state"]["state"].as_str())
            .map(str::to_owned)
            .collect();
        assert_eq!(states, ["running", "idle"]);
        let first = editor.updates.iter().position(|(of, _)| *of == child).unwrap();
        let announced = |(_, it): &(String, Value)| it["sessionId"] == json!(child);
        assert!(editor.updates.iter().position(announced).unwrap() < first);
    };
    seen(&editor);
    assert!(editor.leave());
    let mut editor = clerk(&world);
    let place = editor.place_of(&session);
    editor.call("session/load", place);
    seen(&editor);
}

#[test]
fn an_editor_that_knows_no_subagents_is_told_of_none() {
    let world = spawning("allow", SPAWNS);
    let mut editor = Editor::with(&world, &["--agent", "clerk"], &json!({}));
    let session = editor.session();
    editor.say(&session, "send somebody");
    assert!(editor.updates.iter().all(|(of, _)| *of == session), "{:#?}", editor.updates);
    assert!(editor.of(&session, "subagent_update").is_empty());
    let call = editor.of(&session, "tool_call")[0];
    assert_eq!(call["title"], "subagents: scout#0");
    assert_eq!(editor.words(&session), "It has looked.");
}

#[test]
fn a_subagent_is_cancelled_by_itself_and_its_parent_goes_on() {
    let script = SPAWNS.replace("say: I have seen it.", "say: Still looking.\n        hang: true");
    let world = spawning("allow", &script);
    let mut editor = clerk(&world);
    let session = editor.session();
    let prompt = editor.saying(&session, "send somebody");
    editor.until(&session, |it| it["sessionUpdate"] == "subagent_update");
    let child = child_of(&editor, &session);
    editor.until(&child, |it| it["content"]["text"] == "Still looking.");
    editor.notify("session/cancel", json!({"sessionId": child}));
    assert_eq!(editor.result(prompt)["stopReason"], "end_turn");
    assert_eq!(editor.words(&session), "It has looked.");
    let ended = editor.of(&session, "subagent_update");
    assert!(ended.iter().any(|it| it["state"]["stopReason"] == "cancelled"), "{ended:#?}");
}

#[test]
fn resources_go_along_and_what_is_no_image_is_refused_with_a_remedy() {
    let turns =
        "      - expect: {last_user_contains: 'The secret word is tide.'}\n        say: Tide.\n";
    let world = world(turns, "");
    let mut editor = clerk(&world);
    let session = editor.session();
    let image = json!([{"type": "image", "data": "aGk=", "mimeType": "image/png"}]);
    let refused = editor.refused("session/prompt", json!({"sessionId": session, "prompt": image}));
    assert_eq!(refused["code"], -32602);
    assert!(refused["message"].as_str().unwrap().contains("PNG, JPEG"), "{refused}");
    let uri = format!("file://{}", world.workspace().join("words.txt").display());
    let prompt = json!([
        {"type": "text", "text": "which word? "},
        {"type": "resource", "resource": {"uri": uri, "text": "The secret word is tide."}},
    ]);
    let id = editor.begin("session/prompt", json!({"sessionId": session, "prompt": prompt}));
    editor.result(id);
    assert_eq!(editor.words(&session), "Tide.");
}

#[test]
fn without_a_model_a_prompt_says_what_to_do() {
    let world = World::new();
    let mut editor = Editor::start(&world, &[]);
    let place = editor.place();
    let refused = editor.refused("session/new", place);
    assert!(refused["message"].as_str().unwrap().contains("belljar init"), "{refused}");
    assert!(editor.leave());
}

/// INV-300.
#[test]
fn an_editor_opens_no_directory_but_the_workspace() {
    let world = world("      - say: Here.\n", "");
    world.other("elsewhere/file.txt", b"x");
    let elsewhere = world.workspace().join("../elsewhere");
    let mut editor = clerk(&world);
    let mut refused = vec![elsewhere.clone(), "/".into(), "workspace".into()];
    #[cfg(unix)]
    {
        let link = world.workspace().join("../link");
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        refused.push(link);
    }
    for cwd in refused {
        let place = json!({"cwd": cwd, "mcpServers": []});
        assert_eq!(editor.refused("session/new", place)["code"], -32602, "{cwd:?}");
    }
    #[cfg(unix)]
    {
        let link = world.workspace().join("../same");
        std::os::unix::fs::symlink(world.workspace(), &link).unwrap();
        let new = editor.call("session/new", json!({"cwd": link, "mcpServers": []}));
        assert_eq!(editor.say(new["sessionId"].as_str().unwrap(), "here?"), "end_turn");
    }
    world.run(&["sessions", "list"]).exits(0);
}

/// INV-301.
#[test]
fn an_editor_reaches_no_session_of_another_workspace() {
    let world = world("      - say: Mine.\n      - say: Yours.\n", "");
    let elsewhere = world.other("elsewhere/file.txt", b"x");
    let elsewhere = elsewhere.parent().unwrap().to_str().unwrap();
    let said = ["-C", elsewhere, "chat", "-q", "--agent", "clerk"];
    world.run_with_stdin(&said, "a secret\n").exits(0).says("Mine.");
    let listed = world.run(&["sessions", "list", "--json"]).exits(0).json();
    let foreign = listed[0]["id"].as_str().unwrap().to_owned();
    let mut editor = clerk(&world);
    for method in ["session/load", "session/resume"] {
        let place = editor.place_of(&foreign);
        assert_eq!(editor.refused(method, place)["code"], -32002, "{method}");
    }
    assert_eq!(editor.refused("session/delete", json!({"sessionId": foreign}))["code"], -32002);
    let prompt = json!({"sessionId": foreign, "prompt": [{"type": "text", "text": "x"}]});
    assert_eq!(editor.refused("session/prompt", prompt)["code"], -32002);
    assert_eq!(editor.call("session/list", json!({}))["sessions"], json!([]));
    let own = editor.session();
    assert_eq!(editor.say(&own, "and here?"), "end_turn");
    let listed = world.run(&["sessions", "list"]).exits(0);
    listed.says("a secret").says("and here?");
}

/// INV-303.
#[test]
fn an_answer_counts_for_its_own_question_and_once() {
    let reads = "      - calls: [{name: file_read, arguments: {path: note.txt}}]\n";
    let world = world(&format!("{reads}{reads}      - say: Read.\n"), ASKS);
    let mut editor = clerk(&world);
    let session = editor.session();
    let prompt = editor.saying(&session, "read");
    let first = editor.question();
    editor.choose(&first, ".no");
    // Too late, and twice.
    editor.choose(&first, ".for_run");
    let second = editor.question();
    let yes = first["params"]["options"][0]["optionId"].clone();
    editor.respond(&second, json!({"outcome": {"outcome": "selected", "optionId": yes}}));
    editor.result(prompt);
    let ended: Vec<_> = editor
        .of(&session, "tool_call_update")
        .into_iter()
        .filter_map(|it| it["status"].as_str())
        .collect();
    assert_eq!(ended, ["failed", "failed"]);
}

/// INV-307.
#[test]
fn a_server_that_an_editor_names_is_not_started() {
    let world = world("      - say: Here.\n", "");
    let started = world.workspace().join("started");
    let mut editor = clerk(&world);
    let server = json!({"name": "x", "command": "/usr/bin/touch", "args": [started], "env": []});
    let mut place = editor.place();
    place["mcpServers"] = json!([server]);
    let new = editor.call("session/new", place);
    let session = new["sessionId"].as_str().unwrap().to_owned();
    let notice = editor.until(&session, |it| it["sessionUpdate"] == "notice");
    assert!(notice["title"].as_str().unwrap().contains("not used (1)"), "{notice}");
    assert_eq!(editor.say(&session, "here?"), "end_turn");
    assert!(!started.exists());
}
