//! `belljar grant --tenant`, for agents that are made through the API, and `belljar revoke`.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::kit::server::{Server, key};
use crate::kit::{Done, NO_OVERLAYS, World};

const HELPER: &str = "---\nname: helper\ndescription: Helps.\ntools: [file_read, file_write, web_fetch]\n---\nYou help.\n";
const FREE: &str = "---\nname: free\ndescription: Takes what it gets.\n---\nYou help.\n";

const SCRIPT: &str = "transcript: 1\neach_run: true\nagents:\n  - agent: helper\n    turns:\n      - calls: [{name: file_write, arguments: {path: a.txt, content: x}}]\n      - say: done\n";

/// A server with a tenant `acme`, whose admin has made two agents through the API.
fn served(world: &World, data: &[&str]) -> (Server, String) {
    world.run(&[&["tenants", "add", "acme"], data].concat()).exits(0);
    let root = data.get(1).map_or(world.home().join("sessions"), PathBuf::from);
    fs::write(settings(&root), NO_OVERLAYS).unwrap();
    let create = ["keys", "create", "--tenant", "acme", "--scope", "admin", "--name", "test"];
    let key = world.run(&[&create[..], data].concat()).exits(0).stdout.trim().to_owned();
    let server = Server::start(world, data);
    for (slug, text) in [("helper", HELPER), ("free", FREE)] {
        let body = json!({ "slug": slug, "text": text }).to_string();
        let bearer = format!("authorization: Bearer {key}\r\n");
        let (status, body) = server.post("/v1/agents", &bearer, &body);
        assert_eq!(status, 201, "{body}");
    }
    (server, key)
}

/// The tenant's own `belljar.toml`, below the data root.
fn settings(root: &std::path::Path) -> std::path::PathBuf {
    let mut tenants = fs::read_dir(root.join("tenants")).unwrap();
    tenants.next().unwrap().unwrap().path().join("home/belljar.toml")
}

