//! `belljar serve` and what belongs to it: keys and tenants.

use crate::kit::World;
use crate::kit::server::{Server, key};

#[cfg(unix)]
#[test]
fn a_server_answers_until_it_is_told_to_stop() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    assert_eq!(server.get("/readyz", None).0, 200);
    let (status, body) = server.get("/v1/agents", None);
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("general-purpose"), "{body}");
    let address = server.address().to_owned();
    let done = server.terminate().exits(0).complains("there are no keys");
    let version = env!("CARGO_PKG_VERSION");
    let done = done.complains(&format!("belljar {version} at http://{address}: 1 tenant; the OS"));
    assert!(done.stderr.contains("stopped"), "{}", done.stderr);
}

#[test]
fn an_address_that_others_reach_needs_a_key_first() {
    let world = World::new();
    let done = world.run(&["serve", "--listen", "0.0.0.0:0"]).exits(2);
    done.complains("there is no key").complains("belljar keys create");
    world.run(&["serve", "--listen", "x"]).exits(2);
    // With a key it has to be meant, and says what passes there.
    let key = key(&world, "local", "admin");
    let far = ["serve", "--listen", "0.0.0.0:0"];
    let done = world.run(&far).exits(2).complains("not encrypted");
    done.complains("`--public`").complains("`--host-name NAME`");
    for meant in [&["--public"][..], &["--host-name", "jar.example.org"]] {
        let mut server = Server::of(&mut world.command(&[&far[..], meant].concat()));
        server.address = server.address().replace("0.0.0.0", "127.0.0.1");
        assert_eq!(server.get("/v1/agents", Some(&key)).0, 200, "{meant:?}");
        server.terminate().exits(0).complains("without TLS");
    }
    world.run(&["serve", "--host-name", "http://x"]).exits(2).complains("not the name of a host");
}

#[test]
fn keys_are_made_listed_and_revoked() {
    let world = World::new();
    let key = key(&world, "local", "read-only");
    assert_eq!(key.len(), 63, "{key}");
    let listed = world.run(&["keys", "list", "--json"]).exits(0);
    let (id, secret) = (&key[3..19], &key[20..]);
    assert!(listed.stdout.contains(id) && !listed.stdout.contains(secret), "{}", listed.stdout);
    world.run(&["keys", "list"]).exits(0).says(id).says("valid");
    let server = Server::start(&world, &[]);
    assert_eq!(server.get("/v1/sessions", Some(&key)).0, 200);
    assert_eq!(server.get("/v1/sessions", None).0, 401);
    // While the server runs.
    world.run(&["keys", "revoke", id]).exits(0);
    assert_eq!(server.get("/v1/sessions", Some(&key)).0, 401);
    world.run(&["keys", "revoke", "0000000000000000"]).exits(2).complains("no key");
    let args = ["keys", "create", "--tenant", "nobody", "--scope", "admin", "--name", "x"];
    world.run(&args).exits(2).complains("belljar tenants add nobody");
}

#[cfg(unix)]
#[test]
fn a_server_whose_keys_are_gone_is_open_only_when_the_operator_says_so() {
    let world = World::new();
    world.run(&["keys", "open-to-this-machine", "--yes"]).exits(0).complains("no key is needed");
    world.run(&["tenants", "add", "blue"]).exits(0);
    let _ = key(&world, "blue", "admin");
    let own = key(&world, "local", "admin");
    let server = Server::start(&world, &[]);
    world.run(&["tenants", "rm", "blue", "--yes"]).exits(0);
    let open = ["keys", "open-to-this-machine", "--yes"];
    world.run(&open).exits(2).complains("there are keys that open");
    world.run(&["keys", "revoke", &own[3..19]]).exits(0).complains("it was the last one");
    // It runs on, and is started again: shut.
    assert_eq!(server.get("/v1/audit", None).0, 401);
    server.terminate().exits(0);
    let server = Server::start(&world, &[]);
    assert_eq!(server.get("/v1/audit", None).0, 401);
    assert_eq!(server.get("/healthz", None).0, 200);
    server.terminate().exits(0).complains("nobody is let in");
    world.run(&open[..2]).exits(2).complains("--yes");
    world.run(&open).exits(0);
    let server = Server::start(&world, &[]);
    let (status, audit) = server.get("/v1/audit", None);
    assert_eq!(status, 200);
    assert!(audit.contains("open_without_keys"), "{audit}");
    let again = key(&world, "local", "admin");
    assert_eq!(server.get("/v1/audit", Some(&again)).0, 200);
}

