//! Changes by an operator while a server runs: settings and grants, and whether it runs.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::{Duration, Instant};

use belljar_kit::peers::{HttpPeer, Reply};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::kit::server::{Server, key};
use crate::kit::{World, until};

const TRANSCRIPT: &str = "
transcript: 1
each_run: true
agents:
  - agent: reader
    turns:
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: that was all
  - agent: asker
    turns:
      - calls: [{name: file_list, arguments: {path: .}}]
      - calls: [{name: file_read, arguments: {path: note.txt}}, {name: spawn_agent, arguments: {agent: scout, task: look}}]
      - say: that was all
  - agent: scout
    spawn: any
    turns:
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: found
  - agent: writer
    turns:
      - calls: [{name: file_read, arguments: {path: /data/note.txt}}, {name: file_read, arguments: {path: note.txt}}]
      - say: that was all
";

const MODEL: &str = "[models.main]\nkind = 'scripted'\nmodel = 'transcript.yaml'\n\n";

/// The operator's own tenant, with agents that ask for everything.
fn world() -> World {
    let world = World::new();
    for name in ["reader", "asker", "scout", "writer"] {
        home_of(&world, "", name);
    }
    world.file("note.txt", "a note");
    world
}

/// An agent and what it says, in a home.
fn home_of(world: &World, home: &str, agent: &str) {
    let text = format!("---\nname: {agent}\ndescription: d\ntools: ['*']\n---\nBe brief.\n");
    world.home_file(&format!("{home}agents/{agent}.md"), &text);
    world.home_file(&format!("{home}transcript.yaml"), TRANSCRIPT);
}

fn grants(world: &World, text: &str) {
    world.home_file("belljar.toml", &format!("{MODEL}{text}"));
}

fn auth(key: Option<&str>) -> String {
    key.map_or(String::new(), |key| format!("authorization: Bearer {key}\r\n"))
}

/// Says something in a session or to an agent; the session, and whether each call of a tool was
/// refused.
fn say(server: &Server, key: Option<&str>, body: &Value) -> (String, Vec<bool>) {
    let (status, said) = server.post("/v1/chat", &auth(key), &body.to_string());
    assert_eq!(status, 200, "{said}");
    let answer: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(answer["status"], "completed", "{answer:#}");
    let session = answer["session"].as_str().unwrap().to_owned();
    let refused = refused(server, key, &session);
    (session, refused)
}

/// Whether each call of the last turn was refused.
fn refused(server: &Server, key: Option<&str>, session: &str) -> Vec<bool> {
    let (status, said) = server.get(&format!("/v1/sessions/{session}/messages?full=true"), key);
    assert_eq!(status, 200, "{said}");
    let said: Value = serde_json::from_str(&said).unwrap();
    let last = said["messages"].as_array().unwrap().last().unwrap().clone();
    let results = last["messages"].as_array().unwrap().iter();
    let results = results.filter_map(|message| message["results"].as_array()).flatten();
    results.map(|result| result["is_error"].as_bool().unwrap()).collect()
}

fn to(agent: &str) -> Value {
    json!({"agent": agent, "text": "go"})
}

fn again(session: &str) -> Value {
    json!({"session": session, "text": "go"})
}

fn ready(server: &Server) -> Value {
    serde_json::from_str(&server.get("/readyz", None).1).unwrap()
}

fn audited(server: &Server, key: Option<&str>, action: &str) -> usize {
    let log: Value = serde_json::from_str(&server.get("/v1/audit", key).1).unwrap();
    log["entries"].as_array().unwrap().iter().filter(|entry| entry["action"] == action).count()
}

#[test]
fn a_grant_that_is_taken_back_holds_for_the_next_turn_of_old_sessions_and_new_ones() {
    // With the cache where it is when nothing is configured, the OS sandbox lets through single
    // files of the home, and `grant` puts another file in the place of one.
    for cache_in_home in [false, true] {
        let world = world();
        grants(&world, "[grants.reader]\ntools = ['file_read']\n");
        let mut command = world.command(&["serve", "--listen", "127.0.0.1:0"]);
        if cache_in_home {
            command.env_remove("BELLJAR_CACHE");
        }
        let server = Server::of(&mut command);
        let (session, before) = say(&server, None, &to("reader"));
        assert_eq!(before, [false]);
        let next = format!("{MODEL}[grants.reader]\ntools = ['file_list']\n");
        let path = world.home_file("belljar.next", &next);
        fs::rename(path, world.home().join("belljar.toml")).unwrap();
        assert_eq!(say(&server, None, &again(&session)).1, [true], "an old session");
        assert_eq!(say(&server, None, &to("reader")).1, [true], "a new session");
        // The neighbour was not named, and has what it had.
        assert_eq!(say(&server, None, &to("scout")).1, [false]);
        let given = serde_json::from_str::<Value>(&server.get("/v1/grants?agent=reader", None).1);
        assert_eq!(given.unwrap()["tools"], json!({"file_list": "allow"}));
        // And given again, as an operator does it.
        world.run(&["grant", "reader", "--tool", "file_read", "--yes"]).exits(0);
        assert_eq!(say(&server, None, &again(&session)).1, [false]);
        assert_eq!(audited(&server, None, "settings_reloaded"), 2);
        let done = server.terminate().exits(0);
        assert_eq!(
            done.stderr.matches("the settings were read again").count(),
            2,
            "{}",
            done.stderr
        );
    }
}

