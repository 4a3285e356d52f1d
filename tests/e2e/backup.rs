//! `belljar backup` while a server runs, and `belljar restore` of good and of hostile archives.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sha2::Digest as _;

use crate::kit::server::{Server, key};
use crate::kit::{Done, World, until};

const SCRIPT: &str = "transcript: 1\neach_run: true\nagents:\n  - agent: teller\n    turns:\n      - say: The tide turns at six.\n";
const TELLER: &str = "---\nname: teller\ndescription: Tells.\ntools: []\n---\nTell.\n";

/// A tenant with an agent and a key; what it is called in the archive.
fn tenant(world: &World) -> String {
    world.run(&["tenants", "add", "acme"]).exits(0);
    let own = world.tenant("acme");
    world.home_file(&format!("{own}/home/agents/teller.md"), TELLER);
    world.home_file(&format!("{own}/home/transcript.yaml"), SCRIPT);
    let settings = "[models.main]\nkind = 'scripted'\nmodel = 'transcript.yaml'\n";
    world.home_file(&format!("{own}/home/belljar.toml"), settings);
    world.home_file(&format!("{}/notes/a.txt", world.workspace_of("acme")), "a tenant's note");
    key(world, "acme", "admin")
}

fn say(server: &Server, key: &str) -> String {
    let body = json!({ "agent": "teller", "text": "when?" }).to_string();
    let (status, body) =
        server.post("/v1/chat", &format!("authorization: Bearer {key}\r\n"), &body);
    assert_eq!(status, 200, "{body}");
    serde_json::from_str::<Value>(&body).unwrap()["session"].as_str().unwrap().to_owned()
}

/// A backup of a small home, without a server.
fn small() -> (World, PathBuf) {
    let world = World::new();
    world.home_file("belljar.toml", "[grants.teller]\ntools = []\n");
    world.home_file("agents/teller.md", TELLER);
    let file = world.other("backups/one.tar.gz", b"");
    fs::remove_file(&file).unwrap();
    world.run(&["backup", file.to_str().unwrap()]).exits(0).says("2 files");
    (world, file)
}

fn restore(world: &World, file: &Path, home: &Path, more: &[&str]) -> Done {
    let args = [&["restore", file.to_str().unwrap()], more].concat();
    Done::of(world.command(&args).env("BELLJAR_HOME", home).output().unwrap())
}

/// The names in a directory, links and hidden ones included.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A check that this archive is refused with nothing left behind.
#[track_caller]
fn refuses(world: &World, archive: &[u8], why: &str) {
    let file = world.other("hostile/bad.tar.gz", archive);
    let place = file.parent().unwrap();
    let outside = names(place.parent().unwrap());
    let done = restore(world, &file, &place.join("home"), &[]).exits(1);
    assert!(done.stderr.contains(why), "no `{why}` in {}", done.stderr);
    assert_eq!(names(place), ["bad.tar.gz"], "{why}");
    assert_eq!(names(place.parent().unwrap()), outside, "{why}");
}

