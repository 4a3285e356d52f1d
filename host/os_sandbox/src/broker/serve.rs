//! The broker process: receives requests, and serves each in a thread of its own.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::pin::Pin;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::AsyncReadExt as _;

use super::ITSELF;
use super::message::{
    BrokerAnswer, BrokerDuties, BrokerRequest, DerivedFile, MAX_DUTIES, ReceivedMessage,
    receive_message,
};
use crate::program::{KnownProgram, Program};
use crate::running::PROJECT_DIR;

/// The most requests at a time, each in a thread. Each of the concurrent agents runs at most one hook at a
/// time.
const MAX_REQUESTS: usize = 256;

/// The most programs of all agents at a time, because each uses several processes of the machine.
const MAX_PROGRAMS: usize = 64;

/// The most bytes of a component for [`BrokerRequest::Make`]. The vault has a lower limit.
const MAX_COMPONENT: u64 = 256 << 20;

/// How long writing an answer may take. The socket buffers many answers, so a longer wait means that the
/// peer is stuck.
const ANSWER_WAIT: Duration = Duration::from_millis(100);

/// How long a keeper may take to end the descendants of its command.
#[cfg(target_os = "linux")]
const END_WAIT: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };

/// The future that makes a file from a component, for [`BrokerVault::make_derived`].
pub type Making<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + 'a>>;

/// What the broker does with components, settings and programs; implemented by the program that runs the
/// broker. Its store of files made from components is in a directory the process in the OS sandbox neither
/// reads nor writes.
pub trait BrokerVault: Sync {
    /// Opens the store. Called once, before all other methods. `None`: files are not stored on disk.
    fn open_cache(&self, directory: Option<&Path>);

    /// The stored bytes for the component with the given digest; `None`: there is none that this host wrote.
    /// `digest` is text of the requesting process, not checked.
    fn find_derived(&self, made: DerivedFile, digest: &str) -> Option<Vec<u8>>;

    /// Makes a file from a component, and stores it under the component's digest. The work is in a child
    /// process, which ends when the future is dropped.
    fn make_derived<'a>(&'a self, made: DerivedFile, component: Vec<u8>) -> Making<'a>;

    /// The content of the settings file at the path, which was named before the OS sandbox was in force;
    /// `None`: there is no such file. The error says why the file is ignored. Default: it is ignored.
    fn read_settings(&self, _path: &Path) -> Result<Option<Vec<u8>>, String> {
        Err("no settings are read here".to_owned())
    }

    /// The present digest of a program, or why it has none. Default: none, so that no program is started.
    fn identify_program(&self, _program: &Program) -> Result<String, String> {
        Err("no programs are started here".to_owned())
    }
}

/// The arguments with which this program becomes a keeper. After them come a hook's command, for
/// [`super::keep_hook`], or a program's description, for [`super::keep_program`].
#[derive(Debug, Clone, Copy)]
pub struct KeeperArguments<'a> {
    /// The arguments for a hook's keeper.
    pub hook: &'a [OsString],
    /// The arguments for a program's keeper.
    pub program: &'a [OsString],
}

