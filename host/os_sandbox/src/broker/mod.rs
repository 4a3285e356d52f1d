//! The broker: a process outside the wall that starts what has to run there.
//!
//! It is made before the wall goes up, by running this same program again with a hidden
//! argument, so no process is ever forked by hand. It is told once what it may start: the
//! compiler's child (this program with fixed arguments) and the operator's hook commands. After
//! that a request carries a number and four descriptors: three streams for the child and a
//! socket over which the broker says what became of it. Nothing in a request names a program,
//! an argument, a directory or a variable.
//!
//! ```text
//! inside   request + 4 descriptors ──>   outside   starts it, in a process group of its own
//!          <── started / refused
//!          closes its end          ──>             kills the group
//!          <── ended, with the status
//! ```
//!
//! The broker ends with the process that made it, and what it has started ends with it.

pub(crate) mod message;
mod serve;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use self::message::{Duties, FILES, Request};
pub use self::serve::serve;
use crate::running::{KEPT, PROJECT_DIR, Running};

/// This program, whatever its path means by now.
pub(crate) const ITSELF: &str = "/proc/self/exe";

/// What a broker may start.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The hidden arguments that make this program a broker, which calls [`serve`] first thing
    /// in `main`.
    pub broker: Vec<OsString>,
    /// The operator's hook commands. Nothing else is ever run by a shell.
    pub hooks: Vec<String>,
    /// Where hook commands run.
    pub workspace: PathBuf,
}

/// Asks for what has to run outside the wall. Cloning shares the broker; with the last clone, or
/// with this process, it ends.
#[derive(Debug, Clone)]
pub struct Broker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: OwnedFd,
    hooks: Vec<String>,
    workspace: PathBuf,
}

impl Broker {
    /// Starts the broker; it does not wait until it is ready. To be called before the wall goes
    /// up and before any thread is made.
    ///
    /// Of this process's environment the broker, and so a hook command, sees `PATH`, `HOME` and
    /// `LANG`.
    ///
    /// # Errors
    ///
    /// When there are no more processes or descriptors, and everywhere but on Linux.
    pub fn start(setup: Setup) -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let Setup { broker, hooks, workspace } = setup;
        let (own, theirs) = message::socket()?;
        let duties = Duties { hooks };
        let kept = KEPT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        // Not waited for: it ends when its socket does, and its parent has ended by then.
        let _child = Command::new(ITSELF)
            .arg0("belljar-broker")
            .args(broker)
            .env_clear()
            .envs(kept)
            .env(PROJECT_DIR, &workspace)
            .current_dir("/")
            // What it may start comes by stdin, requests by stdout: both are here before it is.
            .stdin(in_memory(&serde_json::to_vec(&duties)?)?)
            .stdout(theirs)
            .stderr(Stdio::null())
            // Ctrl-C on the terminal is for this process to answer.
            .process_group(0)
            .spawn()?;
        Ok(Self(Arc::new(Inner { socket: own, hooks: duties.hooks, workspace })))
    }

    /// Starts the compiler's child.
    ///
    /// # Errors
    ///
    /// When the broker is gone, or says that it cannot.
    pub async fn compiler(&self) -> io::Result<Running> {
        self.ask(Request::Compiler).await
    }

    /// Starts a hook command in the workspace.
    ///
    /// # Errors
    ///
    /// When the command is none of those that the broker was told of, or the workspace is
    /// another, and as for [`Broker::compiler`].
    pub async fn hook(&self, command: &str, workspace: &Path) -> io::Result<Running> {
        let Inner { hooks, workspace: own, .. } = &*self.0;
        let number = hooks.iter().position(|hook| hook == command);
        match number.filter(|_| workspace == own) {
            Some(number) => self.ask(Request::Hook(number)).await,
            None => Err(io::Error::other("the broker was not told of this command")),
        }
    }

    async fn ask(&self, request: Request) -> io::Result<Running> {
        Running::asked(|files| self.send(request, files)).await
    }

    fn send(&self, request: Request, files: [BorrowedFd<'_>; FILES]) -> io::Result<()> {
        let text = serde_json::to_vec(&request)?;
        let mut space = [std::mem::MaybeUninit::uninit(); message::SPACE];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(&files)) {
            return Err(io::Error::other("the descriptors do not fit"));
        }
        // The broker takes a message at once, so there is room, or something is wrong with it.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = rustix::net::sendmsg(
            self.0.socket.as_fd(),
            &[IoSlice::new(&text)],
            &mut ancillary,
            flags,
        );
        sent.map(drop).map_err(|error| {
            io::Error::new(io::Error::from(error).kind(), format!("the broker: {error}"))
        })
    }
}

/// A file of these bytes that has no name anywhere.
#[cfg(target_os = "linux")]
fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    use rustix::fs::{MemfdFlags, memfd_create};
    let mut file = File::from(memfd_create("belljar", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_bytes: &[u8]) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}
