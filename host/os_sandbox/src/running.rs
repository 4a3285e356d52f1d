//! A child process with its three standard streams, started by the current process or by the broker.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::broker::message::{BrokerAnswer, FILES, MAX_ANSWER};

/// The full path of the shell that runs hook commands.
pub(crate) const SHELL: &str = "/bin/sh";

/// The variables of the current process that a hook command gets. They contain no keys or other secrets.
pub(crate) const KEPT: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The variable with the path of the workspace, which is also the command's working directory.
pub(crate) const PROJECT_DIR: &str = "BELLJAR_PROJECT_DIR";

/// How long to wait until the broker has started a child. It usually takes milliseconds.
pub(crate) const START_WAIT: Duration = Duration::from_secs(10);

/// A running child in a process group of its own. Dropping this value kills the group, unless the child has
/// ended by itself.
#[derive(Debug)]
pub struct RunningChild {
    /// The child's stdin. Drop it to end the input.
    pub stdin: Option<Sender>,
    /// The child's stdout.
    pub stdout: Option<Receiver>,
    /// The child's stderr.
    pub stderr: Option<Receiver>,
    child: ChildHandle,
}

/// How the child is reached: as a child of the current process, or through the broker.
#[derive(Debug)]
enum ChildHandle {
    Here { child: tokio::process::Child, group: Option<Pid> },
    Broker(BrokerChild),
}

/// A process that the broker started, as its requester sees it.
#[derive(Debug)]
pub(crate) struct BrokerChild {
    control: UnixStream,
    /// The received bytes of an answer that is not complete yet.
    heard: Vec<u8>,
    ended: Option<ExitStatus>,
}

/// This process's ends of a child's three pipes.
struct HostStreams {
    stdin: Option<Sender>,
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
}

/// The child's ends of its three pipes.
struct ChildStreams {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl RunningChild {
    /// Starts a program as a child of the current process. Needs a tokio runtime with I/O, as do all methods
    /// of this type.
    ///
    /// # Errors
    ///
    /// The program cannot be started.
    pub fn start_here(mut command: Command) -> io::Result<Self> {
        let (streams, theirs) = open_streams()?;
        command.stdin(theirs.stdin).stdout(theirs.stdout).stderr(theirs.stderr).process_group(0);
        // Dropping the command closes the child's ends of the pipes in the current process; otherwise a
        // stream would never end.
        let child = {
            let mut command = tokio::process::Command::from(command);
            command.kill_on_drop(true).spawn()?
        };
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self::from_streams(streams, ChildHandle::Here { child, group }))
    }

    /// Starts a hook command as a child of the current process: in the shell and in the workspace, with few
    /// environment variables.
    ///
    /// # Errors
    ///
    /// The command cannot be started.
    pub fn start_hook(command: &str, workspace: &Path) -> io::Result<Self> {
        Self::start_here(hook_command(command, workspace))
    }

    /// Starts a child through the broker. `send` passes it the child's descriptors; the broker has to answer
    /// within `wait`.
    pub(crate) async fn start_by_broker(
        wait: Duration,
        send: impl FnOnce([BorrowedFd<'_>; FILES]) -> io::Result<()>,
    ) -> io::Result<Self> {
        let (streams, theirs) = open_streams()?;
        let mut asked = BrokerChild::request_with(|control| {
            send([theirs.stdin.as_fd(), theirs.stdout.as_fd(), theirs.stderr.as_fd(), control])
        })?;
        drop(theirs);
        let answer = tokio::time::timeout(wait, asked.next_answer()).await;
        match answer.map_err(|_| io::Error::other("the broker does not answer"))?? {
            BrokerAnswer::Started => Ok(Self::from_streams(streams, ChildHandle::Broker(asked))),
            BrokerAnswer::Refused(why) => Err(io::Error::other(why)),
            BrokerAnswer::Changed => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the program is another than the one that was asked for",
            )),
            BrokerAnswer::Ended(_) | BrokerAnswer::Given(_) => Err(out_of_turn()),
        }
    }

    fn from_streams(streams: HostStreams, child: ChildHandle) -> Self {
        let HostStreams { stdin, stdout, stderr } = streams;
        Self { stdin, stdout, stderr, child }
    }