#[test]
fn a_turn_keeps_the_grants_that_it_began_with_to_its_end_and_so_do_its_subagents() {
    let world = world();
    let tools = "[grants.asker]\ntools = { file_list = 'ask', file_read = 'allow', spawn_agent = 'allow' }\n";
    grants(&world, tools);
    let server = Server::start(&world, &[]);
    let (session, id) = question(&server, "asker");
    grants(&world, "[grants.asker]\ntools = []\n[grants.scout]\ntools = []\n");
    server.signal(Signal::HUP);
    until("reloaded", || audited(&server, None, "settings_reloaded") == 1);
    let scout = serde_json::from_str::<Value>(&server.get("/v1/grants?agent=scout", None).1);
    assert_eq!(scout.unwrap()["tools"], json!({}), "it holds for whoever begins now");
    let path = format!("/v1/sessions/{session}/questions/{id}");
    assert_eq!(server.post(&path, "", r#"{"answer": "yes"}"#).0, 200);
    until("over", || server.get("/v1/running", None).1 == r#"{"turns":[]}"#);
    assert_eq!(refused(&server, None, &session), [false, false, false]);
    let receipts = server.get(&format!("/v1/sessions/{session}/receipts"), None).1;
    let read = r#""paths_read":["/workspace/note.txt"]"#;
    assert_eq!(receipts.matches(read).count(), 2, "its own and its scout's: {receipts}");
    // The next turn has the grants of now.
    assert_eq!(say(&server, None, &again(&session)).1, [true, true, true]);
}

const ASKS: &str =
    "[grants.asker]\ntools = { file_list = 'ask', file_read = 'allow', spawn_agent = 'allow' }\n";

/// INV-511.
#[test]
fn a_turn_that_asks_a_person_is_answered_at_once_with_the_question_and_goes_on() {
    let world = world();
    grants(&world, ASKS);
    let server = Server::start(&world, &[]);
    let (status, said) = server.post("/v1/chat", "", &to("asker").to_string());
    assert_eq!(status, 202, "{said}");
    let answer: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(answer["status"], "in_flight", "{answer:#}");
    let question = &answer["questions"][0];
    assert_eq!((&question["kind"], &question["tool"]), (&json!("permission"), &json!("file_list")));
    let session = answer["session"].as_str().unwrap();
    let path = format!("/v1/sessions/{session}/questions/{}", question["id"]);
    assert!(answer["error"].as_str().unwrap().contains("/questions/ID"), "{answer:#}");
    // Who asks nobody is answered at the end, and that has no questions.
    let (status, neighbour) = server.post("/v1/chat", "", &to("reader").to_string());
    assert!(status == 200 && !neighbour.contains("questions"), "{neighbour}");
    let receipts = server.get(&format!("/v1/sessions/{session}/receipts"), None).1;
    assert!(!receipts.contains("file_list"), "nothing was called yet: {receipts}");
    assert_eq!(server.post(&path, "", r#"{"answer": "yes"}"#).0, 200);
    until("over", || server.get("/v1/running", None).1 == r#"{"turns":[]}"#);
    let messages = server.get(&format!("/v1/sessions/{session}/messages"), None).1;
    assert!(messages.contains("that was all"), "{messages}");
    server.terminate().exits(0);
}

/// A component without rights, as a tool of this name.
fn installed(world: &World, name: &str) -> crate::kit::Done {
    let suite = "/../../tests/peers/wasi-testsuite/assemblyscript/proc_exit-success.wasm";
    let bytes = fs::read(format!("{}{suite}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let file = world.other("component.wasm", &bytes);
    world.run(&["tools", "add", file.to_str().unwrap(), "--name", name, "--yes"]).exits(0)
}

/// INV-512.
#[test]
fn a_tool_reaches_a_running_server_when_it_is_installed_and_a_link_says_why_it_does_not() {
    let world = world();
    grants(&world, "");
    for name in ["leave", "linked"] {
        installed(&world, name);
        world.run(&["grant", "reader", "--tool", name, "--yes"]).exits(0);
    }
    let tools = world.home().join("tools");
    let elsewhere = world.other("elsewhere/tool.toml", b"");
    let elsewhere = elsewhere.parent().unwrap();
    for file in ["tool.toml", "tool.wasm"] {
        fs::rename(tools.join("linked").join(file), elsewhere.join(file)).unwrap();
    }
    // With the cache in the home the OS sandbox lets through what is there when it goes up.
    fs::remove_dir_all(&tools).unwrap();
    let mut command = world.command(&["serve", "--listen", "127.0.0.1:0"]);
    let server = Server::of(command.env_remove("BELLJAR_CACHE"));
    let has =
        |name: &str| server.get("/v1/tools", None).1.contains(&format!("\"name\":\"{name}\""));
    assert!(!has("leave") && has("file_read"));
    // The settings name it already, and stay as they are.
    let before = fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    installed(&world, "leave");
    until("installed", || has("leave"));
    assert_eq!(fs::read_to_string(world.home().join("belljar.toml")).unwrap(), before);
    std::os::unix::fs::symlink(elsewhere, tools.join("linked")).unwrap();
    until("looked at", || audited(&server, None, "settings_reloaded") >= 2);
    assert!(!has("linked") && has("leave"));
    fs::remove_dir_all(tools.join("leave")).unwrap();
    until("removed", || !has("leave"));
    let done = server.terminate().exits(0).complains("its link leads to");
    done.complains("start this process again");
}

/// A turn of an agent that asks first: its session, and the number of the question.
fn question(server: &Server, agent: &str) -> (String, u64) {
    let body = json!({"agent": agent, "text": "go", "stream": true}).to_string();
    server.until("POST", "/v1/chat", &body, "event: permission_asked");
    let open = serde_json::from_str::<Value>(&server.get("/v1/questions", None).1).unwrap();
    let question = &open["questions"][0];
    (question["session"].as_str().unwrap().to_owned(), question["id"].as_u64().unwrap())
}

#[test]
fn settings_that_are_not_valid_leave_those_before_in_force_and_are_said_once() {
    let world = world();
    let tenants = ["blue", "good"].map(|name| {
        world.run(&["tenants", "add", name]).exits(0);
        let home = format!("{}/home/", world.tenant(name));
        home_of(&world, &home, "reader");
        let file = format!("{home}belljar.toml");
        world.home_file(&file, &format!("{MODEL}[grants.reader]\ntools = ['file_read']\n"));
        world.home_file(&format!("{}/note.txt", world.workspace_of(name)), "a note");
        (key(&world, name, "admin"), file)
    });
    let [(blue, file), (good, _)] = &tenants;
    let server = Server::start(&world, &[]);
    let (session, before) = say(&server, Some(blue), &to("reader"));
    assert_eq!(before, [false]);
    let typo = "tolos = ['file_list']";
    world.home_file(file, &format!("{MODEL}[grants.reader]\n{typo}\n"));
    // It is said without a turn, and turns go on.
    server.signal(Signal::HUP);
    until("said", || ready(&server)["tenants_on_older_settings"] == 1);
    assert_eq!(
        (&ready(&server)["status"], &ready(&server)["tenants_not_served"]),
        (&json!("ok"), &json!(0))
    );
    for _ in 0..3 {
        assert_eq!(say(&server, Some(blue), &again(&session)).1, [false]);
    }
    assert_eq!(say(&server, Some(good), &to("reader")).1, [false], "the neighbour");
    // What a start would say of it, wherever one looks.
    let listed = world.run(&["tenants", "list"]).exits(0).says("older settings").complains("tolos");
    listed.complains("valid last");
    world.run(&["doctor"]).exits(1).says("tolos");
    // Corrected, it is in force at the next turn.
    world.home_file(file, &format!("{MODEL}[grants.reader]\ntools = ['file_list']\n"));
    assert_eq!(say(&server, Some(blue), &again(&session)).1, [true]);
    assert_eq!(ready(&server)["tenants_on_older_settings"], 0);
    assert_eq!(say(&server, Some(good), &to("reader")).1, [false], "the neighbour");
    assert!(audited(&server, Some(blue), "settings_reloaded") >= 1);
    let done = server.terminate().exits(0);
    let said: Vec<&str> = done.stderr.lines().filter(|line| line.contains("tolos")).collect();
    let [said] = said[..] else { panic!("{}", done.stderr) };
    for part in ["belljar.toml:6:", "ERROR", "blue", "those that were valid last stay in force"] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
}

#[test]
fn the_operators_own_settings_that_are_not_valid_leave_those_before_in_force() {
    let world = world();
    grants(&world, "[grants.reader]\ntools = ['file_read']\n");
    let server = Server::start(&world, &[]);
    grants(&world, "[grants.reader\n");
    until("seen, with nobody asking for a turn", || {
        ready(&server)["tenants_on_older_settings"] == 1
    });
    assert_eq!(say(&server, None, &to("reader")).1, [false]);
    assert_eq!(ready(&server)["tenants_on_older_settings"], 1);
    // Somebody else could have written it: as little as a start does.
    grants(&world, "[grants.reader]\ntools = ['file_list']\n");
    let open = |mode| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = world.home().join("belljar.toml");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(0o666);
    assert_eq!(say(&server, None, &to("reader")).1, [false]);
    assert_eq!(ready(&server)["tenants_on_older_settings"], 1);
    open(0o600);
    assert_eq!(say(&server, None, &to("reader")).1, [true]);
    assert_eq!(ready(&server)["tenants_on_older_settings"], 0);
    let done = server.terminate().exits(0);
    done.complains("may be written by others").complains("belljar.toml:5:");
}

/// INV-156: a read that fails for a reason outside the files is made again, with nobody touching them.
#[test]
fn a_right_that_was_taken_back_while_a_directory_was_open_to_others_is_gone_once_it_is_closed() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = world();
    grants(&world, "[grants.reader]\ntools = ['file_read']\n");
    let server = Server::start(&world, &[]);
    assert_eq!(say(&server, None, &to("reader")).1, [false]);
    let agents = world.home().join("agents");
    let open = |mode| fs::set_permissions(&agents, fs::Permissions::from_mode(mode)).unwrap();
    open(0o777);
    grants(&world, "[grants.reader]\ntools = ['file_list']\n");
    until("seen", || ready(&server)["tenants_on_older_settings"] == 1);
    open(0o700);
    until("read again", || ready(&server)["tenants_on_older_settings"] == 0);
    assert_eq!(say(&server, None, &to("reader")).1, [true]);
    server.terminate().exits(0);
}

#[test]
fn what_takes_effect_after_a_restart_is_named_and_the_rest_is_in_force() {
    let world = world();
    grants(&world, "[server]\njars = 64\n[grants.writer]\ntools = ['file_read']\n");
    let data = world.other("data/note.txt", b"out of reach");
    let data = data.parent().unwrap().to_owned();
    let server = Server::start(&world, &[]);
    assert_eq!(say(&server, None, &to("writer")).1, [true, false]);
    let mounts = format!(
        "mounts = [{{ path = '/workspace', access = 'read' }}, {{ path = '/data', host = '{}', access = 'read' }}]",
        data.display()
    );
    let new = format!("[server]\njars = 32\n[grants.writer]\ntools = ['file_read']\n{mounts}\n");
    grants(&world, &format!("{new}[grants.reader]\ntools = ['file_list']\n"));
    // Not by halves: the agent runs on without what this process cannot open.
    assert_eq!(say(&server, None, &to("writer")).1, [true, false]);
    assert_eq!(say(&server, None, &to("reader")).1, [true], "taken back in the same change");
    let given = serde_json::from_str::<Value>(&server.get("/v1/grants?agent=writer", None).1);
    assert_eq!(given.unwrap()["mounts"], json!({"/workspace": "read"}));
    let done = server.terminate().exits(0);
    for part in ["`jars` of `[server]`", "at `/data` in", "takes effect after a restart"] {
        assert!(done.stderr.contains(part), "no `{part}` in {}", done.stderr);
    }
    let server = Server::start(&world, &[]);
    assert_eq!(say(&server, None, &to("writer")).1, [false, false]);
}

#[test]
fn a_key_or_a_secret_whose_file_is_written_anew_is_another_from_the_next_turn_on() {
    let world = world();
    // A server of models that lets nobody in.
    let peer = HttpPeer::with_reply(Reply::new("401 Unauthorized", "", "{}"));
    let address = peer.address;
    let private = |path: &str, text: &str| {
        let path = world.home_file(path, text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, mode).unwrap();
        path
    };
    private("keys/model", "first-key-of-the-operator");
    let model = format!(
        "[models.main]\nkind = 'openai'\nbase_url = 'http://{address}/v1'\nmodel = 'm'\n\
         key_file = 'keys/model'\n\n"
    );
    let secret =
        "[secrets.api]\nhost = 'https://api.example'\nheader = 'x-key'\nfile = 'keys/api'\n";
    world.home_file("belljar.toml", &format!("{model}{secret}"));
    // One has the operator's model, and one has its own.
    let [blue, red] = ["blue", "red"].map(|name| {
        world.run(&["tenants", "add", name]).exits(0);
        home_of(&world, &format!("{}/home/", world.tenant(name)), "reader");
        key(&world, name, "member")
    });
    let own = format!("{}/home", world.tenant("red"));
    private(&format!("{own}/keys/model"), "first-key-of-red");
    world.home_file(&format!("{own}/belljar.toml"), &model);
    let operator = key(&world, "local", "admin");
    let server = Server::start(&world, &[]);
    let noted = |key: &str| {
        peer.take_requests();
        let (status, said) = server.post("/v1/chat", &auth(Some(key)), &to("reader").to_string());
        assert_eq!(status, 200, "{said}");
        let key = peer.next_request().header("authorization").unwrap().to_owned();
        key.strip_prefix("Bearer ").unwrap().to_owned()
    };
    assert_eq!([&operator, &blue].map(|key| noted(key)), ["first-key-of-the-operator"; 2]);
    assert_eq!(noted(&red), "first-key-of-red");
    // Replaced, as programs do it that rotate keys; the neighbour's is not.
    let next = private("keys/next", "second-key-of-the-operator");
    fs::rename(next, world.home().join("keys/model")).unwrap();
    assert_eq!([&operator, &blue].map(|key| noted(key)), ["second-key-of-the-operator"; 2]);
    assert_eq!(noted(&red), "first-key-of-red");
    private(&format!("{own}/keys/model"), "second-key-of-red");
    assert_eq!(noted(&red), "second-key-of-red");
    // A secret that was not there is taken over as well.
    let before = audited(&server, Some(&operator), "settings_reloaded");
    private("keys/api", "the-secret-value-1234567890");
    assert_eq!(noted(&operator), "second-key-of-the-operator");
    assert_eq!(audited(&server, Some(&operator), "settings_reloaded"), before + 1);
    let done = server.terminate().exits(0);
    assert!(!done.stderr.contains("secret-value") && !done.stderr.contains("second-key"));
}

#[test]
fn a_hangup_reads_everything_again_and_a_server_without_a_change_goes_on() {
    let world = world();
    grants(&world, "[grants.reader]\ntools = ['file_read']\n");
    let server = Server::start(&world, &[]);
    server.signal(Signal::HUP);
    until("reloaded", || audited(&server, None, "settings_reloaded") == 1);
    assert_eq!(say(&server, None, &to("reader")).1, [false]);
    server.terminate().exits(0).complains("SIGHUP: all settings are read again");
}

#[test]
fn a_question_is_answered_while_the_server_drains_and_the_server_ends_after_its_turn() {
    let world = world();
    let tools = "[grants.asker]\ntools = { file_list = 'ask', file_read = 'allow', spawn_agent = 'allow' }\n";
    grants(&world, tools);
    let server = Server::start(&world, &[]);
    let body = json!({"agent": "asker", "text": "go", "wait": true}).to_string();
    let (answer, done) = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.post("/v1/chat", "", &body));
        until("asked", || server.get("/v1/questions", None).1.contains("file_list"));
        let began = Instant::now();
        server.signal(Signal::TERM);
        until("draining", || server.get("/readyz", None).0 == 503);
        // Nobody begins anything, and whoever waits is served on a connection of now.
        let (status, refused) = server.post("/v1/chat", "", &to("reader").to_string());
        assert!(status == 503 && refused.contains("draining"), "{refused}");
        let open: Value = serde_json::from_str(&server.get("/v1/questions", None).1).unwrap();
        let question = &open["questions"][0];
        let (session, id) = (question["session"].as_str().unwrap(), &question["id"]);
        assert_eq!(server.get(&format!("/v1/sessions/{session}"), None).0, 200);
        let path = format!("/v1/sessions/{session}/questions/{id}");
        assert_eq!(server.post(&path, "", r#"{"answer": "yes"}"#).0, 200);
        (waiting.join().unwrap(), began.elapsed())
    });
    assert_eq!(answer.0, 200, "{}", answer.1);
    assert!(answer.1.contains("completed") && answer.1.contains("that was all"), "{}", answer.1);
    assert!(done < Duration::from_secs(25), "it waited for the end of the drain");
    server.ended().exits(0).complains("stopped");
}
