//! Standard streams, and the calls that every stream has.

use serde::Deserialize;
use serde_json::{Value, json};
use wasip2::cli::stderr::get_stderr;
use wasip2::cli::stdin::get_stdin;
use wasip2::cli::stdout::get_stdout;
use wasip2::io::streams::{OutputStream, StreamError};

use crate::Said;
use crate::held::{self, Held};

/// One call.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Writes `bytes` bytes to stdout (or stderr) in pieces of `chunk`, at most 4096.
    Stdio {
        bytes: u64,
        #[serde(default = "page")]
        chunk: usize,
        #[serde(default)]
        stderr: bool,
    },
    /// Writes a text to stdout (or stderr).
    Say {
        text: String,
        #[serde(default)]
        stderr: bool,
    },
    /// Reads stdin until its end.
    Stdin {},
    /// Keeps a handle to stdout.
    HoldStdout {},
    /// Keeps a handle to stdin.
    HoldStdin {},
    /// `times` writes of nothing, without waiting, to a held stream.
    EmptyWrites { held: usize, times: u64 },
    /// One write of `len` bytes without asking how many are welcome.
    WriteAtOnce { held: usize, len: usize },
    /// `write-zeroes`, without asking.
    Zeroes { held: usize, len: u64 },
    /// `check-write`.
    Welcome { held: usize },
    /// Reads at most `len` bytes from a held stream.
    ReadHeld { held: usize, len: u64 },
    /// Skips bytes of a held stream.
    Skip { held: usize, len: u64 },
    /// `splice` from one held stream to another.
    Splice { from: usize, to: usize, len: u64 },
    /// A pollable of a held stream, kept.
    Watch { held: usize },
}

fn page() -> usize {
    4096
}

impl Step {
    pub(crate) fn run(self) -> Said {
        match self {
            Self::Stdio { bytes, chunk, stderr } => {
                let stream = standard(stderr);
                let piece = vec![b'x'; chunk];
                let mut left = bytes;
                while left > 0 {
                    stream.blocking_write_and_flush(&piece).map_err(|error| word(&error))?;
                    left = left.saturating_sub(piece.len().max(1) as u64);
                }
                Ok(Value::Null)
            }
            Self::Say { text, stderr } => {
                let stream = standard(stderr);
                for piece in text.as_bytes().chunks(4096) {
                    stream.blocking_write_and_flush(piece).map_err(|error| word(&error))?;
                }
                Ok(Value::Null)
            }
            Self::Stdin {} => {
                let bytes = get_stdin().blocking_read(4096).map_err(|error| word(&error))?;
                Ok(json!(bytes.len()))
            }
            Self::HoldStdout {} => Ok(json!({ "held": held::keep(Held::Output(get_stdout())) })),
            Self::HoldStdin {} => Ok(json!({ "held": held::keep(Held::Input(get_stdin())) })),
            Self::EmptyWrites { held, times } => output(held, |stream| {
                for _ in 0..times {
                    stream.write(&[])?;
                }
                Ok(json!(times))
            }),
            Self::WriteAtOnce { held, len } => {
                output(held, |stream| stream.write(&vec![b'x'; len]).map(|()| Value::Null))
            }
            Self::Zeroes { held, len } => {
                output(held, |stream| stream.write_zeroes(len).map(|()| Value::Null))
            }
            Self::Welcome { held } => output(held, |stream| stream.check_write().map(|n| json!(n))),
            Self::ReadHeld { held, len } => held::with(held, |held| match held {
                Held::Input(stream) => stream
                    .blocking_read(len)
                    .map(|bytes| json!(bytes.len()))
                    .map_err(|error| word(&error)),
                _ => held::wrong(),
            }),
            Self::Skip { held, len } => held::with(held, |held| match held {
                Held::Input(stream) => {
                    stream.blocking_skip(len).map(|n| json!(n)).map_err(|error| word(&error))
                }
                _ => held::wrong(),
            }),
            Self::Splice { from, to, len } => held::with(from, |from| match from {
                Held::Input(input) => {
                    output(to, |stream| stream.blocking_splice(input, len).map(|n| json!(n)))
                }
                _ => held::wrong(),
            }),
            Self::Watch { held } => {
                let pollable = held::with(held, |held| match held {
                    Held::Input(stream) => Ok(stream.subscribe()),
                    Held::Output(stream) => Ok(stream.subscribe()),
                    _ => held::wrong(),
                })?;
                Ok(json!({ "held": held::keep(Held::Pollable(pollable)) }))
            }
        }
    }
}

fn standard(stderr: bool) -> OutputStream {
    if stderr { get_stderr() } else { get_stdout() }
}

fn output(number: usize, act: impl FnOnce(&OutputStream) -> Result<Value, StreamError>) -> Said {
    held::with(number, |held| match held {
        Held::Output(stream) => act(stream).map_err(|error| word(&error)),
        _ => held::wrong(),
    })
}

/// A stream's error in one line.
pub(crate) fn word(error: &StreamError) -> String {
    match error {
        StreamError::Closed => "closed".to_owned(),
        StreamError::LastOperationFailed(error) => error.to_debug_string(),
    }
}