#[test]
fn a_home_that_is_backed_up_while_it_is_served_is_served_elsewhere() {
    let world = World::new();
    let acme = tenant(&world);
    world.home_file("agents/own.md", &TELLER.replace("teller", "own"));
    let server = Server::start(&world, &[]);
    let session = say(&server, &acme);
    let file = world.other("backups/x", b"").with_file_name("all.tar.gz");
    let name = file.to_str().unwrap();
    let done = world.run(&["backup", name]).exits(0).complains("`--workspaces` adds it");
    done.complains("digests only");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(file.parent().unwrap()), ["all.tar.gz", "x"], "nothing else is left");
    // An overlay belongs to the directory on this machine.
    let layer = world.home_file("sessions/store/belljar.overlays/local/some-session/0/held", "1 1");
    let other = file.with_file_name("other.tar.gz");
    let done = world.run(&["backup", other.to_str().unwrap()]).exits(0);
    done.complains("left out: what agents changed in the overlays of 1 session");
    fs::remove_dir_all(layer.parent().unwrap().parent().unwrap()).unwrap();
    let elsewhere = world.home().with_file_name("without");
    restore(&world, &other, &elsewhere, &[]).exits(0);
    assert!(!elsewhere.join("sessions/store/belljar.overlays").exists());
    fs::remove_file(&other).unwrap();
    // What is said after it is not in it; the server has noticed nothing.
    let later = say(&server, &acme);
    world.run(&["backup", name]).exits(2).complains("it is there already");
    let inside = world.home().join("backup.tar.gz");
    world
        .run(&["backup", inside.to_str().unwrap()])
        .exits(2)
        .complains("lies in what it would hold");
    drop(server);

    let home = world.home().with_file_name("restored");
    restore(&world, &file, &home, &[]).exits(0).says("restored");
    for (path, mode) in [
        ("", 0o700),
        ("sessions/store", 0o700),
        ("sessions/store/belljar.db", 0o600),
        ("agents/own.md", 0o600),
    ] {
        let found = fs::metadata(home.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{path}");
    }
    let again = restore(&world, &file, &home, &[]).exits(2);
    again.complains("it is not empty");
    let mut command = world.command(&["serve", "--listen", "127.0.0.1:0"]);
    let server = Server::of(command.env("BELLJAR_HOME", &home));
    let (status, sessions) = server.get("/v1/sessions", Some(&acme));
    assert_eq!(status, 200, "the key works: {sessions}");
    assert!(sessions.contains(&session) && !sessions.contains(&later), "{sessions}");
    let messages = server.get(&format!("/v1/sessions/{session}/messages"), Some(&acme)).1;
    assert!(messages.contains("The tide turns at six."), "{messages}");
    let _ = say(&server, &acme);
    let own = fs::read_dir(home.join("sessions/workspaces")).unwrap().next().unwrap().unwrap();
    assert_eq!(names(&own.path()), [""; 0], "workspaces are left out");
}

#[test]
fn workspaces_and_a_data_root_elsewhere_go_where_it_is_said() {
    let world = World::new();
    let root = world.home().with_file_name("data");
    let data = ["--data", root.to_str().unwrap()];
    let with = |args: &[&str]| world.run(&[args, &data].concat());
    world.home_file("belljar.toml", "[grants.teller]\ntools = []\n");
    with(&["tenants", "add", "acme"]).exits(0);
    let own = fs::read_dir(root.join("tenants")).unwrap().next().unwrap().unwrap().path();
    let work = root.join("workspaces").join(own.file_name().unwrap());
    fs::create_dir_all(work.join("bin")).unwrap();
    fs::write(work.join("bin/run"), "#!/bin/sh\n").unwrap();
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(work.join("bin/run"), executable).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", work.join("link")).unwrap();
    // What an older program has put beside the home.
    fs::create_dir_all(root.join("tenants/older/workspace")).unwrap();
    fs::write(root.join("tenants/older/workspace/note.txt"), "older").unwrap();
    // The command line's own sessions are elsewhere, in the home.
    let transcript = world.other(
        "t.yaml",
        b"transcript: 1\nagents: [{agent: general-purpose, turns: [{say: ok}]}]\n",
    );
    world.run(&["run", "--transcript", transcript.to_str().unwrap(), "hello"]).exits(0);
    let file = world.home().with_file_name("all.tar.gz");
    let done = with(&["backup", file.to_str().unwrap(), "--workspaces"]).exits(0);
    done.complains("no regular file").complains("/link`");

    let home = world.home().with_file_name("restored");
    let new = world.home().with_file_name("new-data");
    restore(&world, &file, &home, &[]).exits(2).complains("`--data DIR`");
    assert!(!home.exists());
    let more = ["--data", new.to_str().unwrap()];
    restore(&world, &file, &home, &more).exits(0).complains("does not name this data root");
    assert_eq!(fs::read(new.join("tenants/older/workspace/note.txt")).unwrap(), b"older");
    let restored = new.join("workspaces").join(own.file_name().unwrap());
    let program = restored.join("bin/run");
    assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(fs::symlink_metadata(restored.join("link")).is_err());
    let listed = Done::of(
        world
            .command(&[&["tenants", "list"], &more[..]].concat())
            .env("BELLJAR_HOME", &home)
            .output()
            .unwrap(),
    );
    listed.exits(0).says("acme");
    let receipts = world.command(&["receipts"]).env("BELLJAR_HOME", &home).output().unwrap();
    Done::of(receipts).exits(0).says("hello");
}

