//! Work outside the wall, done by a separate process.
//!
//! A process behind the wall starts no program and neither reads nor writes the cache. Before the
//! wall goes up, the process makes a broker: the same program, outside. The broker's first message lists the
//! hook commands, the programs, the cache and the settings file. Later requests carry a number or a digest,
//! and some descriptors. Nothing in a request names a program, an argument, a directory or a variable.
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
//! The broker ends with the process that made it, and ends its children.

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

pub use self::keeper::{keep, keep_program};
pub use self::message::Made;
use self::message::{Duties, Request};
pub use self::serve::{BrokerVault, Keepers, Making, serve};
use crate::program::{Known, Program};
use crate::running::{BrokerChild, KEPT, PROJECT_DIR, Running, START_WAIT};

/// How long the broker may take to find a stored file, because it reads and digests some megabytes.
const FIND_WAIT: Duration = Duration::from_secs(30);

/// How long the broker may take to identify a program, and to start it, because it digests the program's
/// files.
const IDENTIFY_WAIT: Duration = Duration::from_secs(60);

/// Most bytes of what the broker gives: more than any entry of the cache has.
const MAX_GIVEN: u64 = 256 << 20;

/// This program, whatever its path names by now.
pub(crate) const ITSELF: &str = "/proc/self/exe";

/// The programs that a broker may start.
#[derive(Debug, Clone)]
pub struct BrokerSetup {
    /// The hidden arguments with which `main` calls [`serve`] first thing.
    pub broker: Vec<OsString>,
    /// The operator's hook commands. Nothing else is ever run by a shell.
    pub hooks: Vec<String>,
    /// Programs that run confined, each behind a separate wall.
    pub programs: Vec<Known>,
    /// Where hook commands run.
    pub workspace: PathBuf,
    /// Where what is made of components is kept; `None` = nothing is. Nothing behind the wall may
    /// write there.
    pub cache: Option<PathBuf>,
    /// The file that [`Broker::settings`] reads, outside the wall because a replaced file is a new one, which
    /// the wall does not let through. `None` = no settings file.
    pub settings: Option<PathBuf>,
}

/// Requests work outside the wall. Clones share the broker, which ends with the last clone or with this
/// process.
#[derive(Debug, Clone)]
pub struct Broker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: OwnedFd,
    hooks: Vec<String>,
    programs: Vec<Program>,
    workspace: PathBuf,
}

