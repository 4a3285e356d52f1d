//! Runs a hook command: JSON on stdin, a bare environment and bounded output. After a deadline or a
//! cancellation, no process of it remains.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use belljar_os_sandbox::{Broker, RunningChild};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::limits::{MAX_HOOK_STDERR, MAX_HOOK_STDOUT};

/// How long output is read after the end of the command. The command's own output is in the pipe by then, but
/// a process left behind may hold the pipe open.
const OUTPUT_GRACE: Duration = Duration::from_millis(100);

/// How long the host waits for a killed command to end.
const KILL_WAIT: Duration = Duration::from_secs(1);

/// An ended command with its output.
#[derive(Debug)]
pub(crate) struct EndedCommand {
    /// The exit status; `None` = a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    /// True if stdout was longer than [`MAX_HOOK_STDOUT`].
    pub(crate) cut: bool,
    /// The beginning of its stderr, up to [`MAX_HOOK_STDERR`].
    pub(crate) stderr: String,
}

/// Starts `command` in the workspace, through the broker if the host runs behind the OS sandbox.
pub(crate) async fn start_command(
    command: &str,
    workspace: &Path,
    broker: Option<&Broker>,
) -> Result<RunningChild, String> {
    let started = match broker {
        Some(broker) => broker.start_hook(command, workspace).await,
        None => RunningChild::start_hook(command, workspace),
    };
    started.map_err(|error| format!("it cannot start: {error}"))
}

/// Writes `input` to a started command and reads its output until it ends. After an error, which names the
/// reason, the command's whole process group has ended.
pub(crate) async fn run_command(
    mut child: RunningChild,
    input: &str,
    limit: Duration,
    stop: &CancellationToken,
) -> Result<EndedCommand, String> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut out, mut err) =
        (CapturedOutput::new(MAX_HOOK_STDOUT), CapturedOutput::new(MAX_HOOK_STDERR));
    let ended = {
        let feed = async {
            if let Some(mut stdin) = stdin {
                // The error is ignored: a command that does not read its input closes the pipe.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        let mut talk =
            pin!(async { tokio::join!(feed, out.read_stream(stdout), err.read_stream(stderr)) });
        let work = async {
            let mut talking = true;
            let status = loop {
                tokio::select! {
                    status = child.wait() => break status,
                    _ = &mut talk, if talking => talking = false,
                }
            };
            if talking {
                let _ = timeout(OUTPUT_GRACE, talk).await;
            }
            status
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => Err("it was cancelled".to_owned()),
            done = timeout(limit, work) => match done {
                Ok(status) => status.map_err(|error| format!("it was lost: {error}")),
                Err(_) => Err(format!("it took over {} s", limit.as_secs())),
            },
        }
    };
    match ended {
        Ok(status) => {
            let stderr = String::from_utf8_lossy(&err.bytes).into_owned();
            Ok(EndedCommand { code: status.code(), stdout: out.bytes, cut: out.cut, stderr })
        }
        Err(why) => {
            child.kill();
            let _ = timeout(KILL_WAIT, child.wait()).await;
            Err(why)
        }
    }
}

/// The first bytes of a stream. The rest is read and dropped, so the command never blocks.
struct CapturedOutput {
    bytes: Vec<u8>,
    limit: usize,
    cut: bool,
}

impl CapturedOutput {
    fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, cut: false }
    }

    /// Reads a stream to its end and keeps the first bytes.
    async fn read_stream(&mut self, from: Option<impl AsyncRead + Unpin>) {
        let Some(mut from) = from else { return };
        let mut chunk = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut chunk).await {
            let room = self.limit.saturating_sub(self.bytes.len());
            self.cut |= count > room;
            self.bytes.extend_from_slice(chunk.get(..count.min(room)).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sh(command: &str, input: &str) -> Result<EndedCommand, String> {
        let dir = tempfile::tempdir().unwrap();
        let child = start_command(command, dir.path(), None).await?;
        run_command(child, input, Duration::from_secs(20), &CancellationToken::new()).await
    }

    #[tokio::test]
    async fn input_output_and_status_pass_through() {
        let ran = sh("cat; echo oops >&2; exit 3", "{\"a\":1}").await.unwrap();
        assert_eq!((ran.code, ran.stdout.as_slice()), (Some(3), b"{\"a\":1}".as_slice()));
        assert_eq!(ran.stderr, "oops\n");
    }

    #[tokio::test]
    async fn a_command_that_reads_nothing_and_one_that_writes_without_end_do_not_hang() {
        let long = "x".repeat(4 << 20);
        assert_eq!(sh("exit 0", &long).await.unwrap().code, Some(0));
        let flood = sh("head -c 9000000 /dev/zero", "").await.unwrap();
        assert!(flood.cut && flood.stdout.len() == MAX_HOOK_STDOUT);
    }

    #[tokio::test]
    async fn the_environment_holds_four_names_and_the_directory_is_the_workspace() {
        let ran = sh("env | cut -d= -f1 | sort; pwd -P; cd \"$BELLJAR_PROJECT_DIR\" && pwd -P", "");
        let text = String::from_utf8(ran.await.unwrap().stdout).unwrap();
        let allowed =
            ["BELLJAR_PROJECT_DIR", "HOME", "LANG", "OLDPWD", "PATH", "PWD", "SHLVL", "_"];
        let lines: Vec<&str> = text.lines().collect();
        let (paths, names): (Vec<&str>, Vec<&str>) =
            lines.into_iter().partition(|line| line.starts_with('/'));
        assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
        assert!(names.contains(&"BELLJAR_PROJECT_DIR"));
        assert!(paths.len() == 2 && paths[0] == paths[1], "{paths:?}");
    }

    /// Waits until no process holds the writing end of this pipe.
    async fn is_gone(fifo: &Path) {
        let read = tokio::fs::read(fifo.to_owned());
        timeout(Duration::from_secs(20), read).await.expect("the group lives on").unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_late_command_ends_with_everything_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("alive");
        // The background process waits on a pipe that nobody writes to, and holds `alive`.
        let command = "mkfifo alive never; (exec 3<>never; exec 4<>alive; read x <&3) & wait";
        let child = start_command(command, dir.path(), None).await.unwrap();
        let stop = CancellationToken::new();
        let why = run_command(child, "", Duration::from_secs(1), &stop).await.unwrap_err();
        assert_eq!(why, "it took over 1 s");
        // A writer of the test's own lets the pipe be opened for reading; if no other writer is left, the end
        // of the file follows.
        let own = fifo.clone();
        #[expect(clippy::disallowed_methods, reason = "a test that waits for a pipe")]
        let open = tokio::task::spawn_blocking(move || {
            drop(std::fs::OpenOptions::new().write(true).open(own));
        });
        is_gone(&fifo).await;
        open.await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_cancelled_command_ends_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        let child = start_command("mkfifo never; read x <never", dir.path(), None).await.unwrap();
        let why = run_command(child, "", Duration::from_secs(60), &stop);
        assert_eq!(why.await.unwrap_err(), "it was cancelled");
    }
}