#[test]
fn an_archive_that_is_cut_or_changed_by_a_byte_is_refused_and_the_whole_one_restored() {
    let (world, file) = small();
    let good = fs::read(&file).unwrap();
    for cut in [0, 1, 20, good.len() / 2, good.len() - 9, good.len() - 1] {
        refuses(&world, &good[..cut], "nothing is changed");
    }
    for at in (0..good.len()).step_by(good.len() / 24) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        let path = world.other("hostile/bad.tar.gz", &bad);
        let place = path.parent().unwrap();
        let done = restore(&world, &path, &place.join("home"), &[]);
        // Some bytes of a gzip header mean nothing; then all is as it was.
        if done.code == 0 {
            let agent = fs::read_to_string(place.join("home/agents/teller.md")).unwrap();
            assert_eq!((at < 10, agent.as_str()), (true, TELLER), "byte {at}");
            fs::remove_dir_all(place.join("home")).unwrap();
        }
        assert_eq!(names(place), ["bad.tar.gz"], "byte {at}: {}", done.stderr);
    }
    refuses(&world, &[&good[..], b"more"].concat(), "more than its manifest says");
    let home = world.home().with_file_name("restored");
    fs::create_dir(&home).unwrap();
    restore(&world, &file, &home, &[]).exits(0);
    assert_eq!(fs::read_to_string(home.join("agents/teller.md")).unwrap(), TELLER);
}

/// An archive as somebody else would make it: entries with any name and kind.
struct Forged {
    archive: tar::Builder<GzEncoder<Vec<u8>>>,
}

impl Forged {
    fn new(manifest: &Value) -> Self {
        let packed = GzEncoder::new(Vec::new(), Compression::fast());
        let mut forged = Self { archive: tar::Builder::new(packed) };
        let text = serde_json::to_vec(manifest).unwrap();
        forged = forged.entry("manifest.json", tar::EntryType::Regular, &text);
        forged
    }

    fn entry(mut self, name: &str, kind: tar::EntryType, content: &[u8]) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        // As it is, whatever it says.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        self.archive.append(&header, content).unwrap();
        self
    }

    fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(name, tar::EntryType::Regular, content)
    }

    fn bytes(self) -> Vec<u8> {
        self.archive.into_inner().unwrap().finish().unwrap()
    }
}

/// The SHA-256 of `x`.
const X: &str = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

fn manifest(directories: &[&str], files: &[&str]) -> Value {
    let file = |path: &&str| json!({ "path": path, "size": 1, "sha256": X });
    json!({
        "format": 1, "belljar": "0.1.0", "schema": 1, "made": 0, "workspaces": false,
        "directories": directories, "files": files.iter().map(file).collect::<Vec<_>>(),
    })
}

