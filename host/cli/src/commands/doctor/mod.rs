//! `belljar doctor`: present and missing parts, and a real tool call. Opens no connection.

mod files;
mod tenants;

use std::path::Path;

use belljar_definition::{KeySetting, Settings, ToolManifest};
use belljar_os_sandbox::{Known, Raised};
use belljar_policy::{Access, Shown, ShownPath as _, ToolName};
use belljar_sandbox::{Output, Part, Sandbox, SecretStore};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::args::DoctorArgs;
use crate::commands::tools::single::Single;
use crate::setup::data::Data;
use crate::setup::embedded::STOCK_TOOLS;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, create_private};
use crate::setup::host;
use crate::setup::programs;
use crate::setup::secrets;
use crate::setup::walls::{Through, Walls};
use crate::term::out::{Out, Style};
use crate::term::table::{self, Table, plain, styled};
use belljar_guest_build::Language;

/// The tool that the self-test calls.
const PROBE: &str = "file_read";

/// The content of the self-test's file.
const PROBE_TEXT: &str = "belljar doctor was here";

/// The outcome of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Finding {
    Good,
    /// Works, or is not needed; worth knowing.
    Note,
    /// Does not work.
    Bad,
}

#[derive(Serialize)]
struct Check {
    name: &'static str,
    finding: Finding,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<String>,
}

pub(super) fn run(
    args: &DoctorArgs,
    places: &dyn Fn() -> Result<Places, Failure>,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let mut checks = vec![machine()];
    // Programs are run, and directories made elsewhere, before the wall goes up.
    let toolchain = toolchain();
    let probe = tempfile::tempdir();
    match places() {
        Err(failure) => checks.push(bad("places", &failure)),
        Ok(places) => {
            let directory = probe.as_ref().ok().map(tempfile::TempDir::path);
            // Behind the wall the cache is the broker's alone.
            let _ = create_private(&places.cache);
            let cache = cache(&places);
            let tenants = tenants::data(&args.data, &places);
            let through = tenants::through(tenants.as_ref(), through(directory));
            let raised = walls.look(&places, &through);
            checks.push(os_sandbox(&raised));
            checks.push(home(&places));
            match host::settings(&places) {
                Err(failure) => checks.push(bad("configuration", &failure)),
                Ok(settings) => {
                    checks.push(configuration(&settings, &places));
                    checks.push(models(&settings, &places));
                    checks.push(overlays(&settings, &places));
                    let root = tenants.as_ref().map(Data::root);
                    checks.extend(programs(&settings, &places, root, &raised));
                    files::check_all(&places, out, &mut checks);
                    if let Some(data) = tenants {
                        checks.extend(tenants::check_all(settings, &places, data));
                    }
                }
            }
            checks.push(cache);
        }
    }
    checks.extend(sandbox(probe, out));
    checks.push(toolchain);
    let broken = checks.iter().any(|check| check.finding == Finding::Bad);
    if args.json {
        out.json(&checks)?;
    } else {
        print(&checks, out);
    }
    Ok(if broken { Exit::Failed } else { Exit::Completed })
}

fn print(checks: &[Check], out: &Out) {
    let mut table = Table::new(out, &["", "", ""]);
    for check in checks {
        let (style, mark) = match check.finding {
            Finding::Good => (Style::Green, "ok"),
            Finding::Note => (Style::Yellow, "note"),
            Finding::Bad => (Style::Red, "bad"),
        };
        table.row([styled(style, mark), plain(check.name), plain(&check.text)]);
        for line in check.details.iter().flat_map(|detail| detail.lines()) {
            table.row([plain(""), plain(""), plain(line)]);
        }
    }
    table.print(out);
}

fn check(name: &'static str, finding: Finding, text: impl Into<String>) -> Check {
    Check { name, finding, text: text.into(), details: Vec::new() }
}

fn bad(name: &'static str, failure: &Failure) -> Check {
    let diagnostics = failure.diagnostics.iter().map(ToString::to_string);
    let hints = failure.hints.iter().map(|hint| format!("hint: {hint}"));
    let text = if failure.message.is_empty() { "not valid" } else { &failure.message };
    Check { details: diagnostics.chain(hints).collect(), ..check(name, Finding::Bad, text) }
}

