//! Work outside the wall, done by a separate process.
//!
//! A process behind the wall cannot start a program, and neither reads nor writes the cache. Before the wall
//! is raised, the process starts a broker: the same program, without a wall. The broker's first message lists
//! the hook commands, the programs, the cache and the settings file. Later requests consist of a number or a
//! digest, and some descriptors. No request contains a program, an argument, a directory or a variable.
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

/// The longest wait for a stored file, because the broker reads and digests some megabytes.
const FIND_WAIT: Duration = Duration::from_secs(30);

/// The longest wait for identifying or starting a program, because the broker digests the program's files.
const IDENTIFY_WAIT: Duration = Duration::from_secs(60);

/// Most bytes of a file that the broker returns: more than any entry of the cache has.
const MAX_GIVEN: u64 = 256 << 20;

/// The executable of this process, even if its path was replaced meanwhile.
pub(crate) const ITSELF: &str = "/proc/self/exe";

/// The programs and files that a broker may use.
#[derive(Debug, Clone)]
pub struct BrokerSetup {
    /// The hidden arguments with which `main` calls [`serve_broker`] first.
    pub broker: Vec<OsString>,
    /// The operator's hook commands, the only commands that a shell runs.
    pub hooks: Vec<String>,
    /// Programs that run confined, each behind a separate wall.
    pub programs: Vec<KnownProgram>,
    /// The working directory of hook commands.
    pub workspace: PathBuf,
    /// The cache directory of files compiled from components; `None` = no cache. No process behind the wall
    /// may write there.
    pub cache: Option<PathBuf>,
    /// The file that [`Broker::read_settings`] reads. The broker reads it, because a replaced file is a new file,
    /// which the wall does not let through. `None` = no settings file.
    pub settings: Option<PathBuf>,
}

/// A handle for requesting work outside the wall. Clones share the broker, which ends with the last clone or
/// with this process.
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
    /// Starts the broker, without waiting until it is ready. Call it before the wall is raised and before any
    /// thread is made.
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
        // The child is not waited for: the broker ends when its socket closes, which is after this
        // process has ended.
        let _child = Command::new(ITSELF)
            .arg0("belljar-broker")
            .args(broker)
            .env_clear()
            .envs(kept)
            .env(PROJECT_DIR, &workspace)
            .current_dir("/")
            // The list of programs arrives by stdin, requests by stdout: both exist before the
            // broker starts.
            .stdin(in_memory(&serde_json::to_vec(&duties)?)?)
            .stdout(theirs)
            .stderr(Stdio::null())
            // Ctrl-C on the terminal must reach only this process.
            .process_group(0)
            .spawn()?;
        let programs = duties.programs.into_iter().map(|known| known.program).collect();
        Ok(Self(Arc::new(BrokerInner { socket: own, hooks: duties.hooks, programs, workspace })))
    }

    /// The bytes that the broker stores for the component with this digest, in hexadecimal digits; `None` =
    /// no genuine file.
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

    /// Makes a file from a component, and stores the file under the component's digest. Dropping the future
    /// ends the work.
    ///
    /// # Errors
    ///
    /// The file cannot be made, with the reason as text, or the broker is gone.
    pub async fn make_derived(&self, made: DerivedFile, component: &[u8]) -> io::Result<Vec<u8>> {
        let component = in_memory(component)?;
        let given = self.request_file(&BrokerRequest::Make(made), Some(component)).await?;
        given.ok_or_else(|| io::Error::other("the broker answers out of turn"))
    }

    /// The present content of the settings file; `None` = the file is missing.
    ///
    /// # Errors
    ///
    /// The file cannot be read or must be ignored, with the reason as text. Also if the broker has no
    /// settings file in its list, is gone, or does not answer within half a minute.
    pub async fn read_settings(&self) -> io::Result<Option<Vec<u8>>> {
        let given = self.request_file(&BrokerRequest::Settings, None);
        let given = tokio::time::timeout(FIND_WAIT, given).await;
        given.map_err(|_| io::Error::other("the broker does not answer"))?
    }

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
    /// The command is not in the broker's list, the workspace differs, the broker is gone, or the command
    /// cannot be started.
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

    /// The present digest of a program: of the command line, the program's file, and the files named in the
    /// command line.
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

    /// Starts a program behind a separate wall. Dropping `RunningChild` ends the program and its descendants.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::PermissionDenied`] = the program's digest differs, so it was not started. Other
    /// errors: the program is not in the broker's list, or the broker is gone or cannot start the program.
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
        // The broker receives messages at once, so a full socket means that the broker is stuck.
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

/// A file in memory, without a name, with these bytes.
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