#[test]
fn a_hostile_archive_is_refused_and_writes_nothing_anywhere() {
    let world = World::new();
    let good = || Forged::new(&manifest(&["home/a"], &["home/a/x"])).file("0", b"x");
    // The form itself is good.
    let file = world.other("good/good.tar.gz", &good().bytes());
    let home = file.with_file_name("home");
    restore(&world, &file, &home, &[]).exits(0);
    assert_eq!(fs::read_to_string(home.join("a/x")).unwrap(), "x");

    for path in [
        "../x",
        "home/../../x",
        "/tmp/belljar-escaped",
        "home//x",
        "x",
        "elsewhere/x",
        "home/sessions/x",
        "home/a\u{0}b",
        "home/missing/x",
    ] {
        let forged = Forged::new(&manifest(&[], &[path])).file("0", b"x").bytes();
        refuses(&world, &forged, "the backup cannot be restored");
    }
    let twice = manifest(&[], &["home/x", "home/x"]);
    let forged = Forged::new(&twice).file("0", b"x").file("1", b"x").bytes();
    refuses(&world, &forged, "there twice");
    // SQLite would play a journal into the store, and delete what that names.
    let journal = manifest(&["data/store"], &["data/store/belljar.db-journal"]);
    refuses(&world, &Forged::new(&journal).file("0", b"x").bytes(), "is not a path of a backup");
    let nested = manifest(&[], &["home/x", "home/x/y"]);
    refuses(&world, &Forged::new(&nested).file("0", b"x").file("1", b"x").bytes(), "no directory");

    let one = manifest(&[], &["home/x"]);
    use tar::EntryType::{Block, Char, Directory, Fifo, GNUSparse, Link, Symlink};
    for kind in [Symlink, Link, Char, Block, Fifo, Directory, GNUSparse] {
        let forged = Forged::new(&one).entry("0", kind, b"").file("0", b"x").bytes();
        refuses(&world, &forged, "something else");
    }
    for (forged, why) in [
        (Forged::new(&one), "it ends before"),
        (Forged::new(&one).file("1", b"x"), "something else"),
        (Forged::new(&one).file("../x", b"x"), "something else"),
        (Forged::new(&one).file("0", b"y"), "not what was backed up"),
        (Forged::new(&one).file("0", &[b'x'; 100_000]), "something else"),
        (Forged::new(&one).file("0", b"x").file("1", b"x"), "more than its manifest"),
        (
            Forged::new(&one).entry("long", tar::EntryType::GNULongName, b"../../x"),
            "something else",
        ),
    ] {
        refuses(&world, &forged.bytes(), why);
    }
    // More than it says, and more than there is room for.
    let mut bomb = Forged::new(&one).file("0", b"x").bytes();
    let mut zeros = GzEncoder::new(Vec::new(), Compression::best());
    zeros.write_all(&vec![0; 8 << 20]).unwrap();
    bomb.extend(zeros.finish().unwrap());
    refuses(&world, &bomb, "more than its manifest");
    let mut huge = one.clone();
    huge["files"][0]["size"] = json!(u64::MAX / 4);
    refuses(&world, &Forged::new(&huge).file("0", b"x").bytes(), "has room for");
    // More names than anybody can wait for.
    let many: Vec<String> = (0..500_001).map(|n| format!("home/{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    refuses(&world, &Forged::new(&manifest(&many, &[])).bytes(), "more than 500000");
    // Not a store.
    let store = manifest(&["data/store"], &["data/store/belljar.db"]);
    refuses(&world, &Forged::new(&store).file("0", b"x").bytes(), "is no store");
    assert!(!Path::new("/tmp/belljar-escaped").exists());
}

#[test]
fn an_archive_of_a_newer_form_or_schema_is_refused_by_its_number() {
    let world = World::new();
    let newer = json!({ "format": 2, "anything": "else" });
    refuses(&world, &Forged::new(&newer).bytes(), "it has format 2, and this program reads 1");
    let mut schema = manifest(&[], &["home/x"]);
    schema["schema"] = json!(10_000);
    refuses(&world, &Forged::new(&schema).file("0", b"x").bytes(), "schema 10000");
    refuses(&world, &Forged::new(&json!([])).bytes(), "manifest is not valid");
    refuses(&world, b"no archive", "nothing is changed");
}

#[test]
fn an_archive_lists_what_is_in_it_with_sizes_and_digests() {
    let (_world, file) = small();
    let mut archive = tar::Archive::new(GzDecoder::new(fs::File::open(file).unwrap()));
    let mut entries = archive.entries().unwrap();
    let mut text = String::new();
    entries.next().unwrap().unwrap().read_to_string(&mut text).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["format"], 1);
    assert_eq!(manifest["belljar"], env!("CARGO_PKG_VERSION"));
    let files = manifest["files"].as_array().unwrap();
    let paths: Vec<_> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["home/agents/teller.md", "home/belljar.toml"]);
    for (file, entry) in files.iter().zip(entries) {
        assert_eq!(entry.unwrap().size(), file["size"].as_u64().unwrap());
        assert_eq!(file["sha256"].as_str().unwrap().len(), 64);
    }
}

