//! The broker's own side.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process_group};

use super::ITSELF;
use super::message::{Answer, Duties, FILES, MAX_DUTIES, Received, Request, receive};
use crate::running::{PROJECT_DIR, hook_command};

/// Children at a time, each with a thread. Agents side by side run a hook each at most.
const MAX_CHILDREN: usize = 256;

/// The body of a broker: reads on stdin what it may start, then takes requests on stdout until
/// the process that made it is gone. `compiler` are the arguments that make this program a
/// compiling child. A program calls this first thing in `main`.
pub fn serve(compiler: &[OsString]) -> ExitCode {
    crate::process::inherit_nothing();
    match duties().and_then(|duties| take_requests(&duties, compiler)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn duties() -> io::Result<Duties> {
    let mut text = Vec::new();
    io::stdin().lock().take(MAX_DUTIES).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Ends when no more requests can come. By then nobody waits for what still runs, so all of it
/// is killed first.
fn take_requests(duties: &Duties, compiler: &[OsString]) -> io::Result<()> {
    let socket = io::stdout();
    let children = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        while let Some(received) = receive(socket.as_fd())? {
            let Some(order) = Order::of(received) else { continue };
            let Some(place) = Place::take(&children) else {
                order.refuse("too much runs already");
                continue;
            };
            match command(&order.text, duties, compiler) {
                Err(why) => order.refuse(why),
                Ok(command) => {
                    let work = move || {
                        let _place = place;
                        order.carry_out(command);
                    };
                    // Where there can be no thread, the socket is closed unanswered.
                    let _ = std::thread::Builder::new().spawn_scoped(scope, work);
                }
            }
        }
        Ok(())
    })
}

/// What a request stands for. Only here does the broker learn what to run.
fn command(text: &[u8], duties: &Duties, compiler: &[OsString]) -> Result<Command, &'static str> {
    match serde_json::from_slice(text).map_err(|_| "that is no request")? {
        Request::Compiler => {
            let mut command = Command::new(ITSELF);
            command.arg0("belljar-compiler").args(compiler).env_clear();
            Ok(command)
        }
        Request::Hook(number) => {
            let hook = duties.hooks.get(number).ok_or("there is no such hook")?;
            let workspace = std::env::var_os(PROJECT_DIR).ok_or("there is no workspace")?;
            Ok(hook_command(hook, &PathBuf::from(workspace)))
        }
    }
}

/// A request with all that belongs to it.
struct Order {
    text: Vec<u8>,
    streams: [OwnedFd; FILES - 1],
    /// Answers go here; when its other end is closed, nobody wants the child any more.
    control: UnixStream,
}

impl Order {
    /// `None` = there is nobody to answer: what was sent is closed again.
    fn of(received: Received) -> Option<Self> {
        let Received { text, files, cut } = received;
        let [stdin, stdout, stderr, control] = <[OwnedFd; FILES]>::try_from(files).ok()?;
        let control = UnixStream::from(control);
        (!cut).then_some(Self { text, streams: [stdin, stdout, stderr], control })
    }

    fn refuse(mut self, why: &str) {
        tell(&mut self.control, &Answer::Refused(why.to_owned()));
    }

    fn carry_out(self, mut command: Command) {
        let Self { streams: [stdin, stdout, stderr], mut control, .. } = self;
        // A group of its own, so that everything it starts ends with it.
        command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
        let spawned = command.spawn();
        // It holds the streams open, whose ends the other side waits for.
        drop(command);
        let answer = match spawned {
            Err(error) => Answer::Refused(error.to_string()),
            Ok(child) => {
                tell(&mut control, &Answer::Started);
                match wait(child, &control) {
                    Ok(status) => Answer::Ended(status.into_raw()),
                    Err(error) => Answer::Refused(error.to_string()),
                }
            }
        };
        tell(&mut control, &answer);
    }
}

/// One of [`MAX_CHILDREN`], given back when dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(count: &'a AtomicUsize) -> Option<Self> {
        let place = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < MAX_CHILDREN).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for the child's end. Once nobody wants it any more, its group is killed.
fn wait(mut child: Child, control: &UnixStream) -> io::Result<ExitStatus> {
    let id = Pid::from_child(&child);
    if !matches!(ends_by_itself(id, control), Ok(true)) {
        // Both fail only where there is nothing left to kill.
        let _ = kill_process_group(id, Signal::KILL);
        let _ = child.kill();
    }
    child.wait()
}

/// Whether the child has ended before it was given up.
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

#[cfg(not(target_os = "linux"))]
fn ends_by_itself(_id: Pid, _control: &UnixStream) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

/// An answer that does not arrive is one that nobody waits for.
fn tell(control: &mut UnixStream, answer: &Answer) {
    if let Ok(mut line) = serde_json::to_vec(answer) {
        line.push(b'\n');
        let _ = control.write_all(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duties() -> Duties {
        Duties { hooks: vec!["exit 0".to_owned()] }
    }

    #[test]
    fn a_request_is_one_of_two_and_names_no_program() {
        for text in [
            "",
            "{}",
            "null",
            "0",
            "\"hook\"",
            "\"shell\"",
            "{\"hook\":\"exit 0\"}",
            "{\"hook\":-1}",
            "{\"hook\":1}",
            "{\"hook\":18446744073709551616}",
            "{\"hook\":0,\"compiler\":null}",
            "{\"hook\":{\"number\":0,\"program\":\"/bin/sh\"}}",
            "{\"compiler\":[\"/bin/sh\"]}",
            "\"compiler\" \"compiler\"",
            "\u{0}\"compiler\"",
        ] {
            assert!(command(text.as_bytes(), &duties(), &[]).is_err(), "{text}");
        }
        assert!(command(&[0xff, 0xfe], &duties(), &[]).is_err());
    }

    #[test]
    fn the_compiler_is_this_program_with_the_arguments_of_the_start() {
        let compiler = ["compile".into()];
        let command = command(b"\"compiler\"", &duties(), &compiler).unwrap();
        assert_eq!(command.get_program(), ITSELF);
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["compile"]);
    }

    #[test]
    fn a_request_without_its_descriptors_is_dropped() {
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        for count in [0, 1, 3, 5] {
            let files = (0..count).map(|_| null()).collect();
            let received = Received { text: b"\"compiler\"".to_vec(), files, cut: false };
            assert!(Order::of(received).is_none(), "{count}");
        }
        let files = (0..FILES).map(|_| null()).collect();
        let cut = Received { text: b"\"compiler\"".to_vec(), files, cut: true };
        assert!(Order::of(cut).is_none());
    }

    #[test]
    fn children_are_counted_and_given_back() {
        let count = AtomicUsize::new(0);
        let places: Vec<_> = (0..MAX_CHILDREN).filter_map(|_| Place::take(&count)).collect();
        assert_eq!(places.len(), MAX_CHILDREN);
        assert!(Place::take(&count).is_none());
        drop(places);
        assert!(Place::take(&count).is_some());
    }
}
