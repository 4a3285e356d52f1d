//! `belljar add` with an address: what is fetched, from whom, and what never is.

mod host;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use self::host::{Answer, TestHost};
use crate::kit::{Done, World};

fn agent(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Builds {name}.\ntools: Read\n---\nYou are {name}.\n")
}

fn git(at: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
        .args(["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(at)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

fn commit(tree: &Path, files: &[(&str, &[u8])]) -> String {
    for (path, bytes) in files {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    git(tree, &["add", "."]);
    git(tree, &["commit", "--quiet", "--allow-empty", "-m", "more"]);
    git(tree, &["rev-parse", "HEAD"])
}

/// An empty repository beside the home.
fn work_tree(world: &World, name: &str) -> PathBuf {
    let tree = world.home().parent().unwrap().join("work").join(name);
    fs::create_dir_all(&tree).unwrap();
    git(&tree, &["init", "--quiet"]);
    tree
}

fn start_host(world: &World) -> TestHost {
    let folder = world.home().parent().unwrap().join("served");
    fs::create_dir_all(&folder).unwrap();
    TestHost::start(&folder)
}

const PARTIAL: &[&str] = &["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"];

fn add(world: &World, source: &str, more: &[&str]) -> Done {
    world.run(&[&["add", source, "--yes"], more].concat())
}

fn ids(world: &World) -> Vec<String> {
    let list = world.run(&["agents", "list", "--json"]).json();
    let ids = list.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned());
    ids.filter(|id| id.starts_with("library/")).collect()
}

#[test]
fn a_repository_is_fetched_without_its_history_and_without_long_files() {
    let world = World::new();
    let host = start_host(&world);
    let tree = work_tree(&world, "lib");
    let old = commit(&tree, &[("agents/a.md", agent("a").as_bytes())]);
    git(&tree, &["tag", "v1"]);
    let long = vec![b'x'; (1 << 20) + 1];
    let new = commit(
        &tree,
        &[("agents/b.md", agent("b").as_bytes()), ("media.bin", &long), ("agents/long.md", &long)],
    );
    host.publish(&tree, "lib.git", PARTIAL);
    let url = host.url("lib.git");
    let done = add(&world, &url, &[]).exits(0);
    done.says(&format!("library lib from git {url}"))
        .says(&format!("commit {new}"))
        .says("agents/long.md: it is longer than an agent may be")
        .says("installed 2 agents");
    assert_eq!(ids(&world), ["library/lib/a", "library/lib/b"]);
    for (name, at) in [("tag", format!("{url}@v1")), ("commit", format!("{url}#{old}"))] {
        add(&world, &at, &["--name", name]).exits(0).says("installed 1 agent").says(&old);
    }
    add(&world, &url, &["--name", "rev", "--rev", "v1"]).exits(0).says(&old);
    // Updates fetch again, and say the difference.
    world.run(&["agents", "update", "lib"]).exits(0).says("nothing changed");
    commit(&tree, &[("agents/c.md", agent("c").as_bytes())]);
    git(&tree, &["push", "--quiet", host_path(&world, "lib.git").to_str().unwrap(), "HEAD"]);
    world.run(&["agents", "update", "lib", "--yes"]).exits(0).says("added").says("commit ");
    assert!(ids(&world).contains(&"library/lib/c".to_owned()));
}

fn host_path(world: &World, name: &str) -> PathBuf {
    world.home().parent().unwrap().join("served").join(name)
}

#[test]
fn of_a_folder_only_its_own_agents_come() {
    let world = World::new();
    let host = start_host(&world);
    let tree = work_tree(&world, "lib");
    let noise: Vec<u8> =
        (0..900_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    commit(
        &tree,
        &[
            ("plugins/web/agents/a.md", agent("a").as_bytes()),
            ("plugins/web/logo.png", &noise),
            ("plugins/other/agents/b.md", agent("b").as_bytes()),
        ],
    );
    host.publish(&tree, "lib.git", PARTIAL);
    // A server without partial fetches gives everything, which serves as well.
    host.publish(&tree, "plain.git", &[]);
    let done = add(&world, &host.url("lib.git/plugins/web@main"), &[]).exits(0);
    done.says("library web from git").says("folder plugins/web at main").says("installed 1 agent");
    add(&world, &host.url("plain.git/plugins/web"), &["--name", "plain"])
        .exits(0)
        .says("installed 1 agent");
    assert_eq!(ids(&world), ["library/plain/a", "library/web/a"]);
    add(&world, &host.url("lib.git/plugins/none"), &[])
        .exits(2)
        .complains("no folder `plugins/none`");
    world.run(&["agents", "update", "web"]).exits(0).says("nothing changed");
}

#[test]
fn a_server_that_leads_elsewhere_or_has_nothing_is_named() {
    let world = World::new();
    let (host, other) = (start_host(&world), start_host(&world));
    let tree = work_tree(&world, "lib");
    let only = commit(&tree, &[("a.md", agent("a").as_bytes())]);
    host.publish(&tree, "lib.git", PARTIAL);
    let empty = work_tree(&world, "empty");
    host.publish(&empty, "empty.git", PARTIAL);
    let moved = other.url("lib.git/info/refs?service=git-upload-pack");
    host.put("moved.git/info/refs", Answer::Redirection(moved));
    let before = world.home_state();
    let refused = add(&world, &host.url("moved.git"), &[]).exits(1);
    refused.complains("was not named");
    assert_eq!(other.asked(), Vec::<String>::new());
    add(&world, &host.url("none.git"), &[]).exits(2).complains("no repository");
    add(&world, &host.url("empty.git"), &[]).exits(2).complains("is empty");
    add(&world, &host.url("lib.git@v9"), &[]).exits(2).complains("no branch, tag or commit `v9`");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let offline = format!("http://127.0.0.1:{port}/lib.git");
    let refused = add(&world, &offline, &[]).exits(1);
    refused.complains("cannot be fetched");
    for private in
        ["https://10.0.0.1/x.git", "https://169.254.169.254/x.zip", "https://[fd00::1]/x.git"]
    {
        add(&world, private, &[]).exits(1).complains("cannot be fetched");
    }
    let libraries = |state: &[(PathBuf, Vec<u8>)]| {
        state.iter().filter(|(path, _)| path.ends_with("lock.toml")).count()
    };
    assert_eq!(libraries(&world.home_state()), libraries(&before));
    // The neighbour is unharmed.
    add(&world, &host.url("lib.git"), &[]).exits(0).says(&only);
}

#[test]
fn nothing_of_a_fetched_repository_or_of_this_persons_git_is_run() {
    let world = World::new();
    let host = start_host(&world);
    let tree = work_tree(&world, "lib");
    let mark = world.home().parent().unwrap().join("ran");
    let run = format!("touch '{}'", mark.display());
    commit(
        &tree,
        &[
            ("a.md", agent("a").as_bytes()),
            (".gitattributes", b"* filter=x export-subst\n"),
            (".gitmodules", b"[submodule \"s\"]\npath = s\nurl = ext::sh -c touch% ran\n"),
        ],
    );
    let id = git(&tree, &["rev-parse", "HEAD"]);
    git(&tree, &["update-index", "--add", "--cacheinfo", &format!("160000,{id},s")]);
    git(&tree, &["commit", "--quiet", "-m", "submodule"]);
    host.publish(&tree, "lib.git", PARTIAL);
    // The person's own settings, which belong to other repositories.
    let home = world.home().parent().unwrap().join("person");
    fs::create_dir_all(&home).unwrap();
    fs::write(
        home.join(".gitconfig"),
        format!(
            "[core]\nfsmonitor = {run}\nsshCommand = {run}\naskPass = {run}\n[credential]\nhelper = \"!{run}\"\n"
        ),
    )
    .unwrap();
    let done = world
        .command(&["add", &host.url("lib.git"), "--yes"])
        .env("HOME", &home)
        .env("GIT_ASKPASS", "/bin/false")
        .env("GIT_TRACE", "1")
        .env("BELLJAR_HOME", world.home())
        .output()
        .unwrap();
    Done::of(done).exits(0).says("s: it is a submodule").says("installed 1 agent");
    assert!(!mark.exists(), "something was run");
}

#[test]
fn archives_and_single_agents_are_downloaded_from_their_own_host() {
    let world = World::new();
    let (host, other) = (start_host(&world), start_host(&world));
    let tree = work_tree(&world, "lib");
    commit(&tree, &[("agents/a.md", agent("a").as_bytes())]);
    for (name, form) in
        [("lib.zip", "zip"), ("lib.tar", "tar"), ("lib.tar.gz", "tar.gz"), ("lib.tgz", "tgz")]
    {
        let path = world.home().parent().unwrap().join(name);
        let format = format!("--format={form}");
        git(&tree, &["archive", &format, "--prefix=lib-1/", "-o", path.to_str().unwrap(), "HEAD"]);
        host.put(name, Answer::File(fs::read(&path).unwrap()));
        let called = name.replace('.', "-");
        add(&world, &host.url(name), &["--name", &called])
            .exits(0)
            .says("SHA-256 ")
            .says("installed 1 agent");
        add(&world, path.to_str().unwrap(), &["--name", &format!("here-{called}")]).exits(0);
    }
    host.put("one/solo.md", Answer::File(agent("solo").into_bytes()));
    add(&world, &host.url("one/solo.md"), &[]).exits(0).says("library solo from download");
    let found = ids(&world);
    assert!(found.contains(&"library/solo/solo".to_owned()), "{found:?}");
    assert_eq!(found.len(), 9);
    host.put("near.zip", Answer::Redirection("/lib.zip".to_owned()));
    add(&world, &host.url("near.zip"), &[]).exits(0);
    other.put("lib.zip", Answer::File(b"PK".to_vec()));
    host.put("far.zip", Answer::Redirection(other.url("lib.zip")));
    add(&world, &host.url("far.zip"), &[]).exits(1).complains("was not named");
    assert_eq!(other.asked(), Vec::<String>::new());
    host.put("page.zip", Answer::File(b"<html>no</html>".to_vec()));
    add(&world, &host.url("page.zip"), &[]).exits(2).complains("cannot be read");
    add(&world, &host.url("none.zip"), &[]).exits(1).complains("nothing at this address");
}

#[test]
fn a_package_comes_with_the_digest_that_its_registry_states() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let world = World::new();
    let host = start_host(&world);
    let tree = work_tree(&world, "lib");
    let script: &[u8] =
        br#"{"name":"p","scripts":{"preinstall":"touch ran","postinstall":"touch ran"}}"#;
    commit(&tree, &[("agents/a.md", agent("a").as_bytes()), ("package.json", script)]);
    let path = world.home().parent().unwrap().join("p.tgz");
    git(
        &tree,
        &["archive", "--format=tgz", "--prefix=package/", "-o", path.to_str().unwrap(), "HEAD"],
    );
    let bytes = fs::read(&path).unwrap();
    let digest = |bytes: &[u8]| {
        let digest = sha2::Sha512::digest(bytes);
        format!("sha512-{}", base64::engine::general_purpose::STANDARD.encode(digest))
    };
    let other = b"another".as_slice();
    let document = json!({
        "dist-tags": { "latest": "1.0.0" },
        "versions": {
            "1.0.0": { "dist": { "tarball": host.url("p/-/p-1.0.0.tgz"), "integrity": digest(&bytes) } },
            "2.0.0": { "dist": { "tarball": host.url("p/-/p-1.0.0.tgz"), "integrity": digest(other) } },
            "3.0.0": { "dist": { "tarball": host.url("p/-/p-1.0.0.tgz"), "shasum": "00" } },
            "4.0.0": { "dist": { "tarball": "https://evil.test/p.tgz", "integrity": digest(&bytes) } },
        },
    });
    host.put("@s%2fp", Answer::File(document.to_string().into_bytes()));
    host.put("p/-/p-1.0.0.tgz", Answer::File(bytes));
    let add = |what: &str| {
        let command = world
            .command(&["add", what, "--yes"])
            .env("npm_config_registry", host.url(""))
            .output()
            .unwrap();
        Done::of(command)
    };
    for (version, why) in [
        ("2.0.0", "another than the registry's SHA-512"),
        ("3.0.0", "no SHA-512"),
        ("4.0.0", "was not named"),
        ("5.0.0", "no version `5.0.0`"),
    ] {
        add(&format!("npm:@s/p@{version}")).exits(1).complains(why);
    }
    add("npm:none").exits(1).complains("no package `none`");
    assert!(ids(&world).is_empty());
    add("npm:@s/p").exits(0).says("library p from npm @s/p").says("version 1.0.0, SHA-256 ");
    assert_eq!(ids(&world), ["library/p/a"]);
}

#[test]
fn a_partial_clone_is_read_from_what_is_there() {
    let world = World::new();
    let host = start_host(&world);
    let tree = work_tree(&world, "lib");
    let lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    commit(&tree, &[("a.md", agent("a").as_bytes()), ("lfs.md", lfs)]);
    host.publish(&tree, "lib.git", PARTIAL);
    let clone = world.home().parent().unwrap().join("partial");
    let clone = clone.to_str().unwrap();
    git(
        &tree,
        &["clone", "--quiet", "--filter=blob:none", "--no-checkout", &host.url("lib.git"), clone],
    );
    let none = add(&world, clone, &[]).exits(2);
    none.says("a.md: its content is not in this clone").complains("there is no agent");
    git(Path::new(clone), &["checkout", "--quiet", "HEAD", "--", "a.md"]);
    let done = add(&world, clone, &[]).exits(0).says("installed 1 agent");
    done.says("lfs.md: its content is not in this clone");
    let whole = add(&world, tree.to_str().unwrap(), &[]).exits(0);
    whole.says("lfs.md: it is a pointer of Git LFS");
    let empty = work_tree(&world, "empty");
    add(&world, empty.to_str().unwrap(), &[]).exits(2).complains("it has no commit yet");
    // A folder of a repository, at a revision.
    let first = git(&tree, &["rev-parse", "HEAD"]);
    commit(&tree, &[("sub/b.md", agent("b").as_bytes())]);
    git(&tree, &["tag", "v2"]);
    fs::write(tree.join("sub/c.md"), agent("c")).unwrap();
    let sub = tree.join("sub");
    let done = add(&world, sub.to_str().unwrap(), &["--rev", "v2"]).exits(0);
    done.says("folder sub at v2").says("installed 1 agent");
    add(&world, sub.to_str().unwrap(), &["--rev", &first, "--name", "x"])
        .exits(2)
        .complains("no folder `sub`");
}

#[test]
fn what_is_not_fetched_says_what_to_do() {
    let world = World::new();
    for (source, code, why) in [
        ("git@github.com:o/r.git", 2, "takes a key"),
        ("http://example.org/x.git", 2, "not encrypted"),
        ("https://u:p@example.org/x.git", 2, "password"),
        ("https://example.org/x", 2, "does not say what it is"),
        ("nowhere", 2, "cannot be used"),
    ] {
        add(&world, source, &[]).exits(code).complains(why).complains("hint: ");
    }
}

/// A plugin of a fetched marketplace is fetched by itself, from the commit at which the list was read.
#[test]
fn a_plugin_of_a_fetched_marketplace_comes_from_the_commit_of_its_list() {
    let world = World::new();
    let host = start_host(&world);
    let tree = work_tree(&world, "market");
    let list = json!({
        "name": "harbour",
        "owner": { "name": "Ann" },
        "plugins": [{ "name": "pilot", "source": "./plugins/pilot" }],
    });
    let old = commit(
        &tree,
        &[
            (".claude-plugin/marketplace.json", list.to_string().as_bytes()),
            ("plugins/pilot/agents/scout.md", agent("scout").as_bytes()),
            ("plugins/other/agents/stowaway.md", agent("stowaway").as_bytes()),
        ],
    );
    host.publish(&tree, "market.git", PARTIAL);
    let url = host.url("market.git");
    world.run(&["marketplaces", "add", &url]).exits(0).says("harbour");
    // What comes later is not what the person saw in the list.
    commit(&tree, &[("plugins/pilot/agents/later.md", agent("later").as_bytes())]);
    git(&tree, &["push", "--quiet", host_path(&world, "market.git").to_str().unwrap(), "main"]);
    world.run(&["plugins", "add", "pilot", "--yes"]).exits(0).says(&old);
    assert_eq!(ids(&world), ["library/harbour/pilot/scout"]);
    // A plugin is added by its own address too.
    world.run(&["plugins", "add", &url, "--folder", "plugins/other", "--yes"]).exits(0);
    assert_eq!(ids(&world), ["library/harbour/pilot/scout", "library/other/stowaway"]);
}