/// The whole life of a broker: reads the list of what it may start from stdin, then serves requests on the
/// socket that is its stdout, until the process that started it is gone. A program calls this first in
/// `main`.
pub fn serve_broker(keepers: KeeperArguments<'_>, vault: &dyn BrokerVault) -> ExitCode {
    crate::process::inherit_nothing();
    crate::process::conceal_process();
    #[cfg(target_os = "linux")]
    {
        // If a keeper is killed, the broker becomes the parent of the keeper's descendants.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    match read_duties() {
        Ok(duties) => {
            vault.open_cache(duties.cache.as_deref());
            take_requests(&duties, keepers, vault)
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn read_duties() -> io::Result<BrokerDuties> {
    let mut text = Vec::new();
    io::stdin().lock().take(MAX_DUTIES).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Serves requests until no more can come, then ends all running children and the current process. By then
/// nobody waits for an answer. Threads are not joined, because a request's descriptors may block one for
/// ever.
fn take_requests(
    duties: &BrokerDuties,
    keepers: KeeperArguments<'_>,
    vault: &dyn BrokerVault,
) -> ! {
    let socket = io::stdout();
    let running = AtomicUsize::new(0);
    let programs = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let served = loop {
            let received = match receive_message(socket.as_fd()) {
                Ok(Some(received)) => received,
                ended => break ended.map(drop),
            };
            let Some(mut order) = BrokerOrder::from_received(received) else { continue };
            let Some(place) = RunningSlot::acquire_slot(&running, MAX_REQUESTS) else {
                send_answer(
                    &mut order.control,
                    &BrokerAnswer::Refused("too much runs already".to_owned()),
                );
                continue;
            };
            let outside = BrokerServer { duties, keepers, vault, programs: &programs };
            let work = move || {
                let _place = place;
                let BrokerOrder { request, files, mut control } = order;
                let answer = outside.execute_request(&request, files, &mut control);
                let answer =
                    answer.unwrap_or_else(|error| BrokerAnswer::Refused(error.to_string()));
                send_answer(&mut control, &answer);
            };
            // If no thread can be made, the socket is closed without an answer.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        };
        // No hook can start after this line.
        *STARTING.lock().unwrap_or_else(PoisonError::into_inner) = false;
        #[cfg(target_os = "linux")]
        super::descendants::kill_all();
        std::process::exit(i32::from(served.is_err()))
    })
}

/// Whether commands may still be started. Locked during each start, so that ending all of them misses none.
static STARTING: Mutex<bool> = Mutex::new(true);

/// Starts a command, unless the broker is ending.
fn start_command(command: &mut Command) -> io::Result<Child> {
    let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    match *starting {
        true => command.spawn(),
        false => Err(io::Error::other("the broker ends")),
    }
}

/// What the work on a request uses.
#[derive(Clone, Copy)]
struct BrokerServer<'a> {
    duties: &'a BrokerDuties,
    keepers: KeeperArguments<'a>,
    vault: &'a dyn BrokerVault,
    /// The number of running programs.
    programs: &'a AtomicUsize,
}

impl BrokerServer<'_> {
    /// Does what a request asks for, and returns the last answer.
    fn execute_request(
        &self,
        request: &BrokerRequest,
        files: Vec<OwnedFd>,
        control: &mut UnixStream,
    ) -> io::Result<BrokerAnswer> {
        let too_few = || io::Error::other("a descriptor is missing");
        let vault = self.vault;
        match request {
            BrokerRequest::Hook(number) => {
                let hook = hook_command(*number, self.duties, self.keepers.hook);
                run_keeper(hook.map_err(io::Error::other)?, files, control)
            }
            BrokerRequest::Program(number, digest) => {
                self.start_program(*number, digest, files, control)
            }
            BrokerRequest::Identify(number) => {
                let into = regular_file(files.into_iter().next().ok_or_else(too_few)?)?;
                let known = find_program(*number, self.duties).map_err(io::Error::other)?;
                let digest = vault.identify_program(&known.program).map_err(io::Error::other)?;
                write_file(into, digest.as_bytes())
            }
            BrokerRequest::Find(made, digest) => {
                let into = regular_file(files.into_iter().next().ok_or_else(too_few)?)?;
                match vault.find_derived(*made, digest) {
                    Some(bytes) => write_file(into, &bytes),
                    None => Ok(BrokerAnswer::Given(false)),
                }
            }
            BrokerRequest::Settings => {
                let into = regular_file(files.into_iter().next().ok_or_else(too_few)?)?;
                let path = self.duties.settings.as_deref();
                let path = path.ok_or_else(|| io::Error::other("there is no file of settings"))?;
                match vault.read_settings(path).map_err(io::Error::other)? {
                    Some(bytes) => write_file(into, &bytes),
                    None => Ok(BrokerAnswer::Given(false)),
                }
            }
            BrokerRequest::Make(made) => {
                let mut files = files.into_iter();
                let mut next = || files.next().ok_or_else(too_few);
                let (from, into) = (regular_file(next()?)?, regular_file(next()?)?);
                let mut component = Vec::new();
                from.take(MAX_COMPONENT).read_to_end(&mut component)?;
                write_file(into, &made_for(control, vault.make_derived(*made, component))?)
            }
        }
    }

    /// Starts a program if its present digest is `digest`. INV-320: a program runs as a person has seen it,
    /// or not at all.
    fn start_program(
        &self,
        number: usize,
        digest: &str,
        files: Vec<OwnedFd>,
        control: &mut UnixStream,
    ) -> io::Result<BrokerAnswer> {
        let known = find_program(number, self.duties).map_err(io::Error::other)?;
        let _place = RunningSlot::acquire_slot(self.programs, MAX_PROGRAMS)
            .ok_or_else(|| io::Error::other("too many programs run already"))?;
        let command = program_command(known, self.keepers.program)?;
        if self.vault.identify_program(&known.program).map_err(io::Error::other)? != digest {
            return Ok(BrokerAnswer::Changed);
        }
        run_keeper(command, files, control)
    }
}

/// Starts a keeper with the request's streams, and waits until it has ended.
fn run_keeper(
    mut command: Command,
    files: Vec<OwnedFd>,
    control: &mut UnixStream,
) -> io::Result<BrokerAnswer> {
    let mut files = files.into_iter();
    let mut next = || files.next().ok_or_else(|| io::Error::other("a descriptor is missing"));
    // A process group of its own, so that Ctrl-C in a terminal does not reach the keeper.
    command.stdin(next()?).stdout(next()?).stderr(next()?).process_group(0);
    let child = start_command(&mut command);
    // Dropped, because the command holds the streams open, and the peer waits until they are closed.
    drop(command);
    let child = child?;
    send_answer(control, &BrokerAnswer::Started);
    Ok(BrokerAnswer::Ended(wait_keeper(child, control)?.into_raw()))
}

/// The command that starts a hook's keeper. The hook's command line comes from the broker's list, never from
/// the request.
fn hook_command(
    number: usize,
    duties: &BrokerDuties,
    keeper: &[OsString],
) -> Result<Command, &'static str> {
    let hook = duties.hooks.get(number).ok_or("there is no such hook")?;
    let workspace = std::env::var_os(PROJECT_DIR).ok_or("there is no workspace")?;
    let mut command = Command::new(ITSELF);
    // The hook inherits the four environment variables of the broker.
    command.arg0("belljar-hook").args(keeper).arg(hook).current_dir(workspace);
    Ok(command)
}

