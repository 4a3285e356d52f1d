//! The broker: a separate process that works outside the OS sandbox for the process inside.
//!
//! A process in the OS sandbox cannot start a program, and neither reads nor writes the cache. So it starts
//! a broker before it enters the OS sandbox: the same program, not confined. The broker's first message
//! lists the hook commands, the programs, the cache and the settings file. Every later request is a number
//! or a digest, and some descriptors. No request contains a program, an argument, a directory or a variable.
//!
//! ```text
//! inside   hook N + streams ──>            outside   runs it below a keeper of its own
//!          <── started / refused
//!          closes its end   ──>                      ends it, with all that it has started
//!          <── ended, with the status
//!
//!          program N + digest + streams ──>          the same, confined, if its files have the digest
//!          identify N + file ──>                     writes the digest that they have
//!
//!          settings + file ──>                       writes what the file of settings says
//!          find DIGEST + file ──>                    writes a verified entry into the file
//!          make + component + file ──>               makes it in a child, keeps it under the
//!          <── given / refused                       digest of the bytes that came
//! ```
//!
//! The broker ends with the process that started it, and ends its children.

#[cfg(target_os = "linux")]
mod births;
#[cfg(target_os = "linux")]
mod descendants;
mod keeper;
pub(crate) mod message;
#[cfg(unix)]
mod scratch;
mod serve;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

pub use self::keeper::{keep_hook, keep_program};
pub use self::message::DerivedFile;
use self::message::{BrokerDuties, BrokerRequest};
pub use self::serve::{BrokerVault, KeeperArguments, Making, serve_broker};
use crate::program::{KnownProgram, Program};
use crate::running::{BrokerChild, KEPT, PROJECT_DIR, RunningChild, START_WAIT};

/// How long to wait for a stored file: the broker reads and digests some megabytes.
const FIND_WAIT: Duration = Duration::from_secs(30);

/// How long to wait until a program is identified or started: the broker digests the program's files.
const IDENTIFY_WAIT: Duration = Duration::from_secs(60);

/// The most bytes of a file that the broker returns: more than any entry of the cache has.
const MAX_GIVEN: u64 = 256 << 20;

/// The file of the current process's own program, even if another file is at its path by now.
pub(crate) const ITSELF: &str = "/proc/self/exe";

/// What a broker may start, read and write.
#[derive(Debug, Clone)]
pub struct BrokerSetup {
    /// The hidden arguments with which this program's `main` calls [`serve_broker`] first.
    pub broker: Vec<OsString>,
    /// The operator's hook commands. The shell runs these and no others.
    pub hooks: Vec<String>,
    /// The programs that may be started, each confined by an OS sandbox of its own.
    pub programs: Vec<KnownProgram>,
    /// The directory where hook commands run.
    pub workspace: PathBuf,
    /// The directory for files made from components; `None`: there is no cache. The OS sandbox must not let a
    /// process write there.
    pub cache: Option<PathBuf>,
    /// The file that [`Broker::read_settings`] reads; `None`: there is none. The broker reads it, because a
    /// file that replaces it later is a new one, which the OS sandbox does not allow.
    pub settings: Option<PathBuf>,
}

/// Sends requests for work outside the OS sandbox. Clones share one broker, which ends with the last clone
/// or with the current process.
#[derive(Debug, Clone)]
pub struct Broker(Arc<BrokerInner>);

#[derive(Debug)]
struct BrokerInner {
    socket: OwnedFd,
    hooks: Vec<String>,
    programs: Vec<Program>,
    workspace: PathBuf,
}

