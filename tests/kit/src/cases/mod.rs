//! Tool cases: `tools/<name>/tests/cases.toml`, each run against a component in a fresh jar.
//!
//! The format is described in `tools/README.md`.

mod check;
mod run;
mod server;
mod workspace;

use std::collections::BTreeMap;

use belljar_policy::{LimitsRequest, MountAccess};
use serde::Deserialize;
use serde_json::Value;

pub use run::{ToolUnderTest, run_cases};

/// A file of cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

/// One call and what must come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default = "read")]
    access: MountAccess,
    /// The arguments of calls that the same store answers before.
    #[serde(default)]
    before: Vec<Value>,
    arguments: Value,
    #[serde(default)]
    files: BTreeMap<String, FileSpec>,
    #[serde(default)]
    limits: LimitsRequest,
    #[serde(default)]
    serve: Vec<Reply>,
    hosts: Option<Vec<String>>,
    #[serde(default)]
    config: BTreeMap<String, String>,
    #[serde(default)]
    secrets: Vec<String>,
    expect: Expect,
}

/// The thing that stands at a path before the call.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FileSpec {
    Text(String),
    Made(MadeFile),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MadeFile {
    text: Option<String>,
    hex: Option<String>,
    repeat: Option<usize>,
    link: Option<String>,
    dir: bool,
}

/// The loopback server's answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    path: String,
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    body_hex: Option<String>,
    #[serde(default = "once")]
    repeat: usize,
}

/// The state that must hold after the call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    text: Option<String>,
    #[serde(default)]
    contains: Vec<String>,
    #[serde(default)]
    lacks: Vec<String>,
    error: Option<String>,
    /// A refusal that the receipt must name. Which kind of error the tool makes of it is compared
    /// only where `error` is there too: the C library of newer compilers drops the code of a failed
    /// write.
    refused: Option<belljar_policy::DenyCode>,
    attachment: Option<ExpectedAttachment>,
    #[serde(default)]
    files_after: BTreeMap<String, FileAfter>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedAttachment {
    name: String,
    media_type: String,
    text: Option<String>,
    bytes: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FileAfter {
    Content(String),
    Exists(bool),
}

fn read() -> MountAccess {
    MountAccess::Read
}

fn ok() -> u16 {
    200
}

fn once() -> usize {
    1
}

/// Bytes written as hexadecimal digits.
fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
