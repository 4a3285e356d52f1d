//! The targets of the attacks: a home with a cache and tenants, files outside, a daemon's sockets, a process
//! of the same user, and memory that processes share by number.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::raw::{Done, RawArgument, call_kernel};

/// What an attack knows about the stage; a real attacker would find it out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttackTargets {
    /// The directory that contains all files of the stage.
    pub(crate) root: PathBuf,
    pub(crate) victim: i32,
    pub(crate) memory: i64,
    pub(crate) semaphores: i64,
    pub(crate) messages: i64,
    /// The abstract name of a socket, which has no path.
    pub(crate) name: String,
    /// A TCP port on which nothing listens.
    pub(crate) port: u16,
    /// True if the control is to be made, and not the attack.
    pub(super) control: bool,
    #[serde(skip)]
    pub(crate) held: HeldDescriptors,
}

/// Descriptors that the child opened before the wall was set up, as a process that is taken over later would
/// have. The calls that make such descriptors are refused behind the wall, so using them must be refused too.
/// `-1` if the kernel gives none.
#[derive(Debug, Clone)]
pub(crate) struct HeldDescriptors {
    /// A descriptor of the victim process (pidfd).
    pub(crate) victim: i64,
    /// A descriptor of a file watch.
    pub(crate) watch: i64,
    /// A descriptor of an io_uring.
    pub(crate) ring: i64,
}

impl Default for HeldDescriptors {
    fn default() -> Self {
        Self { victim: -1, watch: -1, ring: -1 }
    }
}

impl AttackTargets {
    pub(crate) fn path_at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn home_path(&self) -> PathBuf {
        self.path_at("home")
    }

    /// Opens these descriptors, before the wall is set up.
    pub(super) fn open_held(&mut self) {
        let or_none = |made: Done| made.unwrap_or(-1);
        self.held = HeldDescriptors {
            victim: or_none(call_kernel(libc::SYS_pidfd_open, [self.victim.into(), 0.into()])),
            watch: or_none(call_kernel(libc::SYS_inotify_init1, [libc::IN_CLOEXEC.into()])),
            ring: or_none(call_kernel(
                libc::SYS_io_uring_setup,
                [1.into(), RawArgument::with_room(120)],
            )),
        };
    }
}

/// A file's content with everything else of it that can be changed, for example its mode and times.
type Seen = (u32, u32, u32, i64, i64, Vec<u8>);

pub(super) struct WallStage {
    _dir: TempDir,
    pub(super) targets: AttackTargets,
    victim: VictimProcess,
    stream: UnixListener,
    nameless: UnixListener,
    datagrams: UnixDatagram,
}