#[test]
fn what_agents_and_tenants_made_blocks_no_backup() {
    let world = World::new();
    let _ = tenant(&world);
    let files = "sessions/files/run";
    for name in ["Report.md", "report.md", "a\\b.md"] {
        world.home_file(&format!("{files}/{name}"), name);
    }
    world.home_file(&format!("{files}/{}/deep.md", ["d"; 60].join("/")), "deep");
    let file = world.other("backups/x", b"").with_file_name("all.tar.gz");
    let done = world.run(&["backup", file.to_str().unwrap()]).exits(0);
    done.complains("has a `\\`").complains("it lies too deep");
    let home = world.home().with_file_name("restored");
    restore(&world, &file, &home, &[]).exits(0);
    assert_eq!(fs::read_to_string(home.join(files).join("Report.md")).unwrap(), "Report.md");
    assert_eq!(fs::read_to_string(home.join(files).join("report.md")).unwrap(), "report.md");
    assert!(!home.join(files).join("a\\b.md").exists());
}

#[test]
fn a_data_root_in_the_home_is_backed_up_as_what_it_is() {
    let world = World::new();
    let root = world.home().join("elsewhere");
    let data = ["--data", root.to_str().unwrap()];
    world.home_file("belljar.toml", "[grants.teller]\ntools = []\n");
    world.run(&[&["tenants", "add", "acme"], &data[..]].concat()).exits(0);
    let own = fs::read_dir(root.join("tenants")).unwrap().next().unwrap().unwrap().path();
    let secret = world.other("outside/secret.txt", b"OPERATORS");
    let work = root.join("workspaces").join(own.file_name().unwrap());
    fs::write(work.join("work.txt"), "WORK").unwrap();
    std::os::unix::fs::symlink(secret, work.join("link")).unwrap();
    fs::create_dir(own.join("workspace")).unwrap();
    fs::write(own.join("workspace/work.txt"), "WORK").unwrap();
    let file = world.other("backups/x", b"").with_file_name("all.tar.gz");
    world.run(&[&["backup", file.to_str().unwrap()], &data[..]].concat()).exits(0);
    let mut all = Vec::new();
    GzDecoder::new(fs::File::open(&file).unwrap()).read_to_end(&mut all).unwrap();
    let has = |text: &[u8]| all.windows(text.len()).any(|part| part == text);
    assert!(has(b"belljar.toml") && !has(b"OPERATORS") && !has(b"WORK"));
    assert!(!has(b"home/elsewhere"), "it is no part of the operator's own");
}

/// A command that is at work in a directory of its own, and that directory.
fn at_work(
    world: &World,
    args: &[&str],
    home: &Path,
    place: &Path,
    prefix: &str,
) -> std::process::Child {
    let child = world.command(args).env("BELLJAR_HOME", home).spawn().unwrap();
    let marked =
        |name: &String| name.starts_with(prefix) && place.join(name).join("in-use").exists();
    until("at work", || names(place).iter().any(marked));
    child
}

