//! The reach of a tenant's tools when the server runs as it is run: behind the OS sandbox.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::kit::World;
use crate::kit::server::{Server, key};
use crate::walls::status;

const SECRET: &str = "blue's own words";

/// Reads and writes everything by every way that leads out of a workspace.
const SNOOP: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: snoop
    turns:
      - calls:
          - {name: file_read, arguments: {path: own.txt}}
          - {name: file_read, arguments: {path: to-file}}
          - {name: file_read, arguments: {path: to-directory/secret.txt}}
          - {name: file_read, arguments: {path: ../blue/secret.txt}}
          - {name: file_read, arguments: {path: BLUE/secret.txt}}
          - {name: file_read, arguments: {path: /workspace/../blue/secret.txt}}
          - {name: file_read, arguments: {path: to-store}}
          - {name: file_read, arguments: {path: /proc/self/environ}}
          - {name: file_list, arguments: {path: to-directory}}
          - {name: file_list, arguments: {path: ../blue}}
          - {name: file_write, arguments: {path: to-directory/planted.txt, content: red}}
          - {name: file_write, arguments: {path: ../blue/planted.txt, content: red}}
          - {name: file_write, arguments: {path: BLUE/planted.txt, content: red}}
          - {name: file_edit, arguments: {path: to-file, old_text: own, new_text: red}}
      - say: that was all
"#;