    /// Waits until the child has ended. If the future is dropped, call this again; nothing is lost.
    ///
    /// # Errors
    ///
    /// The child's status is not known, for example because the broker is gone.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.child {
            ChildHandle::Here { child, group } => {
                let status = child.wait().await?;
                // From now on another process may get the same id.
                *group = None;
                Ok(status)
            }
            ChildHandle::Broker(asked) => asked.wait().await,
        }
    }

    /// Kills the child, with its descendants in the same process group. Does nothing if the child has ended
    /// by itself.
    pub fn kill(&mut self) {
        match &mut self.child {
            ChildHandle::Here { child, group } => {
                if let Some(id) = group.take() {
                    // Both calls fail only if the process is gone.
                    let _ = kill_process_group(id, Signal::KILL);
                    let _ = child.start_kill();
                }
            }
            ChildHandle::Broker(asked) => asked.give_up(),
        }
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        self.kill();
    }
}

impl BrokerChild {
    /// Makes a request to the broker: `send` sends it, with one end of a socket on which the broker will
    /// answer.
    pub(crate) fn request_with(
        send: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<Self> {
        let (own, control) = StdUnixStream::pair()?;
        send(control.as_fd())?;
        drop(control);
        own.set_nonblocking(true)?;
        let control = UnixStream::from_std(own)?;
        Ok(Self { control, heard: Vec::new(), ended: None })
    }

    /// Waits for the broker's answer to a request for a file; returns whether it wrote the file.
    pub(crate) async fn is_granted(&mut self) -> io::Result<bool> {
        match self.next_answer().await? {
            BrokerAnswer::Given(given) => Ok(given),
            BrokerAnswer::Refused(why) => Err(io::Error::other(why)),
            BrokerAnswer::Started | BrokerAnswer::Changed | BrokerAnswer::Ended(_) => {
                Err(out_of_turn())
            }
        }
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        match self.next_answer().await? {
            BrokerAnswer::Ended(raw) => Ok(*self.ended.insert(ExitStatus::from_raw(raw))),
            BrokerAnswer::Refused(why) => Err(io::Error::other(why)),
            BrokerAnswer::Started | BrokerAnswer::Changed | BrokerAnswer::Given(_) => {
                Err(out_of_turn())
            }
        }
    }

    /// Tells the broker to kill the child, because nobody waits for it.
    fn give_up(&self) {
        // The call fails only if the broker has closed its end of the socket.
        let _ = rustix::net::shutdown(self.control.as_fd(), rustix::net::Shutdown::Write);
    }

    /// Reads the broker's next answer. If the future is dropped, the bytes read so far are kept.
    async fn next_answer(&mut self) -> io::Result<BrokerAnswer> {
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                return Ok(serde_json::from_slice(&line)?);
            }
            if self.heard.len() > MAX_ANSWER {
                return Err(io::Error::other("the broker talks nonsense"));
            }
            if self.control.read_buf(&mut self.heard).await? == 0 {
                return Err(io::Error::other("the broker is gone"));
            }
        }
    }
}

fn out_of_turn() -> io::Error {
    io::Error::other("the broker answers out of turn")
}

/// The command line of a hook that the current process starts itself.
fn hook_command(command: &str, workspace: &Path) -> Command {
    let environment = KEPT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let mut shell = Command::new(SHELL);
    shell
        .arg("-c")
        .arg(command)
        .current_dir(workspace)
        .env_clear()
        .envs(environment)
        .env(PROJECT_DIR, workspace);
    shell
}

/// Makes three pipes; returns the ends for the current process and the ends for the child.
fn open_streams() -> io::Result<(HostStreams, ChildStreams)> {
    let (stdin, to_child) = io::pipe()?;
    let (from_child, stdout) = io::pipe()?;
    let (complaints, stderr) = io::pipe()?;
    let own = HostStreams {
        stdin: Some(Sender::from_owned_fd(to_child.into())?),
        stdout: Some(Receiver::from_owned_fd(from_child.into())?),
        stderr: Some(Receiver::from_owned_fd(complaints.into())?),
    };
    let theirs = ChildStreams { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() };
    Ok((own, theirs))
}