fn signalled(child: &std::process::Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A home with a file that takes a while to read: it has no blocks on the disk.
fn slow() -> World {
    let world = World::new();
    let large = world.home_file("notes/large", "");
    fs::File::options().write(true).open(large).unwrap().set_len(2 << 30).unwrap();
    world
}

#[test]
fn a_backup_that_is_stopped_leaves_nothing_and_one_that_is_killed_leaves_it_to_the_next() {
    let world = slow();
    let place = world.home().with_file_name("backups");
    fs::create_dir(&place).unwrap();
    let file = place.join("all.tar.gz");
    let backup = ["backup", file.to_str().unwrap()];
    let begin = || at_work(&world, &backup, &world.home(), &place, ".belljar-backup-");
    for signal in [Signal::INT, Signal::TERM] {
        let child = begin();
        signalled(&child, signal);
        let done = Done::of(child.wait_with_output().unwrap()).exits(130);
        done.complains("nothing is changed");
        assert_eq!(names(&place), [""; 0], "{signal:?}");
    }
    let mut child = begin();
    child.kill().unwrap();
    child.wait().unwrap();
    let left = names(&place);
    assert_eq!(left.len(), 1, "{left:?}");
    // What only looks like it, and what a link leads to.
    let other = world.other("other/in-use", b"mine");
    fs::create_dir(place.join(".belljar-backup-mine")).unwrap();
    std::os::unix::fs::symlink(other.parent().unwrap(), place.join(".belljar-backup-link"))
        .unwrap();
    std::os::unix::fs::symlink(other.parent().unwrap(), place.join(&left[0]).join("out")).unwrap();
    fs::remove_file(world.home().join("notes/large")).unwrap();
    world.home_file("agents/teller.md", TELLER);
    let done = world.run(&backup).exits(0);
    done.complains("removed what a killed command has left").complains(&left[0]);
    assert_eq!(names(&place), [".belljar-backup-link", ".belljar-backup-mine", "all.tar.gz"]);
    assert_eq!(fs::read(other).unwrap(), b"mine");
}

#[test]
fn a_restore_that_is_stopped_leaves_nothing_and_one_that_is_killed_leaves_it_to_the_next() {
    let (world, good) = small();
    let mut large = manifest(&[], &["home/large"]);
    large["files"][0]["size"] = json!(256 << 20);
    let forged = Forged::new(&large).file("0", &vec![0; 256 << 20]).bytes();
    let file = world.other("large.tar.gz", &forged);
    let place = world.home().with_file_name("restored");
    fs::create_dir(&place).unwrap();
    let home = place.join("home");
    let restoring = ["restore", file.to_str().unwrap()];
    let begin = || at_work(&world, &restoring, &home, &place, ".belljar-restore-");
    for signal in [Signal::INT, Signal::TERM] {
        let child = begin();
        signalled(&child, signal);
        Done::of(child.wait_with_output().unwrap()).exits(130);
        assert_eq!(names(&place), [""; 0], "{signal:?}");
    }
    let mut child = begin();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(&place).len(), 1);
    restore(&world, &good, &home, &[]).exits(0).complains("removed what a killed command has left");
    assert_eq!(names(&place), ["home"]);
}

/// An archive with this store.
fn with_store(bytes: &[u8]) -> Vec<u8> {
    let mut manifest = manifest(&["data/store"], &["data/store/belljar.db"]);
    let digest = sha2::Sha256::digest(bytes);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    manifest["files"][0]["size"] = json!(bytes.len());
    manifest["files"][0]["sha256"] = json!(digest);
    Forged::new(&manifest).file("0", bytes).bytes()
}

#[test]
fn a_store_with_a_schema_of_somebody_else_is_not_restored() {
    let world = World::new();
    let _ = tenant(&world);
    let store = fs::read(world.home().join("sessions/store/belljar.db")).unwrap();
    // As large as it was, and sound: the log of the audit may be emptied. What an earlier migration
    // has left in the file counts for nothing.
    let mut other = store.clone();
    for trigger in ["audit_is_not_deleted", "audit_is_not_changed"] {
        let [kept, gone] = ["BEFORE", "AFTER "].map(|when| format!("{trigger} {when}"));
        let all = store.windows(kept.len()).enumerate();
        for (at, _) in all.filter(|(_, part)| *part == kept.as_bytes()) {
            other[at..at + gone.len()].copy_from_slice(gone.as_bytes());
        }
    }
    assert_ne!(other, store);
    refuses(&world, &with_store(&other), "its trigger `audit_is_not_changed` is another");
    let file = world.other("good/good.tar.gz", &with_store(&store));
    restore(&world, &file, &file.with_file_name("home"), &[]).exits(0);
}
