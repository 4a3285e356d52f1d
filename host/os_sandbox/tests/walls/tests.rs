//! Tests of the results of the parts.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

pub(crate) fn all() {
    files_that_were_not_let_through_are_refused();
    sockets_that_a_tool_host_never_opens_are_refused();
    a_wall_without_network_leaves_no_socket_and_no_file();
    no_program_is_started_and_no_other_process_reached();
    a_thread_made_later_is_behind_the_wall_too();
    a_process_with_threads_is_left_alone_and_says_so();
    what_only_an_intruder_calls_ends_the_process();
    the_broker_starts_what_it_was_told_of_and_nothing_else();
    a_broker_ends_with_its_process_and_all_that_it_started();
    what_a_hook_leaves_in_sessions_of_its_own_ends_with_it();
    keys_of_the_environment_are_not_shown_and_no_core_is_left();
    what_is_kept_out_is_neither_read_nor_written();
    a_program_has_its_directories_its_variables_and_nothing_else();
    a_program_is_started_as_it_was_seen_or_not_at_all();
    a_program_with_more_processes_than_it_may_have_is_ended();
    all_that_a_program_has_started_ends_with_it();
    a_program_ends_with_the_process_that_asked_for_it();
}

fn files_that_were_not_let_through_are_refused() {
    let dir = directory();
    let told = refused_but_for_neighbours("files", dir.path());
    assert!(told.len() >= 20, "{told:?}");
    let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!((text("secret.txt"), text("read/note.txt")), ("secret".into(), "note".into()));
    for planted in
        ["planted.txt", "linked.txt", "read/planted.txt", "write/moved.txt", "write/link"]
    {
        assert!(fs::symlink_metadata(dir.path().join(planted)).is_err(), "{planted}");
    }
    assert!(dir.path().join("removed/full/note.txt").exists());
    assert!(!dir.path().join("removed/empty").exists());
}

fn sockets_that_a_tool_host_never_opens_are_refused() {
    let dir = directory();
    assert!(refused_but_for_neighbours("sockets", dir.path()).len() >= 14);
}

fn a_wall_without_network_leaves_no_socket_and_no_file() {
    let dir = directory();
    refused_but_for_neighbours("no-network", dir.path());
}

fn no_program_is_started_and_no_other_process_reached() {
    let dir = directory();
    refused_but_for_neighbours("others", dir.path());
}

fn a_thread_made_later_is_behind_the_wall_too() {
    let dir = directory();
    refused_but_for_neighbours("threads", dir.path());
}

fn a_process_with_threads_is_left_alone_and_says_so() {
    let dir = directory();
    let told = told(&play("too-late", dir.path()));
    assert_eq!(told["says why"], "1 threads would stay outside");
    assert_eq!(told["neighbour: nothing was done by halves"], "worked");
}

fn what_only_an_intruder_calls_ends_the_process() {
    let dir = directory();
    let output = play("fatal", dir.path());
    assert_eq!(told(&output).keys().collect::<Vec<_>>(), ["before"]);
    assert_eq!(output.status.signal(), Some(31), "SIGSYS: {output:?}");
}

fn the_broker_starts_what_it_was_told_of_and_nothing_else() {
    let dir = directory();
    let output = play("broker", dir.path());
    assert!(output.status.success(), "{output:?}");
    let told = told(&output);
    let get = |name: &str| told.get(name).map(String::as_str).unwrap_or_default();
    let home = dir.path().to_str().unwrap();
    assert_eq!(get("exit"), " [exit status: 7]", "{told:?}");
    assert_eq!(get("pwd"), format!("{home} [exit status: 0]"));
    assert_eq!((get("known"), get("not of this kind")), ("kept", "nothing"));
    assert_eq!((get("unknown"), get("made")), ("nothing", "Code of 70000"));
    assert_eq!(get("not made"), "there is nothing in it");
    assert_eq!((get("no settings"), get("settings")), ("nothing", "written"));
    assert_eq!(get("replaced settings"), "somebody else wrote it");
    assert_eq!(fs::read_to_string(dir.path().join("removed/opened")).unwrap(), "by the broker");
    assert_eq!(get("cat"), "secret [exit status: 0]");
    assert_eq!(get("["), "closed [exit status: 0]", "a descriptor that was not given");
    let names: Vec<&str> = get("env").split([',', ' ']).collect();
    assert!(names.contains(&"BELLJAR_PROJECT_DIR"), "{names:?}");
    assert!(!names.contains(&"BELLJAR_SECRET_OF_THE_TEST"), "{names:?}");
    let own = ["its own read", "its own read of settings", "its own program"];
    for refused in ["another command", "another workspace"].into_iter().chain(own) {
        assert!(!get(refused).is_empty() && get(refused) != "worked", "{refused}: {told:?}");
    }
    assert_eq!(get("neighbour: once more"), "worked");
}