#[cfg(unix)]
#[test]
fn a_server_that_had_an_issuer_is_open_only_when_the_operator_says_so() {
    let world = World::new();
    let issuer = "[server.issuers.corp]\nurl = 'https://id.example.org'\naudience = 'a'\n";
    world.home_file("belljar.toml", issuer);
    let server = Server::start(&world, &[]);
    assert_eq!(server.get("/v1/audit", None).0, 401);
    server.terminate().exits(0);
    world.home_file("belljar.toml", "");
    let server = Server::start(&world, &[]);
    assert_eq!(server.get("/v1/audit", None).0, 401);
    server.terminate().exits(0).complains("nobody is let in");
    world.run(&["keys", "open-to-this-machine", "--yes"]).exits(0);
    let server = Server::start(&world, &[]);
    assert_eq!(server.get("/v1/audit", None).0, 200);
}

#[test]
fn a_tenant_has_its_own_files_and_no_others() {
    let world = World::new();
    world.run(&["tenants", "add", "blue"]).exits(0);
    world.run(&["tenants", "add", "blue"]).exits(2);
    world.run(&["tenants", "add", "Blue!"]).exits(2).complains("a` to `z");
    let key = key(&world, "blue", "admin");
    let agent = "---\nname: bluebird\ndescription: Sings.\ntools: []\n---\nSing.\n";
    world.home_file(&format!("{}/home/agents/bluebird.md", world.tenant("blue")), agent);
    world.home_file("agents/homebird.md", &agent.replace("bluebird", "homebird"));
    let server = Server::start(&world, &[]);
    let (status, body) = server.get("/v1/agents", Some(&key));
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("bluebird") && !body.contains("homebird"), "{body}");
    world.run(&["tenants", "disable", "blue"]).exits(0);
    assert_eq!(server.get("/v1/agents", Some(&key)).0, 401);
    world.run(&["tenants", "disable", "blue", "--enable"]).exits(0);
    assert_eq!(server.get("/v1/agents", Some(&key)).0, 200);
    world.run(&["tenants", "rm", "blue"]).exits(2).complains("--yes");
    world.run(&["tenants", "rm", "blue", "--yes"]).exits(0);
    assert_eq!(server.get("/v1/agents", Some(&key)).0, 401);
    world.run(&["tenants", "list"]).exits(0).says("local");
}

