//! Whose the files of the home are: what others own or may write is not obeyed, and what belljar
//! makes there is its owner's alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::kit::{Done, World};

const SETTINGS: &str = "[models.s]\nkind = \"scripted\"\nmodel = \"s.yaml\"\n[roles]\nmain = \"s\"\n[[hooks]]\nevent = \"Stop\"\ncommand = \"touch ran\"\n";

const TRANSCRIPT: &str = "transcript: 1\neach_run: true\nagents:\n  - agent: general-purpose\n    turns:\n      - say: hi\n";

fn world() -> World {
    let world = World::new();
    world.home_file("belljar.toml", SETTINGS);
    world.home_file("s.yaml", TRANSCRIPT);
    world
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Nothing is obeyed: no command of a hook runs, and each command says whose file it is.
fn is_refused(world: &World, why: &str, hint: &str) {
    for args in [&["run", "hi"][..], &["agents", "list"], &["grant", "a", "--tool", "b", "--yes"]] {
        let done = world.run(args).exits(2);
        assert!(done.stderr.contains(why), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(hint), "{args:?}: {}", done.stderr);
        assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);
    }
    world.run(&["doctor"]).exits(1).says(why);
    assert!(!world.workspace().join("ran").exists(), "a hook ran");
}

#[test]
fn settings_that_others_may_write_are_refused_and_nothing_of_them_is_obeyed() {
    let world = world();
    let file = world.home().join("belljar.toml");
    for open in [0o666, 0o664, 0o622] {
        mode(&file, open);
        is_refused(&world, &format!("may be written by others (mode {open:o})"), "chmod go-w");
    }
    mode(&file, 0o644);
    world.run(&["run", "hi"]).exits(0);
    assert!(world.workspace().join("ran").exists(), "the operator's own hook runs");
}

#[test]
fn a_home_where_others_could_put_another_file_is_refused() {
    let world = world();
    let agents = world.home().join("agents");
    fs::create_dir(&agents).unwrap();
    for directory in [world.home(), agents] {
        mode(&directory, 0o777);
        is_refused(&world, "may be written by others (mode 777)", "chmod go-w");
        mode(&directory, 0o755);
    }
    world.run(&["run", "hi"]).exits(0);
}

#[test]
fn settings_of_another_user_are_refused() {
    // Only root gives files away.
    if rustix::process::geteuid().as_raw() != 0 {
        return;
    }
    let world = world();
    std::os::unix::fs::chown(world.home().join("belljar.toml"), Some(65534), None).unwrap();
    is_refused(&world, "belongs to user 65534", "chown 0 ");
}

#[test]
fn a_workspaces_file_can_only_narrow_so_its_owner_does_not_matter() {
    let world = world();
    mode(&world.file(".belljar/belljar.toml", ""), 0o666);
    world.run(&["run", "hi"]).exits(0);
}

#[test]
fn what_belljar_makes_in_the_home_is_its_owners_alone_whatever_the_umask() {
    let world = World::new();
    fs::remove_dir(world.home()).unwrap();
    let library = world.other("shelf/agents/one.md", AGENT.as_bytes());
    let library = library.parent().unwrap().parent().unwrap().display().to_string();
    under_umask(&world, &["init"]).exits(0);
    under_umask(&world, &["grant", "general-purpose", "--tool", "file_write", "--yes"]).exits(0);
    under_umask(&world, &["agents", "add", &library, "--yes"]).exits(0);
    world.home_file("drafts/agents/two.md", &AGENT.replace("one", "two"));
    mode(&world.home().join("drafts/agents/two.md"), 0o666);
    under_umask(&world, &["drafts", "promote", "agents/two"]).exits(0);
    fs::remove_dir_all(world.home().join("drafts")).unwrap();
    assert!(world.home().join("agents/two.md").is_file());
    let open = open_to_others(&world.home());
    assert!(open.is_empty(), "{open:?}");
}

const AGENT: &str = "---\nname: one\ndescription: d\ntools: [file_read]\n---\nx\n";

/// The command under a umask that closes nothing.
fn under_umask(world: &World, args: &[&str]) -> Done {
    let plain = world.command(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(args);
    command.env_clear().current_dir(world.workspace());
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Done::of(command.output().unwrap())
}

fn open_to_others(path: &Path) -> Vec<String> {
    let about = fs::symlink_metadata(path).unwrap();
    let mut open = Vec::new();
    if about.mode() & 0o077 != 0 {
        open.push(format!("{} {:o}", path.display(), about.mode() & 0o7777));
    }
    if about.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            open.extend(open_to_others(&entry.unwrap().path()));
        }
    }
    open
}
