//! The parts that child processes play. Each part prints a line `name: result` for each attempt.
#![expect(
    clippy::disallowed_methods,
    reason = "whether walls hold for threads too is what is tried"
)]

use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;

use belljar_os_sandbox::{
    Broker, BrokerSetup, BrokerVault, DerivedFile, KnownProgram, Making, Program, RunningChild,
    Wall, conceal_process,
};
use rustix::net::{AddressFamily as Family, Protocol, SocketType, socket};
use rustix::process::{Signal, getppid, kill_process, test_kill_process};
use tokio::io::AsyncReadExt as _;

/// A vault that contains one derived file. A newly made file only states its kind and the source's length.
pub(crate) struct Shelf;

impl BrokerVault for Shelf {
    fn open_cache(&self, directory: Option<&Path>) {
        if let Some(directory) = directory {
            fs::write(directory.join("opened"), "by the broker").unwrap();
        }
    }

    fn find_derived(&self, made: DerivedFile, digest: &str) -> Option<Vec<u8>> {
        (made == DerivedFile::Code && digest == "known").then(|| b"kept".to_vec())
    }

    fn make_derived<'a>(&'a self, made: DerivedFile, component: Vec<u8>) -> Making<'a> {
        Box::pin(async move {
            match component.is_empty() {
                true => Err("there is nothing in it".to_owned()),
                false => Ok(format!("{made:?} of {}", component.len()).into_bytes()),
            }
        })
    }

    fn read_settings(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        match fs::read(path) {
            Ok(text) if text == b"not ours" => Err("somebody else wrote it".to_owned()),
            read => Ok(read.ok()),
        }
    }

    fn identify_program(&self, program: &Program) -> Result<String, String> {
        Ok(format!("seen {}", program.name))
    }
}

pub(crate) fn play(name: &str, dir: &Path) {
    match name {
        "files" => files(dir),
        "sockets" => sockets(),
        "no-network" => no_network(),
        "others" => others(),
        "threads" => threads(dir),
        "too-late" => too_late(dir),
        "fatal" => fatal(),
        "broker" => runtime().block_on(broker(dir)),
        "orphans" => runtime().block_on(orphans(dir)),
        "sessions" => runtime().block_on(sessions(dir)),
        "concealed" => concealed(),
        "kept-out" => kept_out(dir),
        "program" => runtime().block_on(crate::programs::confined(dir)),
        "program-refused" => runtime().block_on(crate::programs::refused(dir)),
        "program-processes" => runtime().block_on(crate::programs::processes(dir)),
        "program-sessions" => runtime().block_on(crate::programs::sessions(dir)),
        "program-orphans" => runtime().block_on(crate::programs::orphans(dir)),
        name => panic!("no part is called {name}"),
    }
}

pub(crate) fn wall(dir: &Path) -> Wall {
    let mut wall = Wall::default().with_system();
    wall.allow_read(&dir.join("read"));
    wall.allow_write(&dir.join("write"));
    wall.allow_remove_empty(&dir.join("removed"));
    wall
}

pub(crate) fn raise(wall: &Wall) {
    let raised = wall.raise_wall();
    assert!(raised.landlock.is_some() && raised.seccomp, "{raised:?}");
}

fn tell<T>(attempt: &str, result: io::Result<T>) {
    let result = match result {
        Ok(_) => "worked".to_owned(),
        Err(error) => format!("{:?}", error.kind()),
    };
    println!("{attempt}: {result}");
}

