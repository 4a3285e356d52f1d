//! Grants to a tenant while the server runs, behind the OS sandbox that it has put up at its start.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::kit::server::{Server, key};
use crate::kit::{World, until};

const AGENT: &str = "---\nname: writer\ndescription: d\ntools: ['*']\n---\nBe brief.\n";

const SCRIPT: &str = "
transcript: 1
each_run: true
agents:
  - agent: writer
    turns:
      - calls:
          - {name: file_write, arguments: {path: log.txt, content: written}}
          - {name: file_write, arguments: {path: /out/log.txt, content: written}}
          - {name: file_read, arguments: {path: note.txt}}
      - say: that was all
";

const MODEL: &str = "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n\n";

/// The grants at the start: to look.
const LOOKS: &str = "[grants.writer]\ntools = ['file_read']\n";

/// A tenant with an agent that tries to write, and its key.
fn tenant(world: &World, name: &str, grants: &str) -> String {
    world.run(&["tenants", "add", name]).exits(0);
    let home = format!("{}/home", world.tenant(name));
    world.home_file(&format!("{home}/agents/writer.md"), AGENT);
    world.home_file(&format!("{home}/script.yaml"), SCRIPT);
    world.home_file(&format!("{home}/belljar.toml"), &format!("{MODEL}{grants}"));
    world.home_file(&format!("{}/note.txt", world.workspace_of(name)), "a note");
    key(world, name, "admin")
}

/// A turn: whether each of its calls was refused.
fn say(server: &Server, key: &str) -> Vec<bool> {
    let auth = format!("authorization: Bearer {key}\r\n");
    let body = json!({"agent": "writer", "text": "go"}).to_string();
    let (status, said) = server.post("/v1/chat", &auth, &body);
    assert_eq!(status, 200, "{said}");
    let answer: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(answer["status"], "completed", "{answer:#}");
    let session = answer["session"].as_str().unwrap();
    let said = server.get(&format!("/v1/sessions/{session}/messages?full=true"), Some(key)).1;
    let said: Value = serde_json::from_str(&said).unwrap();
    let last = said["messages"].as_array().unwrap().last().unwrap();
    let results = last["messages"].as_array().unwrap().iter();
    let results = results.filter_map(|message| message["results"].as_array()).flatten();
    results.map(|result| result["is_error"].as_bool().unwrap()).collect()
}

fn written(world: &World, name: &str) -> PathBuf {
    world.home().join(world.workspace_of(name)).join("log.txt")
}

fn grant(world: &World, name: &str, more: &[&str]) -> crate::kit::Done {
    let grant = ["grant", "writer", "--tool", "file_write", "--tenant", name, "--yes"];
    world.run(&[&grant[..], more].concat())
}

fn state(world: &World, name: &str) -> Value {
    let listed = world.run(&["tenants", "list", "--json"]).exits(0).json();
    listed.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone()
}

fn ready(server: &Server, count: &str) -> Value {
    serde_json::from_str::<Value>(&server.get("/readyz", None).1).unwrap()[count].clone()
}

const WORKSPACE: [&str; 2] = ["--mount", "/workspace:read-write"];

#[test]
fn a_tenant_writes_its_workspace_from_its_first_grant_on_and_no_other_does() {
    let world = World::new();
    let [red, blue] = ["red", "blue"].map(|name| tenant(&world, name, LOOKS));
    let server = Server::start(&world, &[]);
    assert_eq!(say(&server, &red), [true, true, false]);
    let done = grant(&world, "red", &WORKSPACE).exits(0);
    assert!(!done.stderr.contains("restart"), "{}", done.stderr);
    assert_eq!(say(&server, &red), [false, true, false]);
    assert_eq!(fs::read_to_string(written(&world, "red")).unwrap(), "written");
    // Of what the process may write now, an agent has what it was granted.
    assert_eq!(say(&server, &blue), [true, true, false], "the neighbour");
    assert!(!written(&world, "blue").exists());
    // One that is made now, and called for the first time after its grant.
    let green = tenant(&world, "green", LOOKS);
    grant(&world, "green", &WORKSPACE).exits(0);
    assert_eq!(say(&server, &green), [false, true, false]);
    assert!(written(&world, "green").exists());
    assert_eq!(ready(&server, "tenants_waiting_for_restart"), 0);
    assert_eq!(state(&world, "green")["state"], "enabled");
    // Taken back, it is gone at once.
    let back = ["revoke", "writer", "--tool", "file_write", "--tenant", "red", "--yes"];
    world.run(&back).exits(0);
    fs::remove_file(written(&world, "red")).unwrap();
    assert_eq!(say(&server, &red), [true, true, false]);
    assert!(!written(&world, "red").exists());
}