const READER: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: reader
    turns:
      - calls: [{name: file_read, arguments: {path: secret.txt}}]
      - expect: {results: [{name: file_read, contains: blue's own words, is_error: false}]}
        say: I know them
"#;

/// A tenant with one agent, which may do with its workspace whatever a tool can.
fn tenant(world: &World, name: &str, agent: &str, transcript: &str) -> String {
    world.run(&["tenants", "add", name]).exits(0);
    let home = format!("{}/home", world.tenant(name));
    let definition = format!("---\nname: {agent}\ndescription: d\ntools: ['*']\n---\nBe brief.\n");
    world.home_file(&format!("{home}/agents/{agent}.md"), &definition);
    world.home_file(&format!("{home}/transcript.yaml"), transcript);
    let settings = format!(
        "[models.main]\nkind = 'scripted'\nmodel = 'transcript.yaml'\n\n[grants.{agent}]\n\
         tools = ['file_read', 'file_list', 'file_write', 'file_edit']\n\
         mounts = [{{ path = '/workspace', access = 'read-write' }}]\n"
    );
    world.home_file(&format!("{home}/belljar.toml"), &settings);
    key(world, name, "member")
}

fn say(server: &Server, key: &str, agent: &str) -> Value {
    let body = json!({"agent": agent, "text": "go"}).to_string();
    let (status, body) =
        server.post("/v1/chat", &format!("authorization: Bearer {key}\r\n"), &body);
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["status"], "completed", "{answer:#}");
    answer
}

#[test]
fn a_tenants_tools_reach_its_own_root_and_no_other() {
    let world = World::new();
    let root = world.home().canonicalize().unwrap();
    let blue = tenant(&world, "blue", "reader", READER);
    let blue_files = root.join(world.workspace_of("blue"));
    let steps_back = format!("../{}", blue_files.file_name().unwrap().to_str().unwrap());
    let script = SNOOP.replace("../blue", &steps_back);
    let script = script.replace("BLUE", blue_files.to_str().unwrap());
    let red = tenant(&world, "red", "snoop", &script);
    fs::write(blue_files.join("secret.txt"), SECRET).unwrap();
    let red_files = root.join(world.workspace_of("red"));
    fs::write(red_files.join("own.txt"), "red's").unwrap();
    symlink(blue_files.join("secret.txt"), red_files.join("to-file")).unwrap();
    symlink(&steps_back, red_files.join("to-directory")).unwrap();
    symlink(world.home().join("sessions/store/belljar.db"), red_files.join("to-store")).unwrap();
    let server = Server::start(&world, &[]);
    assert_eq!(
        (status(server.id(), "Seccomp"), status(server.id(), "NoNewPrivs")),
        ("2".into(), "1".into())
    );
    let answer = say(&server, &red, "snoop");
    let session = answer["session"].as_str().unwrap();
    let (status, said) =
        server.get(&format!("/v1/sessions/{session}/messages?full=true"), Some(&red));
    assert_eq!(status, 200, "{said}");
    // Refused: each but the first.
    assert!(!said.contains(SECRET) && !said.contains("SQLite format"), "{said}");
    let said: Value = serde_json::from_str(&said).unwrap();
    let results = said["messages"][1]["messages"][2]["results"].as_array().unwrap();
    let failed: Vec<bool> =
        results.iter().map(|result| result["is_error"].as_bool().unwrap()).collect();
    let expected: Vec<bool> = (0..14).map(|place| place > 0).collect();
    assert_eq!(failed, expected, "{results:#?}");
    // No effect: the other tenant's files are what they were, and the store too.
    let left: Vec<_> = fs::read_dir(&blue_files).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["secret.txt"]);
    assert_eq!(fs::read_to_string(blue_files.join("secret.txt")).unwrap(), SECRET);
    // The neighbour is unharmed.
    assert_eq!(say(&server, &blue, "reader")["text"], "I know them");
    let (status, _) = server.get(&format!("/v1/sessions/{session}/messages"), Some(&blue));
    assert_eq!(status, 404);
}

const WRITER: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: writer
    turns:
      - calls:
          - {name: file_write, arguments: {path: log.txt, content: written}}
          - {name: file_write, arguments: {path: .belljar/agents/own.md, content: written}}
          - {name: file_write, arguments: {path: belljar.toml, content: written}}
          - {name: file_write, arguments: {path: sub/AGENTS.md, content: written}}
      - say: that was all
"#;

#[test]
fn a_tenant_writes_its_workspace_with_nothing_configured() {
    let world = World::with_default_home();
    let red = tenant(&world, "red", "writer", WRITER);
    let server = Server::start(&world, &[]);
    say(&server, &red, "writer");
    let files = world.home().join(world.workspace_of("red"));
    assert_eq!(fs::read_to_string(files.join("log.txt")).unwrap(), "written");
    // What decides about rights is not written.
    for name in [".belljar", "belljar.toml", "sub/AGENTS.md"] {
        assert!(!files.join(name).exists(), "{name}");
    }
}

#[test]
fn the_operators_agents_write_neither_the_home_nor_a_tenants() {
    writes_nothing_of_ours(&World::with_default_home(), None);
}

#[test]
fn a_home_and_a_data_root_are_closed_whatever_their_names() {
    let world = World::new();
    writes_nothing_of_ours(&world, None);
    let world = World::new();
    writes_nothing_of_ours(&world, Some(&world.home().with_file_name("kept")));
    // A home that is a link, in a directory that is mounted.
    let world = World::new();
    let real = world.home().with_file_name("real");
    fs::rename(world.home(), &real).unwrap();
    symlink("real", world.home()).unwrap();
    writes_nothing_of_ours(&world, None);
    assert!(fs::symlink_metadata(world.home()).unwrap().is_symlink());
}

#[test]
fn what_a_home_links_to_and_a_data_root_that_is_not_there_yet_are_closed() {
    let world = World::new();
    let around = world.home().parent().unwrap().to_path_buf();
    let data = around.join("later");
    world.home_file("transcript.yaml", "transcript: 1\nagents:\n  - agent: writer\n    turns:\n      - calls:\n          - {name: shell, arguments: {command: 'cd /around; echo x >> dots/settings; echo x > dots/agents/own.md; mv dots gone; mkdir later; mkdir -p fake/store; mv fake later; echo x > tried'}}\n      - say: that was all\n");
    let settings = format!(
        "[server]\ndata = {data:?}\n\n[models.main]\nkind = 'scripted'\nmodel = 'transcript.yaml'\n\n\
         [grants.writer]\ntools = ['shell']\n\
         mounts = [{{ path = '/around', host = {around:?}, access = 'read-write' }}]\n"
    );
    // As those do who keep their settings in a repository.
    let agent = "---\nname: writer\ndescription: d\ntools: ['*']\n---\nBe brief.\n";
    world.other("dots/agents/writer.md", agent.as_bytes());
    let kept = world.other("dots/settings", settings.as_bytes());
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&kept, private).unwrap();
    symlink("../dots/settings", world.home().join("belljar.toml")).unwrap();
    symlink("../dots/agents", world.home().join("agents")).unwrap();
    let done = world.run(&["run", "--agent", "writer", "--json", "go"]).exits(0);
    assert!(done.stdout.contains("path-not-allowed"), "{}", done.stdout);
    assert!(around.join("tried").exists() && !data.exists() && !around.join("gone").exists());
    assert_eq!(fs::read_to_string(&kept).unwrap(), settings);
    assert_eq!(fs::read_dir(around.join("dots/agents")).unwrap().count(), 1);
    // A component that is called by its path finds the same closed.
    fs::create_dir(&data).unwrap();
    let wasm = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/prebuilt/file_write.wasm");
    let at = data.to_str().unwrap();
    let arguments = r#"{"path": "log.txt", "content": "x"}"#;
    let call = ["tools", "call", wasm, "file_write", arguments, "--allow-write", "--workspace", at];
    let done = world.run(&call);
    assert!(done.code != 0 && !data.join("log.txt").exists(), "{}{}", done.stdout, done.stderr);
}

