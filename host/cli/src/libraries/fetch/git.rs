//! Fetches one commit with git: without history, and of a folder only the files that are read.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use belljar_os_sandbox::Program;
use belljar_policy::ShownText;

use super::address::GitAddress;
use super::helper::{HelperProcess, own_program};
use super::news::unreachable_host;
use crate::libraries::archive::MAX_UNPACKED;
use crate::libraries::commit::{GitCommit, ListedKind, parse_listing};
use crate::libraries::folder::WorkDeadline;
use crate::libraries::gather::CollectScope;
use crate::libraries::git::{GitOutput, GitProgram, GitRunner, MAX_TIME, empty_repository};
use crate::setup::exit::Failure;
use crate::setup::walls::PROGRAM;

/// Bytes of memory for each process of git.
const MEMORY: u64 = 3 << 30;

/// Processes of git beside the first: its own for HTTPS, for packs, and for their checks.
const PROCESSES: u32 = 16;

/// Settings for git when it fetches.
const CONFIG: &[&str] = &[
    "http.followRedirects=initial",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=30",
    "http.emptyAuth=false",
    "http.sslVerify=true",
    "http.cookieFile=",
    "fetch.recurseSubmodules=false",
    "fetch.negotiationAlgorithm=noop",
    "fetch.unpackLimit=1",
    "transfer.bundleURI=false",
    "protocol.version=2",
];

/// The way out for git.
#[derive(Clone, Copy)]
pub(super) struct GitGate<'a> {
    /// The helper that passes connections on.
    pub(super) gate: &'a RefCell<HelperProcess>,
    /// The gate's port on this machine.
    pub(super) port: u16,
    /// Whether git is started behind the OS sandbox.
    pub(super) walled: bool,
}

/// Fetches the commit that the address names.
pub(super) fn fetch_commit(
    way: GitGate<'_>,
    address: &GitAddress,
    scope: CollectScope,
) -> Result<GitCommit, Failure> {
    let temporary = tempfile::tempdir().map_err(|error| {
        Failure::new(format!("failed to make a temporary directory for git: {error}"))
    })?;
    let home = temporary
        .path()
        .canonicalize()
        .map_err(|error| Failure::new(format!("failed to find a directory for git: {error}")))?;
    let GitGate { gate, port, walled } = way;
    let protocol = if address.url.starts_with("http:") { "http" } else { "https" };
    let command = git_command(walled, &home, port)?;
    let git = GitRunner {
        home: &home,
        until: WorkDeadline::after_limit(MAX_TIME),
        program: GitProgram::Fetching { gate, command, protocol },
    };
    let place = home.join("fetched.git");
    let shown = ShownText::clip_line(&address.url, 200).to_string();
    git.init_repository(&place, address.rev.as_ref().is_some_and(|rev| rev.len() == 64))?;
    // Files that are too long to be read do not come; of a folder, only names come at first.
    let filter = match address.folder {
        None => format!("--filter=blob:limit={}", scope.longest_file() + 1),
        Some(_) => "--filter=blob:none".to_owned(),
    };
    let rev = address.rev.as_deref().unwrap_or("HEAD");
    let fetched =
        fetch(&git, &place, port, &[&filter, "--depth=1", "--", &address.url, rev], None)?;
    if !fetched.status.success() {
        gate.borrow_mut().drain_messages();
        let fault = gate.borrow().fault.clone();
        return Err(explain_failure(&fetched.words, fault, address, &shown));
    }
    let id = git.resolve_id(&place, "FETCH_HEAD", &shown)?;
    if address.folder.is_some() {
        let listing = git.list_files(&place, &id, address.folder.as_deref(), &shown)?;
        let failed =
            |error: std::io::Error| Failure::usage(format!("the commit cannot be read: {error}"));
        let wanted: BTreeSet<String> = parse_listing(&listing)
            .map_err(failed)?
            .into_iter()
            .filter(|file| file.kind == ListedKind::Regular)
            .filter(|file| scope.may_read(file.path.rsplit('/').next().unwrap_or_default()))
            .map(|file| file.id)
            .collect();
        if !wanted.is_empty() {
            let input = git.input_file(wanted.iter().map(String::as_str))?;
            let more =
                ["--filter=blob:none", "--no-write-fetch-head", "--stdin", "--", &address.url];
            let fetched = fetch(&git, &place, port, &more, Some(input))?;
            if !fetched.status.success() {
                gate.borrow_mut().drain_messages();
                let fault = gate.borrow().fault.clone();
                return Err(explain_failure(&fetched.words, fault, address, &shown));
            }
        }
    }
    git.extract_commit(&place, id, address.folder.as_deref(), &shown)
}

fn fetch(
    git: &GitRunner<'_>,
    place: &Path,
    port: u16,
    arguments: &[&str],
    input: Option<std::fs::File>,
) -> Result<GitOutput, Failure> {
    let mut command = git.command_in(place);
    command.args(["-c", &format!("http.proxy=http://127.0.0.1:{port}")]);
    for setting in CONFIG {
        command.args(["-c", setting]);
    }
    command.args([
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-auto-maintenance",
        "--recurse-submodules=no",
    ]);
    git.run_command(command.args(arguments), input, MAX_UNPACKED)
}

/// The command that starts git, without git's own arguments.
fn git_command(walled: bool, home: &Path, port: u16) -> Result<Vec<OsString>, Failure> {
    let path = find_git()?;
    if !walled {
        return Ok(vec![path.into()]);
    }
    let program = Program {
        name: "git".to_owned(),
        path,
        args: Vec::new(),
        data: BTreeSet::new(),
        read: BTreeSet::new(),
        write: BTreeSet::from([home.to_path_buf()]),
        network: true,
        only_port: Some(port),
        memory: MEMORY,
        processes: PROCESSES,
    };
    let text = serde_json::to_string(&program)
        .map_err(|error| Failure::new(format!("failed to describe git: {error}")))?;
    let own = own_program()
        .map_err(|error| Failure::new(format!("failed to find the running program: {error}")))?;
    Ok(vec![own.into(), PROGRAM.into(), text.into()])
}

/// The program `git` on the `PATH`.
fn find_git() -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join("git"));
    found.find(|git| git.is_absolute() && git.is_file()).ok_or_else(|| {
        Failure::new("the program `git` is not there")
            .with_hint("install git, or give the address of an archive of the repository")
    })
}

/// The failure of a fetch: the gate's own words first, then the meaning of git's.
fn explain_failure(
    words: &str,
    fault: Option<String>,
    address: &GitAddress,
    shown: &str,
) -> Failure {
    if let Some(why) = fault {
        return unreachable_host(&address.url, &why);
    }
    let has = |text: &str| words.contains(text);
    if has("couldn't find remote ref HEAD") {
        return empty_repository(shown);
    }
    if has("couldn't find remote ref") || has("not our ref") || has("unadvertised object") {
        let rev = ShownText::clip_line(address.rev.as_deref().unwrap_or("HEAD"), 80).to_string();
        return Failure::usage(format!("`{shown}` has no branch, tag or commit `{rev}`"))
            .with_hint("nothing of it is installed");
    }
    if has("could not read Username") || has("Authentication failed") || has("not found") {
        return Failure::usage(format!(
            "there is no repository at `{shown}` that everybody may read"
        ))
        .with_hint("of a private one, make a clone with git, and give the directory");
    }
    unreachable_host(&address.url, words)
}