fn find_program(number: usize, duties: &BrokerDuties) -> Result<&KnownProgram, &'static str> {
    duties.programs.get(number).ok_or("there is no such program")
}

/// The command that starts a program's keeper. It gets the program's environment variables and none of the
/// broker's.
fn program_command(known: &KnownProgram, keeper: &[OsString]) -> io::Result<Command> {
    let environment = known.environment.as_ref().map_err(|why| io::Error::other(why.clone()))?;
    let text = serde_json::to_string(&known.program)?;
    let mut command = Command::new(ITSELF);
    command.arg0("belljar-program").args(keeper).arg(text).current_dir("/");
    command.env_clear().envs(&environment.0);
    Ok(command)
}

/// Checks that a descriptor is a regular file, because reading or writing something else might wait for
/// another process.
fn regular_file(file: OwnedFd) -> io::Result<File> {
    let file = File::from(file);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("that is no file")),
    }
}

fn write_file(mut into: File, bytes: &[u8]) -> io::Result<BrokerAnswer> {
    into.write_all(bytes)?;
    Ok(BrokerAnswer::Given(true))
}

/// Awaits the making of a file. Gives up if the requester closes its end of the socket.
fn made_for(control: &UnixStream, making: Making<'_>) -> io::Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let control = control.try_clone()?;
    runtime.block_on(async {
        control.set_nonblocking(true)?;
        let mut control = tokio::net::UnixStream::from_std(control)?;
        let made = tokio::select! {
            made = making => made.map_err(io::Error::other),
            _ = control.read_u8() => Err(io::Error::other("it was given up")),
        };
        control.into_std()?.set_nonblocking(false)?;
        made
    })
}