fn files(dir: &Path) {
    raise(&wall(dir));
    let (read, write) = (dir.join("read"), dir.join("write"));
    tell("read a file of nobody's", fs::read(dir.join("secret.txt")));
    tell("read the list of users", fs::read("/etc/passwd"));
    tell("read own environment", fs::read("/proc/self/environ"));
    tell("list beside", fs::read_dir(dir));
    tell("write beside", fs::write(dir.join("planted.txt"), "x"));
    tell("empty beside", File::options().write(true).truncate(true).open(dir.join("secret.txt")));
    tell("remove beside", fs::remove_file(dir.join("secret.txt")));
    tell("write what is read", fs::write(read.join("note.txt"), "x"));
    tell("plant in what is read", fs::write(read.join("planted.txt"), "x"));
    tell("move out of what is read", fs::rename(read.join("note.txt"), write.join("moved.txt")));
    tell("link out", fs::hard_link(write.join("note.txt"), dir.join("linked.txt")));
    tell("make a symbolic link", std::os::unix::fs::symlink("/etc", write.join("link")));
    tell("follow a symbolic link out", fs::read(write.join("out")));
    tell("give a file away", std::os::unix::fs::chown(write.join("note.txt"), Some(1), None));
    tell("remove a full directory", fs::remove_dir(dir.join("removed/full")));
    tell("remove a file there", fs::remove_file(dir.join("removed/full/note.txt")));
    tell("neighbour: read", fs::read(read.join("note.txt")));
    tell("neighbour: write", fs::write(write.join("new.txt"), "new"));
    tell("neighbour: move", fs::rename(write.join("new.txt"), write.join("sub/newer.txt")));
    tell("neighbour: remove", fs::remove_file(write.join("sub/newer.txt")));
    tell("neighbour: remove an empty directory", fs::remove_dir(dir.join("removed/empty")));
    tell("neighbour: nothing", fs::write("/dev/null", "x"));
    tell("neighbour: certificates' place", fs::read_dir("/usr/share"));
}

fn sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    raise(&Wall::default().with_system());
    let raw =
        |family, kind, protocol| socket(family, kind, protocol).map(drop).map_err(io::Error::from);
    let number = |number: u32| std::num::NonZeroU32::new(number).map(Protocol::from_raw);
    tell("packets", raw(Family::PACKET, SocketType::RAW, None));
    tell("packets of datagrams", raw(Family::PACKET, SocketType::DGRAM, None));
    tell("machines", raw(Family::VSOCK, SocketType::STREAM, None));
    tell("ciphers", raw(Family::from_raw(38), SocketType::SEQPACKET, None));
    tell("radio", raw(Family::BLUETOOTH, SocketType::RAW, None));
    tell("raw ip", raw(Family::INET, SocketType::RAW, number(1)));
    tell("pings", raw(Family::INET, SocketType::DGRAM, number(1)));
    tell("streams of another kind", raw(Family::INET, SocketType::STREAM, number(132)));
    tell("the audit's netlink", raw(Family::NETLINK, SocketType::RAW, number(9)));
    tell("waiting for connections", TcpListener::bind("127.0.0.1:0"));
    tell("neighbour: connect", TcpStream::connect(address));
    let bound = UdpSocket::bind("127.0.0.1:0");
    tell("listening without a name", {
        let own = socket(Family::INET, SocketType::STREAM, None).unwrap();
        rustix::net::listen(own, 1).map_err(io::Error::from)
    });
    tell("a local socket", std::os::unix::net::UnixDatagram::unbound());
    tell("local sockets that can be sent elsewhere", std::os::unix::net::UnixDatagram::pair());
    tell("neighbour: udp, bound", bound);
    tell("neighbour: udp", UdpSocket::bind("127.0.0.1:0"));
    tell("neighbour: local", std::os::unix::net::UnixStream::pair());
    tell("neighbour: the list of addresses", raw(Family::NETLINK, SocketType::RAW, None));
}

fn no_network() {
    raise(&Wall::default());
    tell("tcp", TcpStream::connect("127.0.0.1:1"));
    tell("udp", UdpSocket::bind("127.0.0.1:0"));
    tell("local", std::os::unix::net::UnixDatagram::unbound());
    tell("any file", fs::read("/dev/null"));
    tell("neighbour: time goes on", io::Result::Ok(std::time::Instant::now()));
}