/// An agent that may write its workspace, with the workspace in, at and around what belljar keeps.
fn writes_nothing_of_ours(world: &World, data: Option<&Path>) {
    let agent = "---\nname: writer\ndescription: d\ntools: ['*']\n---\nBe brief.\n";
    world.home_file("agents/writer.md", agent);
    world.home_file("transcript.yaml", WRITER);
    let data_root = data.map_or_else(String::new, |data| format!("[server]\ndata = {data:?}\n\n"));
    let settings = "[models.main]\nkind = 'scripted'\nmodel = 'transcript.yaml'\n\n\
         [grants.writer]\ntools = ['file_write', 'shell']\n\
         mounts = [{ path = '/workspace', access = 'read-write' }, \
                   { path = '/around', host = AROUND, access = 'read-write' }]\n";
    let around = world.home().parent().unwrap().to_path_buf();
    let settings = settings.replace("AROUND", &format!("{around:?}"));
    world.home_file("belljar.toml", &format!("{data_root}{settings}"));
    world.run(&["tenants", "add", "red"]).exits(0);
    let sessions = world.home().join("sessions");
    let own = data.unwrap_or(&sessions).join("tenants");
    let own = fs::read_dir(own).unwrap().next().unwrap().unwrap().path();
    let before = world.home_state();
    let work = own.join("../../workspaces").join(own.file_name().unwrap()).canonicalize().unwrap();
    for workspace in [world.home(), own.clone(), own.join("home"), work] {
        let at = workspace.to_str().unwrap();
        let done =
            world.run(&["run", "--agent", "writer", "--workspace", at, "--json", "go"]).exits(0);
        assert!(done.stdout.contains("path-not-allowed"), "{at}: {}", done.stdout);
        assert!(!workspace.join("log.txt").exists(), "{at}");
    }
    // From around it, by paths that lead there, and by putting another directory in its place.
    let below = |path: &Path| path.strip_prefix(&around).unwrap().display().to_string();
    let (home, own) = (below(&world.home()), below(&own));
    let script = format!(
        "cd /around; mkdir -p fake/agents; echo x > fake/agents/own.md; \
         echo x > {home}/agents/own.md; echo x > {own}/home/belljar.toml; rm {home}/belljar.toml; \
         rm -r {home}; mv {home} gone; rm {home}; mv fake {home}; mv {own} gone; \
         echo x > tried"
    );
    let transcript = format!(
        "transcript: 1\neach_run: true\nagents:\n  - agent: writer\n    turns:\n      - calls:\n          \
         - {{name: shell, arguments: {{command: '{script}'}}}}\n      - say: that was all\n"
    );
    let kept = world.home().join("transcript.yaml");
    fs::write(&kept, transcript).unwrap();
    let before_around = world.home_state();
    let done = world.run(&["run", "--agent", "writer", "--json", "go"]).exits(0);
    assert!(done.stdout.contains("path-not-allowed"), "{}", done.stdout);
    assert!(around.join("tried").exists() && !around.join("gone").exists());
    assert_eq!(world.home_state(), before_around);
    assert!(!world.home().join("agents/own.md").exists());
    fs::write(&kept, WRITER).unwrap();
    assert_eq!(world.home_state(), before);
    // The neighbour: its own workspace is written.
    world.run(&["run", "--agent", "writer", "go"]).exits(0);
    assert_eq!(fs::read_to_string(world.workspace().join("log.txt")).unwrap(), "written");
}

