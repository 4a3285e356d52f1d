//! Clocks, random numbers, the environment, settings, the log, and things to hold by the
//! thousand.

use std::time::Duration;

use belljar_guest::{config, log, progress, secret};
use serde::Deserialize;
use serde_json::{Value, json};
use wasip2::cli::environment::{get_arguments, get_environment, initial_cwd};
use wasip2::cli::exit::exit;
use wasip2::cli::terminal_stdout::get_terminal_stdout;
use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::http::types::Fields;
use wasip2::io::poll::{Pollable, poll};
use wasip2::random::{insecure, insecure_seed, random};

use crate::Said;
use crate::held::{self, Held};

/// One call.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Step {
    /// What the environment, the arguments and the terminal are.
    Surroundings {},
    /// The time, the clock's resolution and the smallest step seen in `reads` readings.
    Clock {
        reads: u64,
    },
    /// Waits.
    Wait {
        ms: u64,
    },
    /// Keeps a timer of so many nanoseconds.
    Timer {
        ns: u64,
    },
    /// Waits for all held pollables at once.
    PollAll {},
    /// Waits for a list that names one pollable `times` times.
    PollMany {
        held: usize,
        times: usize,
    },
    /// Waits for an empty list, which the interface forbids.
    PollNothing {},
    Random {
        bytes: u64,
    },
    Insecure {
        bytes: u64,
    },
    Seed {},
    /// Ends the program.
    Exit {
        ok: bool,
    },
    /// A setting.
    Config {
        key: String,
    },
    /// Whether a secret is there.
    HasSecret {
        name: String,
    },
    /// A line in the operator's log: `text`, or `bytes` bytes.
    Log {
        #[serde(default)]
        text: String,
        #[serde(default)]
        bytes: usize,
    },
    /// A progress report.
    Progress {
        done: u64,
        total: Option<u64>,
        #[serde(default)]
        text: String,
        #[serde(default)]
        bytes: usize,
    },
    /// Keeps a list of header fields, with one value of `bytes` bytes.
    Fields {
        bytes: usize,
    },
}

impl Step {
    pub(crate) fn run(self) -> Said {
        match self {
            Self::Surroundings {} => Ok(json!({
                "environment": get_environment(),
                "arguments": get_arguments(),
                "directory": initial_cwd(),
                "terminal": get_terminal_stdout().is_some(),
            })),
            Self::Clock { reads } => Ok(clock(reads)),
            Self::Wait { ms } => {
                monotonic_clock::subscribe_duration(nanoseconds(ms)).block();
                Ok(Value::Null)
            }
            Self::Timer { ns } => {
                let timer = monotonic_clock::subscribe_duration(ns);
                Ok(json!({ "held": held::keep(Held::Pollable(timer)) }))
            }
            Self::PollAll {} => Ok(held::with_all(|held| {
                let waiting: Vec<&Pollable> = held.iter().flatten().filter_map(pollable).collect();
                json!(poll(&waiting).len())
            })),
            Self::PollMany { held, times } => held::with(held, |held| match pollable(held) {
                Some(pollable) => Ok(json!(poll(&vec![pollable; times]).len())),
                None => held::wrong(),
            }),
            Self::PollNothing {} => Ok(json!(poll(&[]).len())),
            Self::Random { bytes } => Ok(json!(random::get_random_bytes(bytes).len())),
            Self::Insecure { bytes } => Ok(json!(insecure::get_insecure_random_bytes(bytes).len())),
            Self::Seed {} => Ok(json!(insecure_seed::insecure_seed())),
            Self::Exit { ok } => {
                exit(if ok { Ok(()) } else { Err(()) });
                Ok(Value::Null)
            }
            Self::Config { key } => {
                config::get(&key).map(|value| json!(value)).map_err(|error| format!("{error:?}"))
            }
            Self::HasSecret { name } => {
                secret::exists(&name).map(|is| json!(is)).map_err(|error| format!("{error:?}"))
            }
            Self::Log { text, bytes } => {
                log::warn(padded(text, bytes));
                Ok(Value::Null)
            }
            Self::Progress { done, total, text, bytes } => {
                progress::report(done, total, &padded(text, bytes));
                Ok(Value::Null)
            }
            Self::Fields { bytes } => {
                let fields = Fields::new();
                fields.append("x", &vec![b'x'; bytes]).map_err(|error| format!("{error:?}"))?;
                Ok(json!({ "held": held::keep(Held::Fields(fields)) }))
            }
        }
    }
}

fn clock(reads: u64) -> Value {
    let mut last = monotonic_clock::now();
    let mut smallest = u64::MAX;
    for _ in 0..reads {
        let now = monotonic_clock::now();
        if now > last {
            smallest = smallest.min(now - last);
        }
        last = now;
    }
    json!({
        "resolution": monotonic_clock::resolution(),
        "smallest": smallest,
        "wall": wall_clock::now().nanoseconds,
    })
}

fn pollable(held: &Held) -> Option<&Pollable> {
    match held {
        Held::Pollable(pollable) => Some(pollable),
        _ => None,
    }
}

fn padded(text: String, bytes: usize) -> String {
    if bytes == 0 { text } else { text + &"x".repeat(bytes) }
}

/// Milliseconds in the clock's unit.
pub(crate) fn nanoseconds(ms: u64) -> u64 {
    u64::try_from(Duration::from_millis(ms).as_nanos()).unwrap_or(u64::MAX)
}