fn machine() -> Check {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (version, os, arch) =
        (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    check("belljar", Finding::Good, format!("{version}, {os} {arch}, {cores} cores"))
}

fn through(probe: Option<&Path>) -> Through {
    Through {
        write: probe.into_iter().map(Path::to_path_buf).collect(),
        temporary: probe.and_then(Path::parent).into_iter().map(Path::to_path_buf).collect(),
        ..Through::default()
    }
}

fn os_sandbox(raised: &Raised) -> Check {
    let mut parts = Vec::new();
    parts.extend(raised.landlock.map(|version| format!("landlock {version} holds the files")));
    parts.extend(raised.seccomp.then(|| "seccomp the system calls".to_owned()));
    let finding = if raised.is_whole() { Finding::Good } else { Finding::Note };
    let text = if parts.is_empty() {
        "none: wasmtime alone holds the tools".to_owned()
    } else {
        parts.join(", ")
    };
    Check { details: raised.missing.clone(), ..check("OS sandbox", finding, text) }
}

/// The MCP servers that are commands. None is started.
fn programs(
    settings: &Settings,
    places: &Places,
    data: Option<&Path>,
    raised: &Raised,
) -> Option<Check> {
    let values = |key: &KeySetting| secrets::value(key, places);
    let known = programs::known(settings, places, data, &[], &values);
    let number = match known.len() {
        0 => return None,
        1 => "1 MCP server is a command".to_owned(),
        number => format!("{number} MCP servers are commands"),
    };
    if raised.landlock.is_none() || !raised.seccomp {
        let text = format!("{number}, and none is started without the OS sandbox");
        return Some(check("programs", Finding::Bad, text));
    }
    let details: Vec<String> = known.iter().filter_map(unstartable).collect();
    let finding = if details.is_empty() { Finding::Good } else { Finding::Bad };
    let text = format!("{number}, confined by landlock and seccomp when started");
    Some(Check { details, ..check("programs", finding, text) })
}

/// Why a program would not be started, as far as that can be seen.
fn unstartable(known: &Known) -> Option<String> {
    let Known { program, environment } = known;
    let why = match environment {
        Err(why) => why.clone(),
        Ok(_) if !program.path.is_file() => format!("there is no file `{}`", program.path.shown()),
        Ok(_) => {
            let directories = program.read.iter().chain(&program.write);
            let absent = directories.into_iter().find(|path| !path.exists())?;
            format!("`{}` of its directories is not there", absent.shown())
        }
    };
    Some(format!("`{}`: {why}", program.name))
}

fn home(places: &Places) -> Check {
    let path = places.home.shown();
    if places.home.is_dir() {
        check("home", Finding::Good, path.to_string())
    } else {
        check("home", Finding::Note, format!("{path} is not there; `belljar init` makes it"))
    }
}

fn configuration(settings: &Settings, places: &Places) -> Check {
    let of_workspace = (!places.is_around_home()).then(|| places.workspace_config());
    let files: Vec<String> = [places.config()]
        .iter()
        .chain(&of_workspace)
        .filter(|path| path.is_file())
        .map(|path| path.shown().to_string())
        .collect();
    let warnings: Vec<String> = settings.warnings().iter().map(ToString::to_string).collect();
    let finding = if warnings.is_empty() { Finding::Good } else { Finding::Note };
    let text =
        if files.is_empty() { "no file; the defaults hold".to_owned() } else { files.join(", ") };
    Check { details: warnings, ..check("configuration", finding, text) }
}

/// Whether the main model could be made; nothing is sent.
fn models(settings: &Settings, places: &Places) -> Check {
    if settings.models.is_empty() {
        let text = "none is configured: `belljar run` needs one, `belljar demo` does not";
        return check("models", Finding::Note, text);
    }
    let models = match host::models(settings, places) {
        Ok(models) => models,
        Err(failure) => return bad("models", &failure),
    };
    let mut broken = Vec::new();
    let mut good = Vec::new();
    for name in settings.models.keys() {
        match models.resolve(name, None) {
            Ok(resolved) => good.push(format!("{name} ({})", resolved.model.id())),
            Err(error) => broken.push(error.to_string()),
        }
    }
    if let Err(error) = models.resolve("main", None) {
        broken.push(error.to_string());
    }
    let good = Shown::new(&good.join(", ")).to_string();
    let remarks = settings.models.keys().filter_map(|name| models.remark(name));
    let remarks: Vec<String> = remarks.collect();
    if broken.is_empty() {
        let finding = if remarks.is_empty() { Finding::Good } else { Finding::Note };
        Check { details: remarks, ..check("models", finding, good) }
    } else {
        broken.dedup();
        let details = broken.iter().map(|text| Shown::new(text).to_string()).collect();
        let text = if good.is_empty() { "none can be used".to_owned() } else { good };
        Check { details, ..check("models", Finding::Bad, text) }
    }
}

/// The amount of agents' changes without a decision.
fn overlays(settings: &Settings, places: &Places) -> Check {
    let most = belljar_session::overlay_quota(&settings.overlays);
    let (sessions, held) = belljar_session::held_beside(&places.store());
    let text = format!(
        "those of {sessions} sessions hold {} of {}, {} of {} files",
        table::size(held.bytes),
        table::size(most.bytes),
        table::count(held.files),
        table::count(most.files)
    );
    let full = held.bytes >= most.bytes || held.files >= most.files;
    let hint = "`belljar discard RUN` throws changes away, `belljar sessions rm` a whole session";
    let details = if full { vec![format!("hint: {hint}")] } else { Vec::new() };
    let finding = if full { Finding::Bad } else { Finding::Good };
    Check { details, ..check("overlays", finding, text) }
}

fn cache(places: &Places) -> Check {
    let path = &places.cache;
    let shown = path.shown();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(_) => {
            return check(
                "cache",
                Finding::Note,
                format!("{shown} is not there; the first run makes it"),
            );
        }
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let mut check =
                check("cache", Finding::Bad, format!("{shown} is open to others (mode {mode:o})"));
            check.details.push(format!("hint: chmod 700 '{shown}'"));
            return check;
        }
    }
    let _ = metadata;
    if tempfile::tempfile_in(path).is_err() {
        return check("cache", Finding::Bad, format!("{shown} cannot be written"));
    }
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    let bytes: u64 = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    check("cache", Finding::Good, format!("{shown} ({})", table::size(bytes)))
}