#[test]
fn a_tenant_that_is_made_again_inherits_nothing_of_its_predecessors_directories() {
    let world = World::new();
    let first = tenant(&world, "red", "reader", READER);
    let red_files = world.home().join(world.workspace_of("red"));
    fs::write(red_files.join("secret.txt"), SECRET).unwrap();
    let blue = tenant(&world, "blue", "reader", READER);
    let blue_files = world.home().join(world.workspace_of("blue"));
    fs::write(blue_files.join("secret.txt"), SECRET).unwrap();
    let server = Server::start(&world, &[]);
    assert_eq!(say(&server, &first, "reader")["text"], "I know them");
    let removed = world.run(&["tenants", "rm", "red", "--yes"]).exits(0);
    removed.complains(red_files.to_str().unwrap()).complains("yours to delete");
    world.run(&["tenants", "add", "red"]).exits(0);
    let second = key(&world, "red", "admin");
    let (status, agents) = server.get("/v1/agents", Some(&second));
    assert!(status == 200 && !agents.contains("reader"), "{agents}");
    assert!(!server.get("/v1/sessions", Some(&second)).1.contains("reader"));
    let own = [world.tenant("red"), world.workspace_of("red")].map(|own| world.home().join(own));
    assert!(fs::read_dir(&own[1]).unwrap().next().is_none());
    // What was left is left as it was, until it is purged; that takes nobody else's.
    assert_eq!(fs::read_to_string(red_files.join("secret.txt")).unwrap(), SECRET);
    fs::write(own[1].join("note.txt"), "red's second").unwrap();
    world.run(&["tenants", "rm", "red", "--yes", "--purge"]).exits(0).complains("all its files");
    assert!(own.iter().all(|own| !own.exists()));
    assert!(red_files.exists() && blue_files.join("secret.txt").exists());
    assert_eq!(say(&server, &blue, "reader")["text"], "I know them", "the neighbour");
}

#[test]
fn a_grant_to_a_tenants_agent_stands_in_its_audit_log_and_nowhere_else() {
    let world = World::new();
    let _ = tenant(&world, "red", "snoop", SNOOP);
    let _ = tenant(&world, "blue", "reader", READER);
    let (red, blue) = (key(&world, "red", "admin"), key(&world, "blue", "admin"));
    let settings = world.home().join(world.tenant("red")).join("home/belljar.toml");
    let before = fs::read_to_string(&settings).unwrap();
    // Refused, and nothing is written.
    let grant = ["grant", "snoop", "--yes", "--tenant"];
    let with = |more: &[&str]| world.run(&[&grant[..], more].concat());
    with(&["nobody", "--tool", "file_find"]).exits(2).complains("no tenant `nobody`");
    let other = format!("/blue:{}:read", world.home().join(world.tenant("blue")).display());
    with(&["red", "--mount", &other]).exits(2).complains("not a directory of tenant `red`");
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
    let done = with(&["red", "--tool", "file_find=ask", "--host", "https://docs.example"]).exits(0);
    assert!(done.stdout.contains("file_find"), "{}", done.stdout);
    assert!(fs::read_to_string(&settings).unwrap().contains("https://docs.example"));
    assert!(!world.home().join("belljar.toml").exists(), "it is not the operator's own");
    let server = Server::start(&world, &[]);
    let audit = |key: &str| server.get("/v1/audit", Some(key)).1;
    let log: Value = serde_json::from_str(&audit(&red)).unwrap();
    let grants: Vec<&Value> = log["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["action"] == "grant")
        .collect();
    let [grant] = grants[..] else { panic!("{log:#}") };
    assert_eq!((&grant["actor"], &grant["object"]), (&json!("local"), &json!("home/snoop")));
    assert_eq!(grant["detail"]["tools"], json!({"file_find": "ask"}));
    assert_eq!(grant["detail"]["hosts"], json!(["https://docs.example"]));
    assert!(!audit(&blue).contains("docs.example"));
}

#[test]
fn a_secret_outside_of_a_tenants_home_is_refused_by_the_name_of_the_os_sandbox() {
    let world = World::new();
    let red = tenant(&world, "red", "writer", WRITER);
    let blue = tenant(&world, "blue", "writer", WRITER);
    let outside = world.other("elsewhere/key", b"outside-value-1234567890");
    let secret = |name: &str, file: &str| {
        let home = format!("{}/home", world.tenant(name));
        let path = world.home().join(format!("{home}/belljar.toml"));
        let before = fs::read_to_string(&path).unwrap();
        let more = format!(
            "\n[secrets.api]\nhost = 'https://api.example'\nheader = 'x-key'\nfile = '{file}'\n"
        );
        fs::write(path, before + &more).unwrap();
        home
    };
    let red_home = secret("red", outside.to_str().unwrap());
    let blue_home = secret("blue", "key");
    world.home_file(&format!("{blue_home}/key"), "inside-value-1234567890");
    let server = Server::start(&world, &[]);
    say(&server, &red, "writer");
    say(&server, &blue, "writer");
    let done = server.terminate().exits(0);
    let warnings: Vec<&str> =
        done.stderr.lines().filter(|line| line.contains("cannot be used")).collect();
    let [warning] = warnings[..] else { panic!("{}", done.stderr) };
    let red_home = world.home().join(red_home);
    for part in ["secret `api`", "the OS sandbox", red_home.to_str().unwrap(), "`env`"] {
        assert!(warning.contains(part), "no `{part}` in {warning}");
    }
    assert!(!done.stderr.contains("outside-value"));
}
