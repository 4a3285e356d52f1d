//! Runs one command: JSON on stdin, a bare environment, bounded output, and nothing of it left
//! when it is late or cancelled.

use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::bounds::{MAX_HOOK_STDERR, MAX_HOOK_STDOUT};

/// The shell, by its full path: the one thing that every hook needs.
const SHELL: &str = "/bin/sh";

/// All that a command sees of this process's environment: no keys, no secrets.
const KEPT: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Names the workspace, as the current directory does at first.
const PROJECT_DIR: &str = "BELLJAR_PROJECT_DIR";

/// How long output is read after the command has ended: what it wrote is in the pipe by then,
/// but something that it left behind may hold the pipe open.
const OUTPUT_GRACE: Duration = Duration::from_millis(100);

/// How long a killed command may take to be gone.
const KILL_WAIT: Duration = Duration::from_secs(1);

/// How a command ended.
#[derive(Debug)]
pub(super) struct Ran {
    /// `None` = by a signal.
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    /// Whether stdout went past the bound.
    pub(super) cut: bool,
    /// The first of it.
    pub(super) stderr: String,
}

/// Runs `command` in the workspace. An error says why there is no result; the command's whole
/// process group is gone then.
pub(super) async fn run(
    command: &str,
    input: &str,
    workspace: &Path,
    limit: Duration,
    stop: &CancellationToken,
) -> Result<Ran, String> {
    let mut child =
        spawn(command, workspace).map_err(|error| format!("it cannot start: {error}"))?;
    let mut group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (Kept::new(MAX_HOOK_STDOUT), Kept::new(MAX_HOOK_STDERR));
    let ended = {
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read its input closes the pipe.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        let mut talk = pin!(async { tokio::join!(feed, out.read(stdout), err.read(stderr)) });
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
            group.forget();
            let stderr = String::from_utf8_lossy(&err.bytes).into_owned();
            Ok(Ran { code: status.code(), stdout: out.bytes, cut: out.cut, stderr })
        }
        Err(why) => {
            group.kill();
            let _ = timeout(KILL_WAIT, child.wait()).await;
            Err(why)
        }
    }
}

fn spawn(command: &str, workspace: &Path) -> std::io::Result<Child> {
    let environment = KEPT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    Command::new(SHELL)
        .arg("-c")
        .arg(command)
        .current_dir(workspace)
        .env_clear()
        .envs(environment)
        .env(PROJECT_DIR, workspace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that everything it starts ends with it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// A running command's process group; dropping it ends the group.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn kill(&mut self) {
        if let Some(id) = self.0.take() {
            // It fails only where the group is gone already.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }

    /// The leader has ended by itself; its number may soon be another's.
    fn forget(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The first bytes of a stream; the rest is read and dropped, so that the writer never blocks.
struct Kept {
    bytes: Vec<u8>,
    limit: usize,
    cut: bool,
}

impl Kept {
    fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, cut: false }
    }

    async fn read(&mut self, from: Option<impl AsyncRead + Unpin>) {
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

    async fn sh(command: &str, input: &str) -> Result<Ran, String> {
        let dir = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        run(command, input, dir.path(), Duration::from_secs(20), &stop).await
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

    /// A pipe whose writing end the command's background process holds: it reads empty only
    /// when that process is gone.
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
        let stop = CancellationToken::new();
        let why = run(command, "", dir.path(), Duration::from_secs(1), &stop).await.unwrap_err();
        assert_eq!(why, "it took over 1 s");
        // No writer is left: opening to read would block, so a writer of our own opens it and
        // is gone, and what remains is the end of the file.
        let own = fifo.clone();
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
        let why =
            run("mkfifo never; read x <never", "", dir.path(), Duration::from_secs(60), &stop);
        assert_eq!(why.await.unwrap_err(), "it was cancelled");
    }
}