struct VictimProcess {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

/// The victim's answer before or after an attack, with the time that it took.
pub(super) struct VictimAnswer {
    pub(super) text: String,
    pub(super) took: Duration,
}

/// The folder of certificates that the environment variable names.
pub(super) const TLS: &str = "outside/tls";

/// A certificate in that folder.
pub(super) const CERTIFICATE: &str = "outside/tls/certs/ca.crt";

/// The files of the stage. The cache's key and entries come from an earlier run.
const FILES: &[(&str, &str)] = &[
    ("home/belljar.toml", SETTINGS),
    ("home/agents/own.md", "---\nname: own\ndescription: d\ntools: []\n---\nBe brief.\n"),
    ("home/cache/planted-by-nobody.cwasm", "an entry of the cache"),
    ("home/sessions/tenants/red/home/belljar.toml", TENANT),
    ("home/sessions/tenants/red/home/agents/red.md", "---\nname: red\ndescription: d\n---\nHi.\n"),
    ("home/sessions/workspaces/red/note.txt", "red's"),
    ("home/sessions/store/note.txt", "beside the store"),
    ("workspace/note.txt", "the workspace's"),
    ("outside/secret.txt", "nobody may read this"),
    ("outside/private/name-of-a-file", "x"),
    (CERTIFICATE, "-----BEGIN CERTIFICATE-----\n"),
    ("outside/tls/certs/proxy.pem", "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n"),
    ("outside/tls/private/machine.key", "-----BEGIN PRIVATE KEY-----\n"),
    ("outside/script.sh", "#!/bin/sh\necho out > \"$(dirname \"$0\")/ran.txt\"\n"),
];

const SETTINGS: &str = "[grants.own]\ntools = ['file_read', 'file_write']\n\
    mounts = [{ path = '/workspace', access = 'read-write' }]\n\n\
    [[hooks]]\nevent = 'PreToolUse'\ncommand = 'exit 0'\n";

const TENANT: &str = "[grants.red]\ntools = ['file_read', 'file_write']\n\
    mounts = [{ path = '/workspace', access = 'read-write' }]\n";

impl WallStage {
    /// Sets up the stage. `victim` is the command that runs this program as [`super::be_victim`].
    pub(super) fn new(mut victim: Command) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("belljar-prove-").tempdir()?;
        let root = dir.path().canonicalize()?;
        for (path, text) in FILES {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&root))?;
            fs::write(path, text)?;
        }
        let key = root.join("home/cache/key");
        fs::write(&key, [7; 32])?;
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        let script = root.join("outside/script.sh");
        fs::set_permissions(script, fs::Permissions::from_mode(0o700))?;
        fs::set_permissions(root.join("home/cache"), fs::Permissions::from_mode(0o700))?;
        let name = format!("belljar-prove-{}-{}", std::process::id(), fastrand::u64(..));
        let nameless = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let stream = UnixListener::bind(root.join("outside/daemon.sock"))?;
        let datagrams = UnixDatagram::bind(root.join("outside/log.sock"))?;
        nameless.set_nonblocking(true)?;
        stream.set_nonblocking(true)?;
        datagrams.set_nonblocking(true)?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        victim.env("BELLJAR_PROVE_SECRET", "nobody may read this");
        let mut child = victim.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        let (stdin, stdout) = stdin.zip(stdout).context("the victim has no streams")?;
        let victim = VictimProcess { child, stdin, stdout };
        let create = i64::from(libc::IPC_CREAT | 0o600);
        let private = i64::from(libc::IPC_PRIVATE);
        let targets = AttackTargets {
            root,
            victim: i32::try_from(victim.child.id())?,
            memory: call_kernel(libc::SYS_shmget, [private.into(), 4_096.into(), create.into()])?,
            semaphores: call_kernel(libc::SYS_semget, [private.into(), 1.into(), create.into()])?,
            messages: call_kernel(libc::SYS_msgget, [private.into(), create.into()])?,
            name,
            port,
            control: false,
            held: HeldDescriptors::default(),
        };
        furnish_queues(&targets)?;
        Ok(Self { _dir: dir, targets, victim, stream, nameless, datagrams })
    }

    /// The state of everything outside that an attack could change.
    pub(super) fn take_picture(&mut self) -> Result<BTreeMap<String, Seen>> {
        let mut seen = BTreeMap::new();
        for part in ["home", "outside"] {
            collect_files(&self.targets.root.join(part), &mut seen)?;
        }
        for (name, call_number, id) in [
            ("shared memory", libc::SYS_shmctl, self.targets.memory),
            ("messages", libc::SYS_msgctl, self.targets.messages),
        ] {
            let state = query_state(
                call_number,
                [id.into(), libc::IPC_STAT.into(), RawArgument::with_room(256)],
            );
            seen.insert(name.to_owned(), (0, 0, 0, 0, 0, state));
        }
        let semaphore = call_kernel(
            libc::SYS_semctl,
            [self.targets.semaphores.into(), 0.into(), libc::GETVAL.into(), 0.into()],
        );
        seen.insert("a semaphore".to_owned(), (0, 0, 0, 0, 0, format!("{semaphore:?}").into()));
        Ok(seen)
    }

    /// The clients that have connected to the daemon's sockets, if any.
    pub(super) fn find_callers(&self) -> Option<String> {
        let mut room = [0; 16];
        if self.stream.accept().is_ok() {
            return Some("a connection to a socket by its path".to_owned());
        }
        if self.nameless.accept().is_ok() {
            return Some("a connection to a socket by its name".to_owned());
        }
        self.datagrams.recv(&mut room).is_ok().then(|| "a datagram to a socket".to_owned())
    }

    /// Asks the victim for its state.
    pub(super) fn ask_victim(&mut self) -> Result<VictimAnswer> {
        let begun = Instant::now();
        self.victim.stdin.write_all(b"how are you\n")?;
        let mut text = String::new();
        self.victim.stdout.read_line(&mut text)?;
        if text.is_empty() {
            bail!("the process outside has ended");
        }
        Ok(VictimAnswer { text, took: begun.elapsed() })
    }
}

impl Drop for WallStage {
    fn drop(&mut self) {
        let remove = i64::from(libc::IPC_RMID);
        let AttackTargets { memory, semaphores, messages, .. } = self.targets;
        let _ = call_kernel(libc::SYS_shmctl, [memory.into(), remove.into(), 0.into()]);
        let _ =
            call_kernel(libc::SYS_semctl, [semaphores.into(), 0.into(), remove.into(), 0.into()]);
        let _ = call_kernel(libc::SYS_msgctl, [messages.into(), remove.into(), 0.into()]);
        let _ = call_kernel(libc::SYS_mq_unlink, [RawArgument::from_text(&self.targets.name)]);
        let _ = self.victim.child.kill();
        let _ = self.victim.child.wait();
    }
}

/// Makes a message in the shared queue for an attack to take, and a queue by the stage's name, which not
/// every kernel supports.
fn furnish_queues(targets: &AttackTargets) -> Result<()> {
    let message = RawArgument::Bytes([1_u64.to_le_bytes(), *b"for-home"].concat());
    call_kernel(libc::SYS_msgsnd, [targets.messages.into(), message, 8.into(), 0.into()])?;
    let (name, flags) = (RawArgument::from_text(&targets.name), libc::O_CREAT | libc::O_RDWR);
    if let Ok(queue) = call_kernel(libc::SYS_mq_open, [name, flags.into(), 0o600.into(), 0.into()])
    {
        call_kernel(libc::SYS_close, [queue.into()])?;
    }
    Ok(())
}

fn query_state(number: i64, arguments: [RawArgument; 3]) -> Vec<u8> {
    super::raw::call_for_bytes(number, arguments)
}

/// Collects the files below a path, except those that the store and the cache write themselves.
fn collect_files(path: &Path, seen: &mut BTreeMap<String, Seen>) -> Result<()> {
    let meta = fs::symlink_metadata(path)?;
    let ours = path.ends_with("home/sessions/store") || path.ends_with("red/workspace");
    let content = match meta.is_file() {
        true => fs::read(path)?,
        false => Vec::new(),
    };
    let times = if meta.is_file() { (meta.mtime(), meta.mtime_nsec()) } else { (0, 0) };
    let found = (meta.mode(), meta.uid(), meta.gid(), times.0, times.1, content);
    seen.insert(path.display().to_string(), found);
    if meta.is_dir() && !ours {
        for entry in fs::read_dir(path)? {
            collect_files(&entry?.path(), seen)?;
        }
    }
    Ok(())
}