/// Tries to reach other processes, and to run programs.
fn others() {
    raise(&Wall::default().with_system());
    let parent = getppid().unwrap();
    tell("run a program", Command::new("/bin/true").status());
    tell("run itself", Command::new("/proc/self/exe").arg("compiler").status());
    tell("signal the parent", kill_process(parent, Signal::CONT).map_err(io::Error::from));
    tell("look for the parent", test_kill_process(parent).map_err(io::Error::from));
    let own = rustix::process::getpid();
    tell("neighbour: signal oneself", kill_process(own, Signal::CONT).map_err(io::Error::from));
    tell("neighbour: a thread", std::thread::Builder::new().spawn(|| {}));
}

fn threads(dir: &Path) {
    raise(&wall(dir));
    let (secret, note) = (dir.join("secret.txt"), dir.join("read/note.txt"));
    let thread = std::thread::spawn(move || {
        tell("read in a later thread", fs::read(secret));
        tell("run in a later thread", Command::new("/bin/true").status());
        tell("neighbour: read in a later thread", fs::read(note));
    });
    thread.join().unwrap();
}

fn too_late(dir: &Path) {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || ended.recv());
    let raised = wall(dir).raise_wall();
    println!("says why: {}", raised.missing.join(" "));
    tell("neighbour: nothing was done by halves", fs::read(dir.join("secret.txt")));
    drop(end);
    let _ = thread.join().unwrap();
}