/// A request with its descriptors.
struct BrokerOrder {
    request: BrokerRequest,
    files: Vec<OwnedFd>,
    /// The socket for the answers. The peer closes its end when nobody waits for them any more.
    control: UnixStream,
}

impl BrokerOrder {
    /// Parses a message. `None`: not a request with the right number of descriptors, or the last one is not
    /// a socket for answers; all descriptors are closed then.
    fn from_received(received: ReceivedMessage) -> Option<Self> {
        let ReceivedMessage { text, mut files, cut } = received;
        let request: BrokerRequest = serde_json::from_slice(&text).ok()?;
        if cut || files.len() != request.descriptor_count() {
            return None;
        }
        let control = answer_socket(files.pop()?)?;
        Some(Self { request, files, control })
    }
}

/// Checks that a descriptor can be the socket for the answers: a connected local stream. A write to it never
/// blocks for long, and its closed end shows that nobody waits.
fn answer_socket(file: OwnedFd) -> Option<UnixStream> {
    use rustix::net::{AddressFamily, SocketType, sockopt};
    #[cfg(target_os = "linux")]
    if sockopt::socket_domain(&file).ok()? != AddressFamily::UNIX {
        return None;
    }
    if sockopt::socket_type(&file).ok()? != SocketType::STREAM {
        return None;
    }
    let socket = UnixStream::from(file);
    // A socket without a peer is not connected, or listens.
    socket.peer_addr().ok()?;
    socket.set_write_timeout(Some(ANSWER_WAIT)).ok()?;
    Some(socket)
}

/// One of a limited number of running requests or programs; dropping it makes room for another.
struct RunningSlot<'a>(&'a AtomicUsize);

impl<'a> RunningSlot<'a> {
    fn acquire_slot(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let place = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }
}

impl Drop for RunningSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until a keeper has ended. If nobody waits for the answers any more, tells the keeper to end its
/// command.
fn wait_keeper(mut child: Child, control: &UnixStream) -> io::Result<ExitStatus> {
    let id = Pid::from_child(&child);
    if !matches!(ends_by_itself(id, control), Ok(true)) {
        let _ = kill_process(id, Signal::TERM);
        if !matches!(ends_soon(id), Ok(true)) {
            // Both calls fail only if there is no process to kill.
            let _ = kill_process_group(id, Signal::KILL);
            let _ = child.kill();
        }
    }
    child.wait()
}