fn a_broker_ends_with_its_process_and_all_that_it_started() {
    let dir = directory();
    for fifo in ["alive", "never"] {
        assert!(Command::new("mkfifo").arg(dir.path().join(fifo)).status().unwrap().success());
    }
    let mut child = spawn("orphans", dir.path());
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "up: worked\n");
    // The hook holds `alive` open, so opening succeeds at once; reading ends when the hook has ended.
    let mut alive = fs::File::open(dir.path().join("alive")).unwrap();
    // After SIGKILL, the host process cannot ask the broker to end the hook.
    child.kill().unwrap();
    child.wait().unwrap();
    let mut left = Vec::new();
    alive.read_to_end(&mut left).unwrap();
    assert!(left.is_empty());
}

fn what_a_hook_leaves_in_sessions_of_its_own_ends_with_it() {
    let dir = directory();
    for fifo in ["alive", "never"] {
        assert!(Command::new("mkfifo").arg(dir.path().join(fifo)).status().unwrap().success());
    }
    let mut child = spawn("sessions", dir.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for expected in ["ends: well", "given up: badly"] {
        assert_eq!(lines.next().unwrap().unwrap(), expected);
        // With an own writer, opening for reading does not wait. The end of the file then shows that no
        // other writer is left.
        let path = dir.path().join("alive");
        let own = fs::File::options().read(true).write(true).open(&path).unwrap();
        let mut alive = fs::File::open(&path).unwrap();
        drop(own);
        let mut left = Vec::new();
        alive.read_to_end(&mut left).unwrap();
        child.stdin.as_mut().unwrap().write_all(b"next\n").unwrap();
    }
    assert!(child.wait().unwrap().success());
}

fn keys_of_the_environment_are_not_shown_and_no_core_is_left() {
    let dir = directory();
    let mut child = spawn("concealed", dir.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let told: Vec<String> = lines.by_ref().take_while(|line| line != "ready: yes").collect();
    assert_eq!(
        told,
        ["before: secret", "dumpable: NotDumpable", "core: Some(0) Some(0)", "its own: secret",]
    );
    // Reads the environment like another process of the same user, or like a process that may read
    // everything.
    let environment = fs::read(format!("/proc/{}/environ", child.id())).unwrap_or_default();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    assert!(!environment.contains("secret") && !environment.contains("BELLJAR"), "{environment}");
    child.stdin.as_mut().unwrap().write_all(b"done\n").unwrap();
    assert!(child.wait().unwrap().success());
}

fn what_is_kept_out_is_neither_read_nor_written() {
    let dir = directory();
    std::os::unix::fs::symlink(dir.path().join("write/note.txt"), dir.path().join("read/by-link"))
        .unwrap();
    let output = play("kept-out", dir.path());
    assert!(output.status.success(), "{output:?}");
    let mut told = told(&output);
    assert_eq!(told.remove("written around").unwrap(), "false");
    for (attempt, result) in &told {
        assert_eq!(result == "worked", attempt.starts_with("neighbour"), "{attempt}: {result}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("write/note.txt")).unwrap(), "note");
    assert!(!dir.path().join("write/planted.txt").exists());
}

fn a_program_has_its_directories_its_variables_and_nothing_else() {
    let dir = directory();
    let output = play("program", dir.path());
    assert!(output.status.success(), "{output:?}");
    let mut told = told(&output);
    assert_eq!(told.remove("neighbour: variables").unwrap(), "value", "given, and no other");
    assert_eq!(told.remove("path").unwrap(), "/bin:/usr/local/bin:/usr/bin:/bin");
    // INV-494: the directory and every file in it are removed after the program.
    let scratch = told.remove("scratch").unwrap();
    assert!(scratch.starts_with("/tmp/belljar-program-"), "{scratch}");
    assert!(!Path::new(&scratch).parent().unwrap().exists(), "{scratch}");
    assert_eq!(told.remove("before").unwrap(), "worked");
    assert_eq!(told.remove("fork"), None, "a process that it may not have");
    assert_eq!(told.remove("bounds").unwrap(), "65536");
    for name in ["attempts", "forks", "bounds"] {
        assert!(told.remove(&format!("{name} ended")).is_some(), "{told:?}");
    }
    assert!(told.len() >= 15, "{told:?}");
    for (attempt, result) in &told {
        assert_eq!(result == "worked", attempt.starts_with("neighbour"), "{attempt}: {result}");
    }
    let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!((text("secret.txt"), text("read/note.txt")), ("secret".into(), "note".into()));
    assert_eq!(text("write/new.txt"), "new\n");
    for planted in ["planted.txt", "read/planted.txt"] {
        assert!(!dir.path().join(planted).exists(), "{planted}");
    }
}

fn a_program_is_started_as_it_was_seen_or_not_at_all() {
    let dir = directory();
    let output = play("program-refused", dir.path());
    assert!(output.status.success(), "{output:?}");
    let told = told(&output);
    assert_eq!(told["identified"], "seen told");
    assert!(told["another digest"].starts_with("PermissionDenied"), "{told:?}");
    assert!(told["not told of"].contains("was not told of this program"), "{told:?}");
    assert!(told["without"].contains("no such secret"), "{told:?}");
    assert!(told["absent"].contains("nowhere` of its directories is not there"), "{told:?}");
    assert!(told["absent ended"].contains("126"), "{told:?}");
    assert_eq!(told["afterwards"], "here [exit status: 0]");
}

fn a_program_with_more_processes_than_it_may_have_is_ended() {
    let dir = directory();
    let place = dir.path().join("write");
    fifos(&place);
    let output = play("program-processes", dir.path());
    assert!(output.status.success(), "{output:?}");
    let told = told(&output);
    for name in ["some", "afterwards"] {
        assert_eq!(told[name], "one,two [exit status: 0]");
    }
    for name in ["many", "comet"] {
        let complaint = &told[&format!("complaint of {name}")];
        assert!(complaint.contains("it has more than 3 processes"), "{told:?}");
        assert!(!told[name].contains("survived") && !told[name].contains("status: 0"), "{told:?}");
    }
    let own = File::options().read(true).write(true).open(place.join("alive")).unwrap();
    let alive =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(place.join("alive"));
    drop(own);
    assert_eq!(alive.unwrap().read(&mut [0]).unwrap(), 0, "a process is left");
}

fn all_that_a_program_has_started_ends_with_it() {
    let dir = directory();
    let place = dir.path().join("write");
    fifos(&place);
    let mut child = spawn("program-sessions", dir.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for expected in ["ends: gone", "waits: gone"] {
        assert_eq!(lines.next().unwrap().unwrap(), expected);
        nobody_holds(&place.join("alive"));
        child.stdin.as_mut().unwrap().write_all(b"next\n").unwrap();
    }
    assert!(child.wait().unwrap().success());
}

fn a_program_ends_with_the_process_that_asked_for_it() {
    let dir = directory();
    let place = dir.path().join("write");
    fifos(&place);
    let mut child = spawn("program-orphans", dir.path());
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "up: worked\n");
    child.kill().unwrap();
    child.wait().unwrap();
    nobody_holds(&place.join("alive"));
}

fn fifos(place: &Path) {
    for fifo in ["alive", "never"] {
        assert!(Command::new("mkfifo").arg(place.join(fifo)).status().unwrap().success());
    }
}

/// Reads a FIFO to its end, which is reached only when no process has the FIFO open for writing.
fn nobody_holds(path: &Path) {
    // With an own writer, opening for reading does not wait.
    let own = fs::File::options().read(true).write(true).open(path).unwrap();
    let mut alive = fs::File::open(path).unwrap();
    drop(own);
    let mut left = Vec::new();
    alive.read_to_end(&mut left).unwrap();
}

/// Checks that all attempts are refused, except the attempts of the neighbour, which work.
#[track_caller]
fn refused_but_for_neighbours(part: &str, dir: &Path) -> BTreeMap<String, String> {
    let output = play(part, dir);
    assert!(output.status.success(), "{part}: {output:?}");
    let told = told(&output);
    assert!(told.keys().any(|name| name.starts_with("neighbour")), "{part}: {told:?}");
    for (attempt, result) in &told {
        let worked = result == "worked";
        assert_eq!(worked, attempt.starts_with("neighbour"), "{part}: {attempt}: {result}");
    }
    told
}

/// A directory with a readable part, a writable part, a part whose empty directories may be removed, and a
/// secret.
fn directory() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    for made in ["read", "write/sub", "removed/empty", "removed/full"] {
        fs::create_dir_all(path.join(made)).unwrap();
    }
    fs::write(path.join("secret.txt"), "secret").unwrap();
    for note in ["read/note.txt", "write/note.txt", "removed/full/note.txt"] {
        fs::write(path.join(note), "note").unwrap();
    }
    std::os::unix::fs::symlink(path.join("secret.txt"), path.join("write/out")).unwrap();
    dir
}

fn play(part: &str, dir: &Path) -> Output {
    spawn(part, dir).wait_with_output().unwrap()
}

fn spawn(part: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["part", part])
        .arg(dir)
        .env("BELLJAR_SECRET_OF_THE_TEST", "secret")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn told(output: &Output) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let pair = |line: &str| {
        let (name, result) = line
            .rsplit_once(": ")
            .filter(|_| line.starts_with("neighbour"))
            .or_else(|| line.split_once(": "))?;
        Some((name.to_owned(), result.to_owned()))
    };
    text.lines().filter_map(pair).collect()
}