#[cfg(unix)]
#[test]
fn a_tenant_that_reaches_out_of_its_directory_is_not_served_and_others_are() {
    let world = World::new();
    let tenants = ["elsewhere", "mounts", "hooks", "good"];
    let keys: Vec<String> = tenants
        .iter()
        .map(|name| {
            world.run(&["tenants", "add", name]).exits(0);
            key(&world, name, "admin")
        })
        .collect();
    let elsewhere = world.home().join(world.workspace_of("elsewhere"));
    std::fs::remove_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(world.workspace(), &elsewhere).unwrap();
    let mounts = format!(
        "[defaults.internal]\nmounts = [{{ path = '/data', host = '{}', access = 'read' }}]\n",
        world.workspace().display()
    );
    world.home_file(&format!("{}/home/belljar.toml", world.tenant("mounts")), &mounts);
    let hooks = "[[hooks]]\nevent = 'PreToolUse'\ncommand = 'exit 0'\n";
    world.home_file(&format!("{}/home/belljar.toml", world.tenant("hooks")), hooks);
    let server = Server::start(&world, &[]);
    for (name, key) in tenants.iter().zip(&keys) {
        let (status, body) = server.get("/v1/agents", Some(key));
        let expected = if *name == "good" { 200 } else { 503 };
        assert_eq!(status, expected, "{name}: {body}");
        let path = world.workspace().display().to_string();
        assert!(!body.contains(&path), "{name}: {body}");
    }
    let done = server.terminate().exits(0);
    for text in ["restart with another `--data`", "which is not the tenant's own", "has hooks"] {
        assert!(done.stderr.contains(text), "no `{text}` in {}", done.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_server_with_tenants_does_not_start_with_command_hooks_whether_there_is_an_os_sandbox_or_not() {
    for more in [&[][..], &["--no-os-sandbox"]] {
        let world = World::new();
        let mark = world.home().join("ran");
        let hook =
            format!("[[hooks]]\nevent = 'PreToolUse'\ncommand = \"touch '{}'\"\n", mark.display());
        world.home_file("belljar.toml", &hook);
        // The operator alone is served with them.
        let own = key(&world, "local", "admin");
        let server = Server::start(&world, more);
        // One that is made meanwhile is not, and the operator is as before.
        world.run(&["tenants", "add", "blue"]).exits(0);
        let blue = key(&world, "blue", "admin");
        let (status, body) = server.get("/v1/agents", Some(&blue));
        assert_eq!(status, 503, "{more:?}: {body}");
        assert_eq!(server.get("/v1/agents", Some(&own)).0, 200, "{more:?}");
        assert_eq!(
            server.get("/readyz", None).1,
            r#"{"status":"ok","tenants_not_served":1,"tenants_on_older_settings":0,"tenants_waiting_for_restart":0}"#
        );
        server.terminate().exits(0).complains("make it a component");
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        let done = world.run(&[&serve[..], more].concat()).exits(2);
        done.complains("hook 1 of").complains("`PreToolUse`").complains("there is tenant `blue`");
        assert!(!mark.exists());
        // Disabled, it is in nobody's way.
        world.run(&["tenants", "disable", "blue"]).exits(0);
        let server = Server::start(&world, more);
        assert_eq!(server.get("/v1/agents", Some(&own)).0, 200, "{more:?}");
    }
}

#[cfg(unix)]
#[test]
fn what_keeps_a_tenant_from_being_served_is_said_at_the_start_and_wherever_one_looks() {
    let world = World::new();
    for name in ["blue", "good"] {
        world.run(&["tenants", "add", name]).exits(0);
    }
    let keys = ["blue", "good"].map(|name| key(&world, name, "admin"));
    world.run(&["doctor"]).exits(0).says("2 can be served");
    let file = format!("{}/home/belljar.toml", world.tenant("blue"));
    world.home_file(&file, "[server]\ntenant_tunrs = 3\n");
    let typo = "tenant_tunrs";
    world.run(&["doctor"]).exits(1).says("1 of 2 cannot be served").says(typo);
    world.run(&["tenants", "list"]).exits(0).says("not served").complains(typo);
    let listed = world.run(&["tenants", "list", "--json"]).exits(0).json();
    assert!(listed[0]["not_served"].as_str().unwrap().contains(typo), "{listed}");
    assert!(listed[1].get("not_served").is_none(), "{listed}");
    let server = Server::start(&world, &[]);
    let older = r#""tenants_on_older_settings":0,"tenants_waiting_for_restart":0"#;
    let ready = |count: u32| format!(r#"{{"status":"ok","tenants_not_served":{count},{older}}}"#);
    // Before anybody has called.
    assert_eq!(server.get("/readyz", None), (200, ready(1)));
    for _ in 0..20 {
        assert_eq!(server.get("/v1/agents", Some(&keys[0])).0, 503);
    }
    assert_eq!(server.get("/v1/agents", Some(&keys[1])).0, 200, "the neighbour");
    // Corrected, it is served without a restart.
    world.home_file(&file, "[server]\ntenant_turns = 3\n");
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while server.get("/v1/agents", Some(&keys[0])).0 != 200 {
        assert!(std::time::Instant::now() < patience, "it is never served");
    }
    assert_eq!(server.get("/readyz", None), (200, ready(0)));
    let done = server.terminate().exits(0).complains("tenant `blue` is not served");
    let done = done.complains("3 tenants, 1 of them not served; the OS sandbox: ");
    assert!(done.stderr.contains(typo) && !done.stderr.contains("tenant `good` is not"));
    // Said once, however many asked.
    assert_eq!(done.stderr.matches(typo).count(), 1, "{}", done.stderr);
}

/// A model that writes a file, for an agent that no grant lets write.
const WRITES: &str = "
transcript: 1
each_run: true
agents:
  - agent: scribe
    turns:
      - calls: [{name: file_write, arguments: {path: note.txt, content: written}}]
      - say: done
";

#[cfg(target_os = "linux")]
#[test]
fn only_a_server_that_was_started_with_apply_writes_to_its_own_workspace() {
    let world = World::new();
    let scribe = "---\nname: scribe\ndescription: d\ntools: [file_write]\n---\nBe brief.\n";
    world.home_file("agents/scribe.md", scribe);
    world.home_file("script.yaml", WRITES);
    world.home_file("belljar.toml", "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n");
    let note = world.workspace().join("note.txt");
    let apply = |more: &[&str]| {
        let server = Server::start(&world, more);
        let (status, said) = server.post("/v1/chat", "", r#"{"agent": "scribe", "text": "go"}"#);
        assert_eq!(status, 200, "{said}");
        let answer: serde_json::Value = serde_json::from_str(&said).unwrap();
        let session = answer["session"].as_str().unwrap();
        server.post(&format!("/v1/sessions/{session}/apply"), "", "{}")
    };
    let (status, said) = apply(&[]);
    assert_eq!(status, 503, "{said}");
    assert!(said.contains("belljar serve --apply"), "{said}");
    assert!(!note.exists());
    let (status, said) = apply(&["--apply"]);
    assert_eq!(status, 200, "{said}");
    assert_eq!(std::fs::read_to_string(note).unwrap(), "written");
}