/// Compiles a stock tool in the child process, without the cache, and calls it.
fn sandbox(directory: std::io::Result<tempfile::TempDir>, out: &Out) -> Vec<Check> {
    let sandbox = match host::sandbox_without_cache(out) {
        Ok(sandbox) => sandbox,
        Err(failure) => return vec![bad("sandbox", &failure)],
    };
    let begun = std::time::Instant::now();
    let probe = probe(&sandbox, directory);
    let pool = match sandbox.warnings() {
        warnings if warnings.is_empty() => check("pool", Finding::Good, "stores are pooled"),
        warnings => Check {
            details: warnings,
            ..check("pool", Finding::Note, "stores are slower to open than they could be")
        },
    };
    let probe = match probe {
        Ok(fuel) => {
            let time = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            let fuel = table::fuel(fuel);
            let text = format!(
                "`{PROBE}` compiled in a child process and read a file: {} fuel, {}",
                fuel,
                table::micros(time)
            );
            check("sandbox", Finding::Good, text)
        }
        Err(failure) => bad("sandbox", &failure),
    };
    vec![probe, pool]
}

/// Reads a file through a jar; returns the used fuel.
fn probe(sandbox: &Sandbox, directory: std::io::Result<tempfile::TempDir>) -> Result<u64, Failure> {
    let stock = STOCK_TOOLS
        .iter()
        .find(|stock| stock.name == PROBE)
        .ok_or_else(|| Failure::new(format!("this build has no tool `{PROBE}`")))?;
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let directory = directory.map_err(|error| failed(&error))?;
    let workspace = directory.path().canonicalize().map_err(|error| failed(&error))?;
    std::fs::write(workspace.join("probe.txt"), PROBE_TEXT).map_err(|error| failed(&error))?;
    let manifest = ToolManifest::parse(Path::new("tool.toml"), stock.manifest)
        .map_err(|diagnostics| Failure::diagnostics("", diagnostics))?;
    let single = Single {
        wasm: &stock.wasm(),
        ask: manifest.ask,
        config: std::collections::BTreeMap::new(),
        tool: &ToolName::new(PROBE).map_err(|error| failed(&error))?,
        arguments: r#"{"path": "probe.txt"}"#,
        workspace: &workspace,
        access: Access::Read,
        hosts: Vec::new(),
        secrets: SecretStore::default(),
        cancel: CancellationToken::new(),
    };
    let result = host::runtime()?.block_on(single.call(sandbox))?;
    let Output { parts } = result.outcome.map_err(|error| failed(&error))?;
    let right =
        parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains(PROBE_TEXT)));
    if right {
        Ok(result.receipt.fuel)
    } else {
        Err(Failure::new(format!("`{PROBE}` did not return the file's text")))
    }
}

/// The languages whose toolchains are on the path; for a missing one, the command that installs it.
fn toolchain() -> Check {
    let (mut there, mut details) = (Vec::new(), Vec::new());
    for language in Language::ALL {
        match language.toolchain(None) {
            Ok(found) => {
                there.push(language.word());
                details.push(format!("{}: {}", language.word(), Shown::new(&found.description)));
            }
            Err(error) => {
                let failure = Failure::from(error);
                details.push(format!("{}: {}", language.word(), failure.message));
                details.extend(failure.hints.iter().map(|hint| format!("  hint: {hint}")));
            }
        }
    }
    if there.is_empty() {
        let text = "none for tools of your own; everything else works without";
        return Check { details, ..check("toolchains", Finding::Note, text) };
    }
    let text = format!("tools can be built in {}", there.join(", "));
    Check { details, ..check("toolchains", Finding::Good, text) }
}