impl Broker {
    /// Starts the broker; does not wait until the broker is ready. Call it before the wall goes up and before
    /// any thread is made.
    ///
    /// Of this process's environment the broker, and so a hook command, sees `PATH`, `HOME` and
    /// `LANG`.
    ///
    /// # Errors
    ///
    /// When there are no more processes or descriptors, and everywhere but on Linux.
    pub fn start(setup: BrokerSetup) -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let BrokerSetup { broker, hooks, programs, workspace, cache, settings } = setup;
        let (own, theirs) = message::socket()?;
        let duties = Duties { hooks, programs, cache, settings };
        let kept = KEPT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        // Not waited for: the broker ends when its socket closes, after this process has ended.
        let _child = Command::new(ITSELF)
            .arg0("belljar-broker")
            .args(broker)
            .env_clear()
            .envs(kept)
            .env(PROJECT_DIR, &workspace)
            .current_dir("/")
            // The list of startable programs arrives by stdin, requests by stdout: both exist before the
            // broker does.
            .stdin(in_memory(&serde_json::to_vec(&duties)?)?)
            .stdout(theirs)
            .stderr(Stdio::null())
            // Ctrl-C on the terminal is for this process to answer.
            .process_group(0)
            .spawn()?;
        let programs = duties.programs.into_iter().map(|known| known.program).collect();
        Ok(Self(Arc::new(Inner { socket: own, hooks: duties.hooks, programs, workspace })))
    }

    /// The bytes that the broker stores for the component with this digest, in hexadecimal digits; `None` =
    /// no genuine file.
    ///
    /// # Errors
    ///
    /// When the broker is gone, or does not answer within half a minute.
    pub async fn find(&self, made: Made, digest: &str) -> io::Result<Option<Vec<u8>>> {
        let request = Request::Find(made, digest.to_owned());
        let given = tokio::time::timeout(FIND_WAIT, self.given(&request, None)).await;
        given.map_err(|_| io::Error::other("the broker does not answer"))?
    }

    /// Has this made of a component, and kept under the component's digest. Dropping the future
    /// ends the work.
    ///
    /// # Errors
    ///
    /// When it cannot be made: the text says why. Also when the broker is gone.
    pub async fn make(&self, made: Made, component: &[u8]) -> io::Result<Vec<u8>> {
        let component = in_memory(component)?;
        let given = self.given(&Request::Make(made), Some(component)).await?;
        given.ok_or_else(|| io::Error::other("the broker answers out of turn"))
    }

    /// The present content of the file of settings; `None` = there is no such file.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is not to be obeyed: the text says why. Also when the broker was
    /// told of none, is gone, or does not answer within half a minute.
    pub async fn settings(&self) -> io::Result<Option<Vec<u8>>> {
        let given = self.given(&Request::Settings, None);
        let given = tokio::time::timeout(FIND_WAIT, given).await;
        given.map_err(|_| io::Error::other("the broker does not answer"))?
    }

    async fn given(&self, request: &Request, from: Option<OwnedFd>) -> io::Result<Option<Vec<u8>>> {
        let into = in_memory(&[])?;
        let mut asked = BrokerChild::by(|control| {
            let files = from.iter().chain([&into]).map(OwnedFd::as_fd);
            self.send(request, &files.chain([control]).collect::<Vec<_>>())
        })?;
        drop(from);
        if !asked.given().await? {
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
    /// When the command is not in the broker's list, or the workspace differs, when the broker is gone, or
    /// cannot start the command.
    pub async fn hook(&self, command: &str, workspace: &Path) -> io::Result<Running> {
        let Inner { hooks, workspace: own, .. } = &*self.0;
        let number = hooks.iter().position(|hook| hook == command);
        match number.filter(|_| workspace == own) {
            Some(number) => {
                let request = Request::Hook(number);
                Running::asked(START_WAIT, |files| self.send(&request, &files)).await
            }
            None => Err(io::Error::other("the broker was not told of this command")),
        }
    }

    /// The present digest of a program: of the command line, the program's file and the files in the command
    /// line.
    ///
    /// # Errors
    ///
    /// When the broker was not told of it or is gone, and when a file cannot be read.
    pub async fn identify(&self, program: &Program) -> io::Result<String> {
        let request = Request::Identify(self.place(program)?);
        let given = tokio::time::timeout(IDENTIFY_WAIT, self.given(&request, None)).await;
        let given = given.map_err(|_| io::Error::other("the broker does not answer"))??;
        let text = given.and_then(|bytes| String::from_utf8(bytes).ok());
        text.ok_or_else(|| io::Error::other("the broker answers out of turn"))
    }

    /// Starts a program behind a separate wall. Dropping `Running` ends the program and its descendants.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::PermissionDenied`] = the program's digest differs, so nothing was started. Also when
    /// the program is not in the broker's list, or the broker is gone or cannot start the program.
    pub async fn program(&self, program: &Program, digest: &str) -> io::Result<Running> {
        let request = Request::Program(self.place(program)?, digest.to_owned());
        Running::asked(IDENTIFY_WAIT, |files| self.send(&request, &files)).await
    }

    fn place(&self, program: &Program) -> io::Result<usize> {
        let place = self.0.programs.iter().position(|known| known == program);
        place.ok_or_else(|| io::Error::other("the broker was not told of this program"))
    }

    fn send(&self, request: &Request, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let text = serde_json::to_vec(request)?;
        let mut space = [std::mem::MaybeUninit::uninit(); message::SPACE];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
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

/// A nameless file with these bytes.
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
