//! Machines on which belljar cannot work as usual: each says what is missing, and what to do.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::kit::{Done, World};
use crate::run::{TASK, world};

/// A command with a disk of its own mounted at the world's `small`, or `None` where this machine
/// lets nobody mount. `$SMALL` is that directory; `setup` is a line of shell that is run first.
fn on_small_disk(world: &World, size: &str, setup: &str, args: &[&str]) -> Option<Done> {
    let small = world.other("small/x", b"").parent().unwrap().to_path_buf();
    let plain = world.command(args);
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.arg(plain.get_program()).args(plain.get_args()).current_dir(world.workspace());
        command.env_clear().env("SMALL", &small);
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.output().ok()
    };
    let mount = format!("mount -t tmpfs -o mode=700,size={size} none \"$SMALL\"");
    if !inside(&mount)?.status.success() {
        return None;
    }
    Some(Done::of(inside(&format!("{mount} && {setup} && exec \"$0\" \"$@\""))?))
}

/// Fills the disk to its last byte.
const FILL: &str = "{ cat /dev/zero > \"$SMALL/fill\" 2>/dev/null || true; }";

#[test]
fn a_full_disk_is_named_and_half_a_file_is_not_left() {
    let world = World::new();
    let setup = format!("{FILL} && export BELLJAR_HOME=\"$SMALL\"");
    let Some(done) = on_small_disk(&world, "64k", &setup, &["init", "--no-model"]) else { return };
    let done = done.exits(1).complains("No space left").complains("make room there");
    assert!(!done.stdout.contains("wrote"), "{}", done.stdout);
    let look = format!(
        "{setup} && {{ \"$0\" \"$@\" 2>/dev/null || true; }} && test ! -e \"$SMALL/belljar.toml\""
    );
    on_small_disk(&world, "64k", &look, &["init", "--no-model"]).unwrap().exits(1);
    let grant = ["grant", "general-purpose", "--host", "https://a.test", "--yes"];
    let done = on_small_disk(&world, "64k", &setup, &grant).unwrap().exits(1);
    done.complains("failed to write").complains("make room there");
}

#[test]
fn a_run_on_a_full_disk_is_not_begun_or_says_that_it_is_not_saved() {
    let (world, transcript) = world();
    let run = ["run", "--quiet", "--transcript", &transcript, TASK];
    let setup = format!("{FILL} && export BELLJAR_HOME=\"$SMALL\"");
    let Some(done) = on_small_disk(&world, "64k", &setup, &run) else { return };
    done.exits(1).complains("nothing was run").complains("make room").complains("--no-save");
    // It fills while the agent answers.
    let long = "tide ".repeat(300_000);
    let script = format!(
        "transcript: 1\nagents: [{{agent: general-purpose, turns: [{{say: '{long}'}}]}}]\n"
    );
    let script = world.other("long.yaml", script.as_bytes());
    let run = ["run", "--quiet", "--transcript", script.to_str().unwrap(), "x"];
    let setup = "export BELLJAR_HOME=\"$SMALL\"";
    let done = on_small_disk(&world, "900k", setup, &run).unwrap().exits(0);
    assert!(done.stdout.contains("tide tide"), "the answer is printed all the same");
    done.complains("the outcome of the run is not saved").complains("make room there");
}

#[test]
fn a_cache_on_a_full_disk_only_takes_time() {
    let (world, transcript) = world();
    let run = ["run", "--transcript", &transcript, TASK];
    let setup = format!("{FILL} && export BELLJAR_CACHE=\"$SMALL/cache\"");
    let Some(done) = on_small_disk(&world, "64k", &setup, &run) else { return };
    done.exits(0).complains("cannot be used, so components are compiled each time");
}

#[test]
fn without_a_home_directory_the_variable_to_set_is_named() {
    // Only root can be somebody whom the list of users does not have.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let mut command = world.command(&["agents", "list"]);
    command.env_remove("BELLJAR_HOME").env_remove("HOME").current_dir("/");
    // Where the binary is closed to others, there is nothing to see.
    let Ok(output) = command.uid(54_321).gid(54_321).output() else { return };
    let done = Done::of(output).exits(2);
    done.complains("there is no home directory").complains("set `HOME` or `BELLJAR_HOME`");
}

#[test]
fn a_home_that_cannot_be_written_is_named_with_another_way() {
    let world = World::new();
    // A file in the way of the directory stops root too.
    let file = world.other("file", b"");
    for args in [
        &["init", "--no-model"][..],
        &["grant", "general-purpose", "--tool", "shell", "--yes"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let mut command = world.command(args);
        command.env("BELLJAR_HOME", file.join("home"));
        let done = Done::of(command.output().unwrap());
        assert!(done.code == 1 || done.code == 2, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains("file/home"), "{args:?}: {}", done.stderr);
    }
    // Where the tests run as root, nothing is denied by a mode: as nobody it is.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut command = world.command(&["init", "--no-model"]);
    let closed = world.other("closed/file", b"");
    let closed = closed.parent().unwrap();
    std::fs::set_permissions(closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    command.env("BELLJAR_HOME", closed.join("home")).uid(65_534).gid(65_534);
    command.current_dir("/");
    // Where the binary or the directory of the test is closed to others, there is nothing to see.
    let Ok(output) = command.output() else { return };
    Done::of(output).exits(1).complains("Permission denied").complains("`BELLJAR_HOME=DIR`");
}

#[test]
fn without_a_terminal_what_would_be_asked_is_refused_with_what_to_write() {
    let world = World::new();
    world.home_file(
        "agents/a.md",
        "---\nname: a\ndescription: d\ntools: [web_fetch]\nhosts: ['https://a.test']\n---\nb\n",
    );
    world.run(&["grant", "a", "--asked"]).exits(2).complains("`--yes`");
}
