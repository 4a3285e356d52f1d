//! The parts about programs: what a confined program can do. Each program is a shell script. Most scripts
//! use only the shell's own commands, because the program may not start processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use belljar_os_sandbox::{KnownProgram, Program, ProgramEnvironment};
use tokio::io::AsyncReadExt as _;

use crate::parts::{outcome, raise, start_with, wall};

/// Each attempt is a command of the shell itself, in a form whose failure does not end the shell.
const ATTEMPTS: &str = r#"
d=$1
reads() { x=; read x < "$1" || [ -n "$x" ]; }
say() { if [ "$2" = 0 ]; then echo "$1: worked"; else echo "$1: refused"; fi; }
reads "$d/secret.txt"; say "read a file of nobody's" $?
reads /etc/passwd; say "read the list of users" $?
reads "/proc/$PPID/environ"; say "read its keeper's environment" $?
reads "/proc/$2/environ"; say "read the host's environment" $?
reads "$d/write/out"; say "follow a link out" $?
reads /dev/tty; say "read the terminal" $?
lists() { for f in "$1"/*; do [ "$f" != "$1/*" ]; return $?; done; }
lists /etc/ssl; say "list the machine's keys for TLS" $?
lists /etc/pki/tls; say "list such keys elsewhere" $?
reads /usr/local/etc/belljar-test.key; say "read the settings of services" $?
echo x > "$d/planted.txt"; say "write beside" $?
echo x > "$d/secret.txt"; say "empty beside" $?
echo x > "$d/read/planted.txt"; say "plant in what is read" $?
echo x > "$d/read/note.txt"; say "write what is read" $?
kill -0 "$PPID"; say "signal its keeper" $?
kill -0 "$2"; say "signal the host" $?
[ -e "/proc/self/fd/$3" ]; say "a descriptor that was not given" $?
lists /tmp; say "list what others have for a while" $?
reads "$d/read/note.txt"; say "neighbour: read" $?
echo x > "$HOME/kept"; say "neighbour: a home of its own" $?
echo x > "$TMPDIR/kept"; say "neighbour: a temporary directory of its own" $?
reads /etc/os-release; say "neighbour: read what everybody may know" $?
echo "scratch: $HOME"
echo "path: $PATH"
echo new > "$d/write/new.txt"; say "neighbour: write" $?
echo "neighbour: variables: $(export -p)"
"#;

fn shell(name: &str, script: &str, processes: u32, dir: &Path, more: &[String]) -> Program {
    let mut args = vec!["-c".to_owned(), script.to_owned(), "sh".to_owned()];
    args.push(dir.to_str().unwrap().to_owned());
    args.extend_from_slice(more);
    Program {
        name: name.to_owned(),
        path: "/bin/sh".into(),
        args,
        data: BTreeSet::new(),
        read: [dir.join("read")].into(),
        write: [dir.join("write")].into(),
        network: false,
        only_port: None,
        memory: 64 << 20,
        processes,
    }
}

fn known(program: &Program) -> KnownProgram {
    let given = BTreeMap::from([("GIVEN".to_owned(), "value".to_owned())]);
    KnownProgram { program: program.clone(), environment: Ok(ProgramEnvironment(given)) }
}

/// A program that may not start other processes.
pub(crate) async fn confined(dir: &Path) {
    let leaked = rustix::io::dup(File::open(dir.join("secret.txt")).unwrap()).unwrap();
    let numbers = [std::process::id().to_string(), leaked.as_raw_fd().to_string()];
    // `$(export -p)` would start a process, and the refusal would end the shell.
    let script = ATTEMPTS.replace("$(export -p)", "$GIVEN$BELLJAR_SECRET_OF_THE_TEST");
    let bounds = "echo \"bounds: $(ulimit -d)\"";
    let attempts = shell("attempts", &script, 0, dir, &numbers);
    let forks = shell("forks", "echo before: worked; /bin/true; echo fork: worked", 0, dir, &[]);
    let bounds = shell("bounds", bounds, 1, dir, &[]);
    let broker = start_with(dir, &[], [&attempts, &forks, &bounds].map(known).into());
    raise(&wall(dir));
    for program in [&attempts, &forks, &bounds] {
        let child = broker.start_program(program, &format!("seen {}", program.name)).await.unwrap();
        let told = outcome(child).await;
        let (lines, status) = told.rsplit_once(" [").unwrap();
        lines.split(',').for_each(|line| println!("{line}"));
        println!("{} ended: {status}", program.name);
    }
}

/// Programs that the broker refuses to start.
pub(crate) async fn refused(dir: &Path) {
    let told = shell("told", "echo here", 0, dir, &[]);
    let changed = Program { network: true, ..told.clone() };
    let absent = Program {
        name: "absent".to_owned(),
        read: BTreeSet::from([dir.join("nowhere")]),
        ..told.clone()
    };
    let lacking = Program { name: "lacking".to_owned(), ..told.clone() };
    let without =
        KnownProgram { program: lacking.clone(), environment: Err("no such secret".to_owned()) };
    let broker = start_with(dir, &[], vec![known(&told), known(&absent), without]);
    raise(&wall(dir));
    let why = |result: io::Result<_>| match result {
        Ok(_) => "worked".to_owned(),
        Err(error) => format!("{:?} {error}", error.kind()),
    };
    println!("identified: {}", broker.identify_program(&told).await.unwrap());
    println!("another digest: {}", why(broker.start_program(&told, "seen before").await.map(drop)));
    println!("not told of: {}", why(broker.start_program(&changed, "seen told").await.map(drop)));
    println!("without: {}", why(broker.start_program(&lacking, "seen lacking").await.map(drop)));
    let mut child = broker.start_program(&absent, "seen absent").await.unwrap();
    let mut complaint = String::new();
    child.stderr.take().unwrap().read_to_string(&mut complaint).await.unwrap();
    println!("absent: {}", complaint.trim());
    println!("absent ended: {}", outcome(child).await);
    let child = broker.start_program(&told, "seen told").await.unwrap();
    println!("afterwards: {}", outcome(child).await);
}

/// A program that may have two processes beside its own.
pub(crate) async fn processes(dir: &Path) {
    let some = shell("some", "/bin/echo one && /bin/echo two", 2, dir, &[]);
    let many =
        "for n in 1 2 3 4 5 6 7; do (read x < \"$1/write/never\") & done; wait; echo survived";
    let many = shell("many", many, 2, dir, &[]);
    // Each process starts the next and ends, so a search for the processes finds few of them, or none.
    let comet =
        "cd \"$1/write\"; exec 4<>alive; next() { (next) & }; next; read x < never; echo survived";
    let comet = shell("comet", comet, 2, dir, &[]);
    let broker = start_with(dir, &[], [&some, &many, &comet].map(known).into());
    raise(&wall(dir));
    println!("some: {}", outcome(broker.start_program(&some, "seen some").await.unwrap()).await);
    for program in [&many, &comet] {
        let name = &program.name;
        let mut child = broker.start_program(program, &format!("seen {name}")).await.unwrap();
        let mut complaint = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaint).await.unwrap();
        println!("complaint of {name}: {}", complaint.trim().replace('\n', "; "));
        println!("{name}: {}", outcome(child).await);
    }
    println!(
        "afterwards: {}",
        outcome(broker.start_program(&some, "seen some").await.unwrap()).await
    );
}

/// Leaves processes in sessions of their own. Each holds `alive` open until the process ends.
const LEAVE: &str = "cd \"$1/write\"; setsid /bin/sh -c '(setsid /bin/sh -c \"exec 3<>never; exec \
                     4<>alive; echo up; read x <&3\" &)'";

/// A program leaves processes behind. The program then ends, or its caller gives up.
pub(crate) async fn sessions(dir: &Path) {
    let ends = shell("ends", &format!("{LEAVE}; read x; exit 0"), 8, dir, &[]);
    let waits = shell("waits", &format!("{LEAVE}; exec 3<>never; read x <&3"), 8, dir, &[]);
    let broker = start_with(dir, &[], [&ends, &waits].map(known).into());
    raise(&wall(dir));
    for program in [&ends, &waits] {
        let digest = format!("seen {}", program.name);
        let mut child = broker.start_program(program, &digest).await.unwrap();
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        match program.name.as_str() {
            "ends" => drop(child.stdin.take()),
            _ => child.kill(),
        }
        let _ = child.wait().await.unwrap();
        println!("{}: gone", program.name);
        let mut line = String::new();
        io::stdin().read_line(&mut line).unwrap();
        assert_eq!(line, "next\n");
    }
}

/// Starts a program that waits for ever, and waits for the program.
pub(crate) async fn orphans(dir: &Path) {
    let waits = shell("waits", &format!("{LEAVE}; exec 3<>never; read x <&3"), 8, dir, &[]);
    let broker = start_with(dir, &[], vec![known(&waits)]);
    raise(&wall(dir));
    let mut child = broker.start_program(&waits, "seen waits").await.unwrap();
    let mut up = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
    println!("up: worked");
    let _ = child.wait().await;
}
