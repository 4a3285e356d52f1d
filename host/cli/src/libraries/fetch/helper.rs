//! A helper process: this program again, for everything that needs a connection.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use belljar_policy::ShownText;
use indicatif::{ProgressBar, ProgressStyle};

use super::news::{FILE, HelperJob, HelperNews, unreachable_host};
use crate::setup::exit::Failure;
use crate::setup::walls::HELPER;
use crate::term::out::TerminalOutput;
use crate::term::table::format_size;

/// Bytes of the messages that wait to be read.
const MAX_MESSAGES: usize = 64 << 10;

/// A running helper. Dropping it ends the process.
pub(crate) struct HelperProcess {
    child: Child,
    /// Closed with this process, which ends the helper.
    _stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    heard: Vec<u8>,
    news: VecDeque<HelperNews>,
    /// The first fault that a gate has reported.
    pub(super) fault: Option<String>,
    directory: tempfile::TempDir,
    url: String,
    bar: Option<ProgressBar>,
}

impl HelperProcess {
    /// Starts a helper with a fresh directory for its file; `url` is what is fetched, for a person.
    pub(super) fn start(job: HelperJob, url: &str, out: &TerminalOutput) -> Result<Self, Failure> {
        let failed =
            |error: io::Error| Failure::new(format!("failed to start the helper: {error}"));
        let directory = tempfile::tempdir().map_err(failed)?;
        let text = serde_json::to_string(&job)
            .map_err(|error| Failure::new(format!("failed to describe the fetch: {error}")))?;
        let mut command = Command::new(own_program().map_err(failed)?);
        command.arg(HELPER).arg(text).arg(directory.path()).env_clear();
        // Certificates are found by these; no key or password is among them.
        for name in ["PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.current_dir("/").spawn().map_err(failed)?;
        let stdin = child.stdin.take();
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| Failure::new("failed to start the helper: it has no output"))?;
        let url = ShownText::clip_line(url, 200).to_string();
        let bar = out.explains_waiting().then(|| progress_bar(&url));
        let (heard, news) = (Vec::new(), VecDeque::new());
        Ok(Self { child, _stdin: stdin, stdout, heard, news, fault: None, directory, url, bar })
    }

    /// Waits for the next message.
    pub(super) fn next_news(&mut self) -> Result<HelperNews, Failure> {
        loop {
            if let Some(news) = self.news.pop_front() {
                return Ok(news);
            }
            self.hear_messages()
                .map_err(|error| unreachable_host(&self.url, &error.to_string()))?;
        }
    }

    /// Reads the messages that are there, and waits for one if there is none.
    ///
    /// # Errors
    ///
    /// The helper is gone.
    pub(in crate::libraries) fn hear_messages(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let read = self.stdout.read(&mut buffer)?;
        if read == 0 {
            return Err(io::Error::other("the helper has ended"));
        }
        self.heard.extend_from_slice(buffer.get(..read).unwrap_or_default());
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            let news: HelperNews = serde_json::from_slice(&line)
                .map_err(|_| io::Error::other("the helper talks nonsense"))?;
            match &news {
                HelperNews::Received(bytes) => {
                    if let Some(bar) = &self.bar {
                        bar.set_message(format_size(*bytes));
                        bar.tick();
                    }
                    continue;
                }
                HelperNews::Fault(why) if self.fault.is_none() => self.fault = Some(why.clone()),
                HelperNews::Fault(_) | HelperNews::Listening(_) | HelperNews::File { .. } => {}
            }
            self.news.push_back(news);
        }
        match self.heard.len() + self.news.len() > MAX_MESSAGES {
            true => Err(io::Error::other("the helper talks too much")),
            false => Ok(()),
        }
    }

    /// Waits for the file; returns it with its SHA-256 and version. The file has no name any more.
    pub(super) fn await_file(&mut self) -> Result<(File, String, Option<String>), Failure> {
        loop {
            match self.next_news()? {
                HelperNews::Received(_) | HelperNews::Listening(_) => {}
                HelperNews::Fault(why) => return Err(unreachable_host(&self.url, &why)),
                HelperNews::File { sha256, version } => {
                    let path = self.directory.path().join(FILE);
                    let open = || -> io::Result<File> {
                        let (mut file, _) = crate::libraries::folder::open_file(&path)?;
                        std::fs::remove_file(&path)?;
                        file.seek(SeekFrom::Start(0))?;
                        Ok(file)
                    };
                    let file =
                        open().map_err(|error| unreachable_host(&self.url, &error.to_string()))?;
                    return Ok((file, sha256, version));
                }
            }
        }
    }

    /// Waits until everything that the gate has reported so far is read.
    pub(super) fn drain_messages(&mut self) {
        use rustix::event::{PollFd, PollFlags, poll};
        use rustix::time::Timespec;
        let soon = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        while self.fault.is_none()
            && matches!(poll(&mut [PollFd::new(&self.stdout, PollFlags::IN)], Some(&soon)), Ok(1))
            && self.hear_messages().is_ok()
        {}
    }
}

impl AsFd for HelperProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stdout.as_fd()
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        // Both fail only if the helper has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of this program.
pub(super) fn own_program() -> io::Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok(PathBuf::from("/proc/self/exe")),
        false => std::env::current_exe(),
    }
}

/// A line that moves with each message: no thread may be left when the OS sandbox goes up.
fn progress_bar(url: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(format!("fetching {url}"));
    bar.tick();
    bar
}