impl Broker {
    /// Starts the broker, without waiting until it is ready. Call this before the OS sandbox is in force and
    /// before any thread is made.
    ///
    /// Of this process's environment, the broker and its hook commands get `PATH`, `HOME` and `LANG`.
    ///
    /// # Errors
    ///
    /// The limit of processes or descriptors is reached, or the system is not Linux.
    pub fn start_broker(setup: BrokerSetup) -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let BrokerSetup { broker, hooks, programs, workspace, cache, settings } = setup;
        let (own, theirs) = message::socket_pair()?;
        let duties = BrokerDuties { hooks, programs, cache, settings };
        let kept = KEPT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        // Nobody waits for the child: the broker ends when its socket closes, which is after the end of the
        // current process.
        let _child = Command::new(ITSELF)
            .arg0("belljar-broker")
            .args(broker)
            .env_clear()
            .envs(kept)
            .env(PROJECT_DIR, &workspace)
            .current_dir("/")
            // The list of what the broker may start is its stdin, the socket for requests its stdout: both
            // exist before it starts.
            .stdin(in_memory(&serde_json::to_vec(&duties)?)?)
            .stdout(theirs)
            .stderr(Stdio::null())
            // Ctrl-C in the terminal must reach the current process only.
            .process_group(0)
            .spawn()?;
        let programs = duties.programs.into_iter().map(|known| known.program).collect();
        Ok(Self(Arc::new(BrokerInner { socket: own, hooks: duties.hooks, programs, workspace })))
    }

    /// The bytes that the broker stores for the component with the given digest (in hexadecimal). `None`: the
    /// broker has no bytes that this host wrote for the component.
    ///
    /// # Errors
    ///
    /// The broker is gone, or does not answer within half a minute.
    pub async fn find_derived(
        &self,
        made: DerivedFile,
        digest: &str,
    ) -> io::Result<Option<Vec<u8>>> {
        let request = BrokerRequest::Find(made, digest.to_owned());
        let given = tokio::time::timeout(FIND_WAIT, self.request_file(&request, None)).await;
        given.map_err(|_| io::Error::other("the broker does not answer"))?
    }

    /// Makes a file from a component, and stores it under the component's digest. Dropping the future ends
    /// the work.
    ///
    /// # Errors
    ///
    /// The file cannot be made, for the reason the text says; or the broker is gone.
    pub async fn make_derived(&self, made: DerivedFile, component: &[u8]) -> io::Result<Vec<u8>> {
        let component = in_memory(component)?;
        let given = self.request_file(&BrokerRequest::Make(made), Some(component)).await?;
        given.ok_or_else(|| io::Error::other("the broker answers out of turn"))
    }

    /// The present content of the settings file; `None`: there is no such file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or must be ignored, for the reason the text says; or the broker has no
    /// settings file in its list, is gone, or does not answer within half a minute.
    pub async fn read_settings(&self) -> io::Result<Option<Vec<u8>>> {
        let given = self.request_file(&BrokerRequest::Settings, None);
        let given = tokio::time::timeout(FIND_WAIT, given).await;
        given.map_err(|_| io::Error::other("the broker does not answer"))?
    }

    /// Sends a request, with an optional file as input, and an empty memory file for the result. Returns the
    /// result, or `None` if the broker refuses.
    async fn request_file(
        &self,
        request: &BrokerRequest,
        from: Option<OwnedFd>,
    ) -> io::Result<Option<Vec<u8>>> {
        let into = in_memory(&[])?;
        let mut asked = BrokerChild::request_with(|control| {
            let files = from.iter().chain([&into]).map(OwnedFd::as_fd);
            self.send_request(request, &files.chain([control]).collect::<Vec<_>>())
        })?;
        drop(from);
        if !asked.is_granted().await? {
            return Ok(None);
        }
        let mut file = File::from(into);
        let mut bytes = Vec::new();
        file.rewind()?;
        if let Ok(size) = usize::try_from(file.metadata()?.len().min(MAX_GIVEN)) {
            bytes.reserve_exact(size);
        }
        file.take(MAX_GIVEN).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Starts a hook command in the workspace.
    ///
    /// # Errors
    ///
    /// The command is not in the broker's list, the workspace is another than the broker's, the broker is
    /// gone, or the command cannot be started.
    pub async fn start_hook(&self, command: &str, workspace: &Path) -> io::Result<RunningChild> {
        let BrokerInner { hooks, workspace: own, .. } = &*self.0;
        let number = hooks.iter().position(|hook| hook == command);
        match number.filter(|_| workspace == own) {
            Some(number) => {
                let request = BrokerRequest::Hook(number);
                RunningChild::start_by_broker(START_WAIT, |files| {
                    self.send_request(&request, &files)
                })
                .await
            }
            None => Err(io::Error::other("the broker was not told of this command")),
        }
    }

    /// The present digest of a program. It covers the command line, the program's file, and the files the
    /// command line names.
    ///
    /// # Errors
    ///
    /// The program is not in the broker's list, the broker is gone, or a file cannot be read.
    pub async fn identify_program(&self, program: &Program) -> io::Result<String> {
        let request = BrokerRequest::Identify(self.program_number(program)?);
        let given = tokio::time::timeout(IDENTIFY_WAIT, self.request_file(&request, None)).await;
        let given = given.map_err(|_| io::Error::other("the broker does not answer"))??;
        let text = given.and_then(|bytes| String::from_utf8(bytes).ok());
        text.ok_or_else(|| io::Error::other("the broker answers out of turn"))
    }

    /// Starts a program in an OS sandbox of its own. Dropping the returned value ends the program and its
    /// descendants.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::PermissionDenied`]: the program's digest is another, so it was not started. Other
    /// errors: the program is not in the broker's list, or the broker is gone or cannot start it.
    pub async fn start_program(&self, program: &Program, digest: &str) -> io::Result<RunningChild> {
        let request = BrokerRequest::Program(self.program_number(program)?, digest.to_owned());
        RunningChild::start_by_broker(IDENTIFY_WAIT, |files| self.send_request(&request, &files))
            .await
    }

    fn program_number(&self, program: &Program) -> io::Result<usize> {
        let place = self.0.programs.iter().position(|known| known == program);
        place.ok_or_else(|| io::Error::other("the broker was not told of this program"))
    }

    fn send_request(&self, request: &BrokerRequest, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let text = serde_json::to_vec(request)?;
        let mut space = [std::mem::MaybeUninit::uninit(); message::SPACE];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::Error::other("the descriptors do not fit"));
        }
        // The broker receives messages at once, so if the socket is full the broker is stuck.
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

/// Makes a nameless file in memory with these bytes.
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