fn grants(server: &Server, key: &str) -> Value {
    let (status, body) = server.get("/v1/grants?agent=library/api/helper", Some(key));
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn an_agent_that_was_made_through_the_api_is_granted_what_is_named_and_it_is_taken_back() {
    let world = World::without_overlays();
    let (server, key) = served(&world, &[]);
    let own = settings(&world.home().join("sessions"));
    let tenant = |args: &[&str]| world.run(&[args, &["--tenant", "acme"]].concat());
    let grant = |args: &[&str]| tenant(&[&["grant"], args, &["--yes"]].concat());
    let revoke = |args: &[&str]| tenant(&[&["revoke"], args, &["--yes"]].concat());

    // Nobody, and a bare name that is the home's: nothing is written.
    let done = grant(&["library/api/helpr", "--tool", "file_write"]).exits(2);
    done.complains("`library/api/helpr`").complains("helper").complains("`--absent`");
    let done = grant(&["helper", "--tool", "file_write"]).exits(2);
    done.complains("grant to that identity").complains("`library/api/helper`");
    tenant(&["explain", "library/api/helpr", "file_write"]).exits(2).complains("helper");
    assert_eq!(fs::read_to_string(&own).unwrap(), NO_OVERLAYS);

    // What the server says is missing is what the command gives.
    let said = grants(&server, &key);
    assert_eq!(said["status"], "blocked", "{said:#}");
    let said = tenant(&["explain", "library/api/helper", "file_write"]).exits(4);
    said.says("belljar grant library/api/helper --tool file_write --tenant acme");
    grant(&["library/api/helper", "--tool", "file_write", "--mount", "/workspace:read-write"])
        .exits(0)
        .complains("`library/api/helper` is ready");
    let text = fs::read_to_string(&own).unwrap();
    let tools = "tools = [\"file_read\", \"file_write\", \"web_fetch\"]\n";
    assert!(text.contains(tools), "{text}");
    tenant(&["explain", "library/api/helper", "file_write", "/workspace/a"]).exits(0);
    assert_eq!(
        fs::read_to_string(world.home().join("belljar.toml")).unwrap(),
        NO_OVERLAYS,
        "the operator's own is another file"
    );

    // Of one that takes whatever it is given, only what was named is written.
    grant(&["library/api/free", "--tool", "shell=ask"]).exits(0);
    let text = fs::read_to_string(&own).unwrap();
    assert!(text.contains("add_tools = { shell = \"ask\" }"), "{text}");
    assert!(!text.contains("spawn_agent"), "{text}");
    tenant(&["explain", "library/api/free", "file_read"]).exits(0);

    // Back, by the same words.
    let back = ["library/api/helper", "--tool", "file_write", "--mount", "/workspace:read-write"];
    let done =
        revoke(&back).exits(0).says("-mounts").complains("is blocked now: tool `file_write`");
    done.complains("the grant of `library/api/helper` gives tools file_read, web_fetch");
    tenant(&["explain", "library/api/helper", "file_write"]).exits(4);
    tenant(&["explain", "library/api/free", "shell"]).exits(0);
    let before = fs::read_to_string(&own).unwrap();
    let done =
        revoke(&back).exits(1).complains("does not give tool `file_write`, mount `/workspace`");
    done.complains("gives tools file_read, web_fetch");
    assert_eq!(fs::read_to_string(&own).unwrap(), before);
    revoke(&["library/api/free", "--all"]).exits(0).complains("has no grant of its own");
    revoke(&["library/api/helper", "--all"]).exits(0);
    assert_eq!(fs::read_to_string(&own).unwrap().trim(), NO_OVERLAYS.trim());
    let done = revoke(&["library/api/helper", "--all"]).exits(1);
    done.complains("no grant for `library/api/helper`");
    revoke(&["library/api/helpr", "--all"]).exits(2).complains("helper");

    // It is listed once, by the name that it is granted by.
    let (_, list) = server.get("/v1/agents", Some(&key));
    let list: Value = serde_json::from_str(&list).unwrap();
    let named = |slug: &str| {
        let all = list["agents"].as_array().unwrap().iter();
        let scopes = all.filter(|agent| agent["slug"] == slug);
        scopes.map(|agent| agent["scope"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (named("helper"), named("free")),
        (vec!["library/api".into()], vec!["library/api".into()])
    );

    // Who gave and who took stands in the tenant's audit log.
    let (_, log) = server.get("/v1/audit", Some(&key));
    for part in ["\"revoke\"", "\"grant\"", "library/api/free", "\"all\":true"] {
        assert!(log.contains(part), "no `{part}` in {log}");
    }
}

#[test]
fn the_data_root_is_named_where_a_command_reads_it() {
    let world = World::without_overlays();
    let root = world.home().with_file_name("elsewhere");
    let data = ["--data", root.to_str().unwrap()];
    world.home_file("script.yaml", SCRIPT);
    world.home_file("belljar.toml", "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n");
    let (server, key) = served(&world, &data);
    let with = |args: &[&str]| world.run(&[args, &data, &["--tenant", "acme"]].concat());
    let grant = ["grant", "library/api/helper", "--asked", "--yes"];
    world.run(&[&grant[..], &["--tenant", "acme"]].concat()).exits(2).complains("no tenant");
    with(&grant).exits(0).complains("is ready");
    with(&["explain", "library/api/helper", "file_write"]).exits(0);
    let bad = ["explain", "library/api/helper", "file_write", "--tenant", "acme"];
    world.run(&bad).exits(2).complains("there is no tenant `acme`");
    with(&["receipts"]).exits(0).complains("no runs");
    drop(server);

    // A turn of the tenant, and its receipts.
    let server = Server::start(&world, &data);
    let body = json!({ "agent": "library/api/helper", "text": "go" }).to_string();
    let (status, body) =
        server.post("/v1/chat", &format!("authorization: Bearer {key}\r\n"), &body);
    assert_eq!(status, 200, "{body}");
    with(&["receipts"]).exits(0).says("library/api/helper").says("completed");
    with(&["receipts", "latest"]).exits(0).says("file_write");
    with(&["replay", "latest"]).exits(0).says("file_write").complains("of a conversation");
    world.run(&["receipts"]).exits(0).complains("no runs");
    world.run(&["receipts", "--tenant", "acme"]).exits(2).complains("no tenant `acme`");
    let listed = world.run(&[&["doctor"], &data[..]].concat());
    listed.says("1 can be served");
    with(&["revoke", "library/api/helper", "--all", "--yes"]).exits(0);
}

#[test]
fn what_grant_gave_revoke_takes_back_and_the_comments_stay() {
    let world = World::without_overlays();
    let text = "# my settings\n\n[grants.free] # for now\nhosts = [\"https://a.test\"] # one\n";
    let path = world.home_file("belljar.toml", text);
    let text = &*fs::read_to_string(&path).unwrap();
    let free = FREE.replace("---\nYou", "visibility: user-facing\n---\nYou");
    world.home_file("agents/free.md", &free);
    let words = ["--tool", "shell", "--host", "https://b.test", "--limit", "steps=50"];
    world.run(&[&["grant", "free"], &words[..], &["--yes"]].concat()).exits(0);
    world.run(&["explain", "free", "shell"]).exits(0);
    let given = fs::read_to_string(&path).unwrap();
    world.run(&[&["revoke", "free"], &words[..]].concat()).exits(2).complains("--yes");
    assert_eq!(fs::read_to_string(&path).unwrap(), given, "nothing without a yes");
    world.run(&[&["revoke", "free"], &words[..], &["--yes"]].concat()).exits(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    world.run(&["explain", "free", "shell"]).exits(4);
    world.run(&["explain", "free", "file_read"]).exits(0);

    // What an agent has by default is not a grant to take back.
    let done = world.run(&["revoke", "free", "--tool", "file_read", "--yes"]).exits(1);
    done.complains("belljar grant free --tool file_read=deny");
    world.run(&["revoke", "free", "--yes"]).exits(2).complains("`--all`");
    world.run(&["revoke", "free", "--limit", "stepz"]).exits(2).complains("no limit `stepz`");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let key = key(&world, "local", "admin");
    let server = Server::start(&world, &[]);
    let (_, log) = server.get("/v1/audit", Some(&key));
    assert_eq!(log.matches("\"revoke\"").count(), 1, "{log}");
}

#[test]
fn a_grant_for_an_agent_that_is_not_there_yet_is_said_to_be_one() {
    let world = World::without_overlays();
    let grant = ["grant", "later", "--tool", "shell", "--yes"];
    world.run(&grant).exits(2).complains("`--absent`");
    let config = || fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    assert_eq!(config(), NO_OVERLAYS);
    let done = world.run(&[&grant[..], &["--absent"]].concat()).exits(0);
    done.complains("there is no agent `home/later` yet");
    assert!(config().ends_with("\n[grants.later]\nadd_tools = [\"shell\"]\n"), "{}", config());
    world.run(&["revoke", "later", "--tool", "shell", "--yes"]).exits(0);
    assert_eq!(config(), NO_OVERLAYS);
    // What others have by default is not written down for it.
    let defaults = "[defaults.user-facing]\nhosts = [\"https://a.test\"]\nmounts = []\n";
    world.home_file("belljar.toml", defaults);
    let mount = format!("/in:{}:read", world.workspace().display());
    let more = ["--host", "https://b.test", "--mount", &mount, "--absent", "--yes"];
    world.run(&[&["grant", "ghost"], &more[..]].concat()).exits(0);
    let text = fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    let ghost = text.strip_prefix(defaults).unwrap();
    assert!(
        ghost.contains("hosts = [\"https://b.test\"]\n") && !ghost.contains("a.test"),
        "{text}"
    );
    assert!(ghost.contains("/in") && !ghost.contains("path = \"/workspace\""), "{text}");
    // And what it was given by name stays beside what it is given next.
    world.run(&["grant", "ghost", "--host", "https://c.test", "--absent", "--yes"]).exits(0);
    let text = fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    assert!(text.contains("hosts = [\"https://b.test\", \"https://c.test\"]"), "{text}");
    // A team is granted what its agents have at most.
    world.home_file(
        "teams/t.yaml",
        "name: t\ndescription: d\nstages:\n  - agent: general-purpose\n",
    );
    world.run(&["grant", "t", "--tool", "shell", "--yes"]).exits(0);
}

#[test]
fn to_take_back_gives_nothing_and_says_what_holds_by_default() {
    let world = World::new();
    world.home_file("agents/free.md", FREE);
    let config = world.home().join("belljar.toml");
    for grant in ["add_tools = { file_read = 'deny' }", "tools = []\nmounts = []"] {
        let text = format!("[grants.free]\n{grant}\n");
        world.home_file("belljar.toml", &text);
        for words in [&["--tool", "file_read"][..], &["--all"]] {
            let done = world.run(&[&["revoke", "free", "--yes"], words].concat()).exits(1);
            done.complains("nothing is taken back");
            assert_eq!(fs::read_to_string(&config).unwrap(), text, "no effect");
        }
        world.run(&["explain", "free", "file_read"]).exits(4);
    }
    world.home_file("belljar.toml", "[grants.free]\nadd_tools = ['file_read', 'shell']\n");
    let done = world.run(&["revoke", "free", "--tool", "file_read", "--yes"]).exits(0);
    done.complains("has `file_read` by default").complains("--tool file_read=deny");
    // Its neighbour in the same list stays.
    assert!(fs::read_to_string(&config).unwrap().contains("shell"));
}

#[cfg(unix)]
#[test]
fn grants_that_are_written_at_the_same_time_are_all_there() {
    let world = World::new();
    world.home_file("agents/free.md", FREE);
    let host = |number: u32| format!("https://h{number}.test");
    let grant = |number: u32| {
        let host = host(number);
        world.spawn(&["grant", "free", "--host", &host, "--yes"])
    };
    let all: Vec<_> = (0..6).map(grant).collect();
    for child in all {
        Done::of(child.wait_with_output().unwrap()).exits(0);
    }
    let text = fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    assert!((0..6).all(|number| text.contains(&host(number))), "{text}");
    let revoke = |number: u32| {
        let host = host(number);
        world.spawn(&["revoke", "free", "--host", &host, "--yes"])
    };
    let all: Vec<_> = (0..3).map(revoke).chain([grant(7)]).collect();
    for child in all {
        Done::of(child.wait_with_output().unwrap()).exits(0);
    }
    let text = fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    let there: Vec<bool> = (0..8).map(|number| text.contains(&host(number))).collect();
    assert_eq!(there, [false, false, false, true, true, true, false, true], "{text}");
}
