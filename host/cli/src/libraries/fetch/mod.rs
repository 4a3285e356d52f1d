//! Fetches a source from another machine, as far as everybody may read it there.
//!
//! ```text
//! typed text ──> RemoteAddress ──> fetch_source ──┬─> git, behind a wall, through a gate   ──> FetchedSource
//!                                                 └─> a helper's own request, behind a wall
//! ```
//!
//! INV-615: this process opens no connection. A [`HelperProcess`], another process of this program behind
//! the OS sandbox, connects to the one host that the address names, at a public address; git is started
//! behind a wall that lets it write its own fresh directory and connect to the helper's port.
//!
//! Nothing that was fetched is run, and git never uses a setting, a hook or a password of this machine.

mod address;
mod client;
mod gate;
mod git;
mod helper;
mod news;
mod npm;
mod role;
mod scope;

use std::cell::RefCell;
use std::fs::File;

pub(crate) use self::address::{DownloadAddress, GitAddress, NpmAddress, RemoteAddress};
pub(in crate::libraries) use self::address::{is_loopback, strip_ending};
use self::git::GitGate;
pub(crate) use self::helper::HelperProcess;
use self::news::{HelperJob, HelperNews, unreachable_host};
pub(crate) use self::role::serve_helper;
use super::commit::GitCommit;
use super::gather::CollectScope;
use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;
use crate::term::out::TerminalOutput;

/// Bytes that are received for one source: several times the largest library without its history.
const MAX_RECEIVED: u64 = 256 << 20;

/// The means to fetch.
#[derive(Clone, Copy)]
pub(crate) struct SourceFetcher<'a> {
    /// Shows the progress.
    pub(crate) out: &'a TerminalOutput,
    /// Where npm's configuration of this person is.
    pub(crate) places: &'a HomePaths,
    /// Whether the helper and git are started behind the OS sandbox.
    pub(crate) walled: bool,
}

/// A source that has been fetched, not parsed yet. Nothing of it is left on disk under a name.
pub(crate) struct FetchedSource {
    pub(crate) content: FetchedContent,
    /// The commit, or the SHA-256 of the file, in hexadecimal digits.
    pub(crate) revision: String,
    /// The version of a package.
    pub(crate) version: Option<String>,
}

/// The content of a fetched source.
pub(crate) enum FetchedContent {
    /// The files of one commit.
    Commit(GitCommit),
    /// An archive, or a single agent if its address says so.
    File(File),
}

impl SourceFetcher<'_> {
    /// Fetches a source; of a folder of a repository only the files that `scope` reads.
    ///
    /// # Errors
    ///
    /// The host cannot be reached or refuses, the source does not exist, or it exceeds a bound.
    pub(crate) fn fetch_source(
        &self,
        address: &RemoteAddress,
        scope: CollectScope,
    ) -> Result<FetchedSource, Failure> {
        match address {
            RemoteAddress::Git(address) => {
                let (gate, port) = self.open_gate(&address.url)?;
                let gate = GitGate { gate: &gate, port, walled: self.walled };
                let commit = git::fetch_commit(gate, address, scope)?;
                let revision = commit.id.clone();
                Ok(FetchedSource {
                    content: FetchedContent::Commit(commit),
                    revision,
                    version: None,
                })
            }
            RemoteAddress::Download(address) => self.request_file(
                &address.url,
                HelperJob::Download {
                    url: address.url.clone(),
                    most: MAX_RECEIVED,
                    walled: self.walled,
                },
            ),
            RemoteAddress::Npm(address) => {
                let registry = npm::find_registry(address, self.places)?;
                let job = HelperJob::Package {
                    registry: registry.clone(),
                    package: address.package.clone(),
                    version: address.version.clone(),
                    most: MAX_RECEIVED,
                    walled: self.walled,
                };
                self.request_file(&registry, job)
            }
        }
    }

    /// Lets a helper request one file.
    fn request_file(&self, url: &str, job: HelperJob) -> Result<FetchedSource, Failure> {
        let mut helper = HelperProcess::start(job, url, self.out)?;
        let (file, digest, version) = helper.await_file()?;
        Ok(FetchedSource { content: FetchedContent::File(file), revision: digest, version })
    }

    /// Starts a gate to the host of `url`; returns its port on this machine too.
    fn open_gate(&self, url: &str) -> Result<(RefCell<HelperProcess>, u16), Failure> {
        let job = HelperJob::Gate { url: url.to_owned(), most: MAX_RECEIVED, walled: self.walled };
        let mut helper = HelperProcess::start(job, url, self.out)?;
        loop {
            match helper.next_news()? {
                HelperNews::Listening(port) => return Ok((RefCell::new(helper), port)),
                HelperNews::Received(_) => {}
                HelperNews::Fault(why) => return Err(unreachable_host(url, &why)),
                HelperNews::File { .. } => return Err(Failure::new("the helper talks nonsense")),
            }
        }
    }
}