#[test]
fn a_tenant_that_was_broken_at_the_start_is_served_and_writes_once_it_is_mended() {
    let world = World::new();
    let red = tenant(&world, "red", "[grants.writer]\ntolos = ['file_read']\n");
    let blue = tenant(&world, "blue", LOOKS);
    let server = Server::start(&world, &[]);
    let broken = state(&world, "red");
    assert_eq!(broken["state"], "not-served", "{broken}");
    assert!(broken["not_served"].as_str().unwrap().contains("tolos"), "{broken}");
    world.run(&["tenants", "list"]).exits(0).says("not served").complains("tolos");
    assert_eq!(server.get("/v1/agents", Some(&red)).0, 503);
    let file = format!("{}/home/belljar.toml", world.tenant("red"));
    let writes = "tools = ['file_read', 'file_write']\n\
        mounts = [{ path = '/workspace', access = 'read-write' }]\n";
    world.home_file(&file, &format!("{MODEL}[grants.writer]\n{writes}"));
    assert_eq!(state(&world, "red")["state"], "enabled");
    until("served", || server.get("/v1/agents", Some(&red)).0 == 200);
    assert_eq!(say(&server, &red), [false, true, false]);
    assert_eq!(say(&server, &blue), [true, true, false], "the neighbour");
    assert_eq!(ready(&server, "tenants_not_served"), 0);
    // Broken again, it is served as before, and the same word says so wherever one looks.
    world.home_file(&file, &format!("{MODEL}[grants.writer]\ntolos = []\n"));
    assert_eq!(say(&server, &red), [false, true, false]);
    let older = state(&world, "red");
    assert_eq!(
        (&older["state"], older["not_served"].is_string()),
        (&json!("older-settings"), true)
    );
    assert_eq!(ready(&server, "tenants_on_older_settings"), 1);
    drop(server);
    assert_eq!(state(&world, "red")["state"], "not-served", "nobody serves it now");
}

#[test]
fn a_directory_beside_the_home_waits_for_a_restart_and_is_named_wherever_one_looks() {
    let world = World::new();
    let [red, blue] = ["red", "blue"].map(|name| tenant(&world, name, LOOKS));
    let server = Server::start(&world, &[]);
    assert_eq!(say(&server, &red), [true, true, false]);
    let out = |name: &str| world.home().join(world.tenant(name)).join("out");
    for name in ["red", "blue"] {
        fs::create_dir(out(name)).unwrap();
        let mount = format!("/out:{}:read-write", out(name).display());
        let more = [&WORKSPACE[..], &["--mount", &mount]].concat();
        let done = grant(&world, name, &more).exits(0);
        let done = done.complains("cannot give this before it is restarted");
        let done = done.complains(out(name).to_str().unwrap());
        assert!(!done.stderr.contains("`/workspace`"), "{}", done.stderr);
    }
    // All else of the same change holds, for one that is served and for one that calls first.
    for (name, key) in [("red", &red), ("blue", &blue)] {
        for _ in 0..2 {
            assert_eq!(say(&server, key), [false, true, false], "{name}");
        }
        assert!(written(&world, name).exists() && !out(name).join("log.txt").exists());
        let listed = state(&world, name);
        assert_eq!(listed["state"], "restart-needed", "{listed}");
        let waits = listed["waits_for_restart"][0].as_str().unwrap();
        assert!(waits.contains(out(name).to_str().unwrap()), "{waits}");
    }
    server.signal(Signal::HUP);
    assert_eq!(ready(&server, "tenants_waiting_for_restart"), 2);
    world.run(&["tenants", "list"]).exits(0).says("restart needed").complains("after a restart");
    let done = server.terminate().exits(0);
    for name in ["red", "blue"] {
        let said = done.stderr.lines().filter(|line| line.contains(out(name).to_str().unwrap()));
        let said: Vec<&str> = said.collect();
        let [said] = said[..] else { panic!("{}", done.stderr) };
        assert!(said.contains("takes effect after a restart") && said.contains(name), "{said}");
    }
    let server = Server::start(&world, &[]);
    assert_eq!(state(&world, "red")["state"], "enabled");
    assert_eq!(say(&server, &red), [false, false, false]);
    assert!(out("red").join("log.txt").exists());
    assert_eq!(ready(&server, "tenants_waiting_for_restart"), 0);
}

