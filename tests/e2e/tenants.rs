//! What a tenant's tools reach when the server runs as it is run: behind the second wall.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::kit::World;
use crate::serve::{Server, key};
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
          - {name: file_read, arguments: {path: ../../blue/workspace/secret.txt}}
          - {name: file_read, arguments: {path: BLUE/secret.txt}}
          - {name: file_read, arguments: {path: /workspace/../../blue/workspace/secret.txt}}
          - {name: file_read, arguments: {path: to-store}}
          - {name: file_read, arguments: {path: /proc/self/environ}}
          - {name: file_list, arguments: {path: to-directory}}
          - {name: file_list, arguments: {path: ../../blue}}
          - {name: file_write, arguments: {path: to-directory/planted.txt, content: red}}
          - {name: file_write, arguments: {path: ../../blue/workspace/planted.txt, content: red}}
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
    let blue_files = root.join(world.tenant("blue")).join("workspace");
    let steps_back = format!("../../{}", world.tenant("blue").rsplit('/').next().unwrap());
    let script = SNOOP.replace("../../blue", &steps_back);
    let script = script.replace("BLUE", blue_files.to_str().unwrap());
    let red = tenant(&world, "red", "snoop", &script);
    fs::write(blue_files.join("secret.txt"), SECRET).unwrap();
    let red_files = root.join(world.tenant("red")).join("workspace");
    fs::write(red_files.join("own.txt"), "red's").unwrap();
    symlink(blue_files.join("secret.txt"), red_files.join("to-file")).unwrap();
    symlink(format!("{steps_back}/workspace"), red_files.join("to-directory")).unwrap();
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

#[test]
fn a_tenant_that_is_made_again_inherits_nothing_of_its_predecessors_directories() {
    let world = World::new();
    let first = tenant(&world, "red", "reader", READER);
    let red_files = world.home().join(world.tenant("red")).join("workspace");
    fs::write(red_files.join("secret.txt"), SECRET).unwrap();
    let blue = tenant(&world, "blue", "reader", READER);
    let blue_files = world.home().join(world.tenant("blue")).join("workspace");
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
    let own = world.home().join(world.tenant("red"));
    assert!(fs::read_dir(own.join("workspace")).unwrap().next().is_none());
    // What was left is left as it was, until it is purged; that takes nobody else's.
    assert_eq!(fs::read_to_string(red_files.join("secret.txt")).unwrap(), SECRET);
    fs::write(own.join("workspace/note.txt"), "red's second").unwrap();
    world.run(&["tenants", "rm", "red", "--yes", "--purge"]).exits(0).complains("all its files");
    assert!(!own.exists() && red_files.exists() && blue_files.join("secret.txt").exists());
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