fn fatal() {
    raise(&Wall::default().with_system());
    println!("before: worked");
    tell("after", rustix::process::chroot("/").map_err(io::Error::from));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn start(dir: &Path, hooks: &[&str]) -> Broker {
    start_with(dir, hooks, Vec::new())
}

pub(crate) fn start_with(dir: &Path, hooks: &[&str], programs: Vec<KnownProgram>) -> Broker {
    let hooks = hooks.iter().map(|hook| (*hook).to_owned()).collect();
    let (broker, workspace) = (vec!["broker".into()], dir.to_owned());
    let (cache, settings) = (Some(dir.join("removed")), Some(dir.join("settings")));
    Broker::start_broker(BrokerSetup { broker, hooks, programs, workspace, cache, settings })
        .unwrap()
}

/// Commands that write the settings file, and that replace the file by another file.
const WRITE: &str = "printf written > settings";
const REPLACE: &str = "printf 'not ours' > next && mv next settings";

/// The output of a child, and the child's exit status.
pub(crate) async fn outcome(mut child: RunningChild) -> String {
    drop(child.stdin.take());
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    let status = child.wait().await.unwrap();
    format!("{} [{status}]", text.trim().replace('\n', ","))
}

async fn broker(dir: &Path) {
    // Like a descriptor that a shell leaves open: every started program would inherit it.
    let leaked = rustix::io::dup(File::open(dir.join("secret.txt")).unwrap()).unwrap();
    let look = format!("[ -e /proc/self/fd/{} ] && echo open || echo closed", leaked.as_raw_fd());
    let hooks = ["cat secret.txt", "env | cut -d= -f1 | sort", look.as_str(), "exit 7", "pwd"];
    let broker = start(dir, &[&hooks[..], &[WRITE, REPLACE]].concat());
    raise(&wall(dir));
    for hook in hooks {
        let name = hook.split(' ').next().unwrap();
        println!("{name}: {}", outcome(broker.start_hook(hook, dir).await.unwrap()).await);
    }
    let shown = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    for (name, made, digest) in [
        ("known", DerivedFile::Code, "known"),
        ("not of this kind", DerivedFile::Tools, "known"),
        ("unknown", DerivedFile::Code, "../key"),
    ] {
        let found = broker.find_derived(made, digest).await.unwrap();
        println!("{name}: {}", found.map_or("nothing".to_owned(), shown));
    }
    println!(
        "made: {}",
        shown(broker.make_derived(DerivedFile::Code, &[0; 70_000]).await.unwrap())
    );
    println!("not made: {}", broker.make_derived(DerivedFile::Tools, b"").await.unwrap_err());
    let settings = async || match broker.read_settings().await {
        Ok(text) => text.map_or("nothing".to_owned(), shown),
        Err(error) => error.to_string(),
    };
    // The hooks change the settings from outside, like an operator. Each change makes a new file.
    let hook = async |hook: &str| outcome(broker.start_hook(hook, dir).await.unwrap()).await;
    println!("no settings: {}", settings().await);
    hook(WRITE).await;
    println!("settings: {}", settings().await);
    hook(REPLACE).await;
    println!("replaced settings: {}", settings().await);
    tell("its own read of settings", fs::read(dir.join("settings")));
    tell("another command", broker.start_hook("cat /etc/passwd", dir).await);
    tell("another workspace", broker.start_hook("pwd", Path::new("/")).await);
    tell("its own read", fs::read(dir.join("secret.txt")));
    tell("its own program", Command::new("/bin/true").status());
    tell("neighbour: once more", broker.start_hook("pwd", dir).await);
}

/// Starts a hook that waits for ever, and waits for the hook.
async fn orphans(dir: &Path) {
    // The hook's background process holds `alive` open as long as it lives.
    let hook = "(exec 3<>never; exec 4<>alive; echo up; read x <&3) & wait";
    let broker = start(dir, &[hook]);
    raise(&wall(dir));
    let mut child = broker.start_hook(hook, dir).await.unwrap();
    let mut up = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
    println!("up: worked");
    let _ = child.wait().await;
}

/// A hook leaves processes in sessions of their own. The hook then ends, or its caller gives up.
async fn sessions(dir: &Path) {
    let leave =
        "setsid sh -c '(setsid sh -c \"exec 3<>never; exec 4<>alive; echo up; read x <&3\" &)'";
    let ending = format!("{leave}; read x; exit 0");
    let waiting = format!("{leave}; exec 3<>never; read x <&3");
    let broker = start(dir, &[&ending, &waiting]);
    raise(&wall(dir));
    for (name, hook) in [("ends", &ending), ("given up", &waiting)] {
        let mut child = broker.start_hook(hook, dir).await.unwrap();
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        match name {
            "ends" => drop(child.stdin.take()),
            _ => child.kill(),
        }
        let status = child.wait().await.unwrap();
        println!("{name}: {}", if status.success() { "well" } else { "badly" });
        let line = {
            let mut line = String::new();
            io::stdin().read_line(&mut line).unwrap();
            line
        };
        assert_eq!(line, "next\n");
    }
}

/// Waits, so that the test can look at the process from outside.
fn concealed() {
    println!("before: {}", std::env::var("BELLJAR_SECRET_OF_THE_TEST").unwrap());
    conceal_process();
    let dumpable = rustix::process::dumpable_behavior().unwrap();
    println!("dumpable: {dumpable:?}");
    let core = rustix::process::getrlimit(rustix::process::Resource::Core);
    println!("core: {:?} {:?}", core.current, core.maximum);
    println!("its own: {}", std::env::var("BELLJAR_SECRET_OF_THE_TEST").unwrap());
    println!("ready: yes");
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
}

/// A directory that is excluded from a readable directory, and a readable directory beside it.
fn kept_out(dir: &Path) {
    let mut wall = Wall::default().with_system();
    wall.allow_read(dir);
    wall.exclude_directory(&dir.join("write"));
    println!("written around: {}", wall.writes_around(&dir.join("write")));
    raise(&wall);
    tell("read it", fs::read(dir.join("write/note.txt")));
    tell("read it by a link", fs::read(dir.join("read/by-link")));
    tell("write it", fs::write(dir.join("write/note.txt"), "x"));
    tell("plant in it", fs::write(dir.join("write/planted.txt"), "x"));
    tell("neighbour: list", fs::read_dir(dir));
    tell("neighbour: read a file", fs::read(dir.join("secret.txt")));
    tell("neighbour: read below", fs::read(dir.join("removed/full/note.txt")));
}