#[test]
fn the_operators_own_directory_that_is_granted_late_is_named_by_grant() {
    let world = World::new();
    world.home_file("agents/writer.md", AGENT);
    let out = world.other("out/x", b"");
    let out = out.parent().unwrap();
    let mount = format!("/out:{}:read-write", out.display());
    let grant = ["grant", "writer", "--mount", &mount, "--yes"];
    let server = Server::start(&world, &[]);
    let done = world.run(&grant).exits(0).complains("before it is restarted");
    done.complains(out.to_str().unwrap());
    until("seen", || ready(&server, "tenants_waiting_for_restart") == 1);
    assert_eq!(state(&world, "local")["state"], "restart-needed");
    drop(server);
    // Nobody runs, so nothing waits.
    world.run(&["revoke", "writer", "--all", "--yes"]).exits(0);
    let done = world.run(&grant).exits(0);
    assert!(!done.stderr.contains("restart"), "{}", done.stderr);
    let server = Server::start(&world, &[]);
    assert_eq!(ready(&server, "tenants_waiting_for_restart"), 0);
}

#[test]
fn no_agent_is_granted_to_write_a_tenants_home() {
    let world = World::new();
    let red = tenant(&world, "red", LOOKS);
    let blue = tenant(&world, "blue", LOOKS);
    let own = world.home().join(world.tenant("red"));
    let file = own.join("home/belljar.toml");
    let before = fs::read_to_string(&file).unwrap();
    for path in [own.clone(), own.join("home"), own.join("home/agents")] {
        let mount = format!("/h:{}:read-write", path.display());
        grant(&world, "red", &["--mount", &mount]).exits(2).complains("the home of tenant `red`");
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
        let by_hand = format!(
            "{MODEL}[grants.writer]\nmounts = [{{ path = '/h', host = '{}', access = 'read-write' }}]\n",
            path.display()
        );
        fs::write(&file, by_hand).unwrap();
        let listed = state(&world, "red");
        assert!(listed["not_served"].as_str().unwrap().contains("holds the home"), "{listed}");
        fs::write(&file, &before).unwrap();
    }
    let server = Server::start(&world, &[]);
    assert_eq!(say(&server, &red), [true, true, false]);
    assert_eq!(say(&server, &blue), [true, true, false]);
}

#[test]
fn a_workspace_that_an_older_program_has_put_beside_the_home_stays_in_use() {
    let world = World::new();
    let red = tenant(&world, "red", LOOKS);
    let older = world.home().join(world.tenant("red")).join("workspace");
    let new = world.home().join(world.workspace_of("red"));
    fs::rename(&new, &older).unwrap();
    let server = Server::start(&world, &[]);
    assert_eq!(say(&server, &red), [true, true, false]);
    grant(&world, "red", &WORKSPACE).exits(0);
    assert_eq!(say(&server, &red), [false, true, false]);
    assert!(older.join("log.txt").exists() && !new.exists());
    world.run(&["tenants", "rm", "red", "--yes"]).exits(0).complains(older.to_str().unwrap());
}
