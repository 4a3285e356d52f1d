//! The parts that child processes play. Each prints `name: result`, a line for each attempt.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use belljar_os_sandbox::{Broker, Running, Setup, Wall};
use rustix::net::{AddressFamily as Family, Protocol, SocketType, socket};
use rustix::process::{Signal, getppid, kill_process, test_kill_process};
use tokio::io::AsyncReadExt as _;

/// Plays the compiler's child: says how long its input was.
pub(crate) fn compiler() -> ExitCode {
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input).unwrap();
    println!("compiled {}", input.len());
    ExitCode::SUCCESS
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
        name => panic!("no part is called {name}"),
    }
}

fn wall(dir: &Path) -> Wall {
    let mut wall = Wall::default().with_system();
    wall.read(&dir.join("read"));
    wall.write(&dir.join("write"));
    wall.remove_empty(&dir.join("removed"));
    wall
}

fn raise(wall: &Wall) {
    let raised = wall.raise();
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

/// Other processes and programs.
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
    let raised = wall(dir).raise();
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
    let hooks = hooks.iter().map(|hook| (*hook).to_owned()).collect();
    Broker::start(Setup { broker: vec!["broker".into()], hooks, workspace: dir.to_owned() })
        .unwrap()
}

/// All that a child wrote, and how it ended.
async fn outcome(mut child: Running) -> String {
    drop(child.stdin.take());
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    let status = child.wait().await.unwrap();
    format!("{} [{status}]", text.trim().replace('\n', ","))
}

async fn broker(dir: &Path) {
    // As a shell hands it down: a descriptor that is open for whoever is started.
    let leaked = rustix::io::dup(File::open(dir.join("secret.txt")).unwrap()).unwrap();
    let look = format!("[ -e /proc/self/fd/{} ] && echo open || echo closed", leaked.as_raw_fd());
    let hooks = ["cat secret.txt", "env | cut -d= -f1 | sort", look.as_str(), "exit 7", "pwd"];
    let broker = start(dir, &hooks);
    raise(&wall(dir));
    for hook in hooks {
        let name = hook.split(' ').next().unwrap();
        println!("{name}: {}", outcome(broker.hook(hook, dir).await.unwrap()).await);
    }
    println!("compiler: {}", outcome(broker.compiler().await.unwrap()).await);
    tell("another command", broker.hook("cat /etc/passwd", dir).await);
    tell("another workspace", broker.hook("pwd", Path::new("/")).await);
    tell("its own read", fs::read(dir.join("secret.txt")));
    tell("its own program", Command::new("/bin/true").status());
    tell("neighbour: once more", broker.hook("pwd", dir).await);
}

/// Starts a hook that waits for ever, and waits too.
async fn orphans(dir: &Path) {
    // The hook's background process holds `alive` open as long as it lives.
    let hook = "(exec 3<>never; exec 4<>alive; echo up; read x <&3) & wait";
    let broker = start(dir, &[hook]);
    raise(&wall(dir));
    let mut child = broker.hook(hook, dir).await.unwrap();
    let mut up = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
    println!("up: worked");
    let _ = child.wait().await;
}