/// Waits until the child has ended (true) or the requester has closed its end of the socket (false).
#[cfg(target_os = "linux")]
fn ends_by_itself(id: Pid, control: &UnixStream) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    let ended = pidfd_open(id, PidfdFlags::empty())?;
    loop {
        let mut both = [PollFd::new(&ended, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
        match poll(&mut both, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        let [ended, control] = both.map(|one| !one.revents().is_empty());
        if ended || control {
            return Ok(ended);
        }
    }
}

/// Waits up to [`END_WAIT`], and returns whether the child has ended.
#[cfg(target_os = "linux")]
fn ends_soon(id: Pid) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    let ended = pidfd_open(id, PidfdFlags::empty())?;
    let mut ended = [PollFd::new(&ended, PollFlags::IN)];
    Ok(poll(&mut ended, Some(&END_WAIT))? > 0)
}

#[cfg(not(target_os = "linux"))]
fn ends_by_itself(_id: Pid, _control: &UnixStream) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn ends_soon(_id: Pid) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Sends an answer. If writing fails, nobody waits for the answer.
fn send_answer(control: &mut UnixStream, answer: &BrokerAnswer) {
    if let Ok(mut line) = serde_json::to_vec(answer) {
        line.push(b'\n');
        let _ = control.write_all(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duties() -> BrokerDuties {
        let hooks = vec!["exit 0".to_owned()];
        BrokerDuties { hooks, programs: Vec::new(), cache: None, settings: None }
    }

    fn order(text: &str, count: usize, cut: bool) -> Option<BrokerOrder> {
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        let mut files: Vec<_> = (1..count).map(|_| null()).collect();
        if count > 0 {
            files.push(UnixStream::pair().unwrap().0.into());
        }
        BrokerOrder::from_received(ReceivedMessage { text: text.as_bytes().to_vec(), files, cut })
    }

    #[test]
    fn a_request_is_one_of_six_and_names_no_program() {
        for text in [
            "",
            "{}",
            "null",
            "0",
            "\"hook\"",
            "\"shell\"",
            "\"compiler\"",
            "{\"hook\":\"exit 0\"}",
            "{\"hook\":-1}",
            "{\"hook\":18446744073709551616}",
            "{\"hook\":0,\"find\":[\"code\",\"\"]}",
            "{\"hook\":{\"number\":0,\"program\":\"/bin/sh\"}}",
            "{\"make\":\"key\"}",
            "{\"make\":[\"code\",\"/bin/sh\"]}",
            "{\"put\":[\"code\",\"00\"]}",
            "{\"find\":[\"code\",\"00\",\"/etc/passwd\"]}",
            "{\"settings\":\"/etc/passwd\"}",
            "[\"settings\",\"/etc/passwd\"]",
            "{\"program\":0}",
            "{\"program\":[0,\"00\",\"/bin/sh\"]}",
            "{\"program\":[\"/bin/sh\",\"00\"]}",
            "{\"identify\":\"/etc/passwd\"}",
            "{\"make\":\"code\"} {\"make\":\"code\"}",
            "\u{0}{\"make\":\"code\"}",
        ] {
            for count in 0..=4 {
                assert!(order(text, count, false).is_none(), "{text}");
            }
        }
        assert!(hook_command(1, &duties(), &[]).is_err());
        assert!(find_program(0, &duties()).is_err());
    }

    #[test]
    fn a_request_without_its_descriptors_is_dropped() {
        for (text, needs) in [
            ("{\"hook\":0}", 4),
            ("{\"find\":[\"tools\",\"00\"]}", 2),
            ("{\"make\":\"code\"}", 3),
            ("\"settings\"", 2),
            ("{\"program\":[0,\"00\"]}", 4),
            ("{\"identify\":0}", 2),
        ] {
            for count in 0..=6 {
                assert_eq!(order(text, count, false).is_some(), count == needs, "{text} {count}");
            }
            assert!(order(text, needs, true).is_none());
        }
    }

    #[test]
    fn a_descriptor_that_could_keep_the_broker_waiting_is_refused() {
        let (pipe, _other) = io::pipe().unwrap();
        assert!(regular_file(pipe.into()).is_err());
        assert!(regular_file(File::open("/dev/zero").unwrap().into()).is_err());
        assert!(regular_file(tempfile::tempfile().unwrap().into()).is_ok());
    }

    #[test]
    fn an_answer_goes_to_a_connected_stream_of_this_machine_and_to_nothing_else() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert!(answer_socket(ours.into()).is_some());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let remote = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (datagrams, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let (pipe, _writer) = io::pipe().unwrap();
        let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
        let polled = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::empty());
        let alone = rustix::net::socket(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            None,
        );
        let others: [OwnedFd; 7] = [
            remote.into(),
            datagrams.into(),
            pipe.into(),
            event,
            polled.unwrap(),
            alone.unwrap(),
            File::open("/dev/null").unwrap().into(),
        ];
        for other in others {
            assert!(answer_socket(other).is_none());
        }
    }

    #[test]
    fn an_answer_that_nobody_takes_is_given_up() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut ours = answer_socket(ours.into()).unwrap();
        // More than any socket buffers without a reader.
        for _ in 0..64 {
            send_answer(&mut ours, &BrokerAnswer::Refused("x".repeat(1 << 20)));
        }
    }

    #[test]
    fn children_are_counted_and_given_back() {
        let count = AtomicUsize::new(0);
        let places: Vec<_> = (0..8).filter_map(|_| RunningSlot::acquire_slot(&count, 8)).collect();
        assert_eq!(places.len(), 8);
        assert!(RunningSlot::acquire_slot(&count, 8).is_none());
        drop(places);
        assert!(RunningSlot::acquire_slot(&count, 8).is_some());
    }
}
