//! `belljar doctor`: checks what is present and what is missing, and makes one real tool call. Opens no
//! connection.

mod files;
mod tenants;

use std::path::Path;

use belljar_definition::{KeySetting, Settings, ToolManifest};
use belljar_os_sandbox::{KnownProgram, WallStatus};
use belljar_policy::{MountAccess, ShownPath as _, ShownText, ToolName};
use belljar_sandbox::{OutputPart, Sandbox, SecretStore, ToolOutput};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::args::DoctorArgs;
use crate::commands::tools::single::SingleToolCall;
use crate::setup::data::DataRoot;
use crate::setup::embedded::STOCK_TOOLS;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, create_private};
use crate::setup::host;
use crate::setup::programs;
use crate::setup::secrets;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{self, TextTable, plain_cell, styled_cell};
use belljar_guest_build::Language;

/// The tool that the self-test calls: it reads a file.
const PROBE: &str = "file_read";

/// The content of the file that the self-test reads.
const PROBE_TEXT: &str = "belljar doctor was here";

/// The outcome of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckResult {
    Good,
    /// The part works with limits, or is not needed; worth knowing.
    Note,
    /// The part does not work.
    Bad,
}

/// One line of the report: the checked part, the result and details.
#[derive(Serialize)]
struct DoctorCheck {
    name: &'static str,
    finding: CheckResult,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<String>,
}

/// Runs all checks and prints them. The OS sandbox is raised in between, after everything that it would
/// refuse.
pub(super) fn run(
    args: &DoctorArgs,
    places: &dyn Fn() -> Result<HomePaths, Failure>,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let mut checks = vec![check_machine()];
    // Toolchains are started, and directories made, before the OS sandbox is raised.
    let toolchain = check_toolchains();
    let probe = tempfile::tempdir();
    match places() {
        Err(failure) => checks.push(failed_check("places", &failure)),
        Ok(places) => {
            let directory = probe.as_ref().ok().map(tempfile::TempDir::path);
            // Behind the OS sandbox only the broker can use the cache, so it is made here.
            let _ = create_private(&places.cache);
            let cache = check_cache(&places);
            let tenants = tenants::find_data(&args.data, &places);
            let through = tenants::tenant_gaps(tenants.as_ref(), wall_gaps(directory));
            let raised = walls.raise_quietly(&places, &through);
            checks.push(os_sandbox(&raised));
            checks.push(check_home(&places));
            match host::read_settings(&places) {
                Err(failure) => checks.push(failed_check("configuration", &failure)),
                Ok(settings) => {
                    checks.push(check_configuration(&settings, &places));
                    checks.push(check_models(&settings, &places));
                    checks.push(check_overlays(&settings, &places));
                    let root = tenants.as_ref().map(DataRoot::root_path);
                    checks.extend(check_programs(&settings, &places, root, &raised));
                    files::check_all(&places, out, &mut checks);
                    if let Some(data) = tenants {
                        checks.extend(tenants::check_all(settings, &places, data));
                    }
                }
            }
            checks.push(cache);
        }
    }
    checks.extend(check_sandbox(probe, out));
    checks.push(toolchain);
    let broken = checks.iter().any(|check| check.finding == CheckResult::Bad);
    if args.json {
        out.print_json(&checks)?;
    } else {
        print_checks(&checks, out);
    }
    Ok(if broken { CommandExit::Failed } else { CommandExit::Completed })
}

/// Prints a table of the checks, with the details of each below it.
fn print_checks(checks: &[DoctorCheck], out: &TerminalOutput) {
    let mut table = TextTable::new(out, &["", "", ""]);
    for check in checks {
        let (style, mark) = match check.finding {
            CheckResult::Good => (TextStyle::Green, "ok"),
            CheckResult::Note => (TextStyle::Yellow, "note"),
            CheckResult::Bad => (TextStyle::Red, "bad"),
        };
        table.push_row([styled_cell(style, mark), plain_cell(check.name), plain_cell(&check.text)]);
        for line in check.details.iter().flat_map(|detail| detail.lines()) {
            table.push_row([plain_cell(""), plain_cell(""), plain_cell(line)]);
        }
    }
    table.print_to(out);
}

fn make_check(name: &'static str, finding: CheckResult, text: impl Into<String>) -> DoctorCheck {
    DoctorCheck { name, finding, text: text.into(), details: Vec::new() }
}

/// The check for a part that could not be read, with the failure's text and hints.
fn failed_check(name: &'static str, failure: &Failure) -> DoctorCheck {
    let diagnostics = failure.diagnostics.iter().map(ToString::to_string);
    let hints = failure.hints.iter().map(|hint| format!("hint: {hint}"));
    let text = if failure.message.is_empty() { "not valid" } else { &failure.message };
    DoctorCheck {
        details: diagnostics.chain(hints).collect(),
        ..make_check(name, CheckResult::Bad, text)
    }
}

/// The check of the program itself: version, system and processor cores.
fn check_machine() -> DoctorCheck {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (version, os, arch) =
        (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    make_check("belljar", CheckResult::Good, format!("{version}, {os} {arch}, {cores} cores"))
}

/// The gaps in the OS sandbox for the self-test, which writes in its own temporary directory.
fn wall_gaps(probe: Option<&Path>) -> WallGaps {
    WallGaps {
        write: probe.into_iter().map(Path::to_path_buf).collect(),
        temporary: probe.and_then(Path::parent).into_iter().map(Path::to_path_buf).collect(),
        ..WallGaps::default()
    }
}

/// The check of the OS sandbox: which of its parts are active.
fn os_sandbox(raised: &WallStatus) -> DoctorCheck {
    let mut parts = Vec::new();
    parts.extend(raised.landlock.map(|version| format!("landlock {version} holds the files")));
    parts.extend(raised.seccomp.then(|| "seccomp the system calls".to_owned()));
    let finding = if raised.is_whole() { CheckResult::Good } else { CheckResult::Note };
    let text = if parts.is_empty() {
        "none: wasmtime alone holds the tools".to_owned()
    } else {
        parts.join(", ")
    };
    DoctorCheck { details: raised.missing.clone(), ..make_check("OS sandbox", finding, text) }
}

/// The check of MCP servers that are commands. None of them is started.
fn check_programs(
    settings: &Settings,
    places: &HomePaths,
    data: Option<&Path>,
    raised: &WallStatus,
) -> Option<DoctorCheck> {
    let values = |key: &KeySetting| secrets::read_value(key, places);
    let known = programs::known_programs(settings, places, data, &[], &values);
    let number = match known.len() {
        0 => return None,
        1 => "1 MCP server is a command".to_owned(),
        number => format!("{number} MCP servers are commands"),
    };
    if raised.landlock.is_none() || !raised.seccomp {
        let text = format!("{number}, and none is started without the OS sandbox");
        return Some(make_check("programs", CheckResult::Bad, text));
    }
    let details: Vec<String> = known.iter().filter_map(start_obstacle).collect();
    let finding = if details.is_empty() { CheckResult::Good } else { CheckResult::Bad };
    let text = format!("{number}, confined by landlock and seccomp when started");
    Some(DoctorCheck { details, ..make_check("programs", finding, text) })
}

/// The reason why a program would not be started, as far as it can be seen without starting it.
fn start_obstacle(known: &KnownProgram) -> Option<String> {
    let KnownProgram { program, environment } = known;
    let why = match environment {
        Err(why) => why.clone(),
        Ok(_) if !program.path.is_file() => {
            format!("there is no file `{}`", program.path.to_shown())
        }
        Ok(_) => {
            let directories = program.read.iter().chain(&program.write);
            let absent = directories.into_iter().find(|path| !path.exists())?;
            format!("`{}` of its directories is not there", absent.to_shown())
        }
    };
    Some(format!("`{}`: {why}", program.name))
}

/// The check whether the home exists.
fn check_home(places: &HomePaths) -> DoctorCheck {
    let path = places.home.to_shown();
    if places.home.is_dir() {
        make_check("home", CheckResult::Good, path.to_string())
    } else {
        make_check(
            "home",
            CheckResult::Note,
            format!("{path} is not there; `belljar init` makes it"),
        )
    }
}

/// The check of the `belljar.toml` files, with their warnings.
fn check_configuration(settings: &Settings, places: &HomePaths) -> DoctorCheck {
    let of_workspace = (!places.is_around_home()).then(|| places.workspace_config());
    let files: Vec<String> = [places.config_path()]
        .iter()
        .chain(&of_workspace)
        .filter(|path| path.is_file())
        .map(|path| path.to_shown().to_string())
        .collect();
    let warnings: Vec<String> = settings.warnings().iter().map(ToString::to_string).collect();
    let finding = if warnings.is_empty() { CheckResult::Good } else { CheckResult::Note };
    let text =
        if files.is_empty() { "no file; the defaults hold".to_owned() } else { files.join(", ") };
    DoctorCheck { details: warnings, ..make_check("configuration", finding, text) }
}

/// The check whether the main model could be used. No request is sent.
fn check_models(settings: &Settings, places: &HomePaths) -> DoctorCheck {
    if settings.models.is_empty() {
        let text = "none is configured: `belljar run` needs one, `belljar demo` does not";
        return make_check("models", CheckResult::Note, text);
    }
    let models = match host::make_models(settings, places) {
        Ok(models) => models,
        Err(failure) => return failed_check("models", &failure),
    };
    let mut broken = Vec::new();
    let mut good = Vec::new();
    for name in settings.models.keys() {
        match models.resolve_model(name, None) {
            Ok(resolved) => good.push(format!("{name} ({})", resolved.model.id())),
            Err(error) => broken.push(error.to_string()),
        }
    }
    if let Err(error) = models.resolve_model("main", None) {
        broken.push(error.to_string());
    }
    let good = ShownText::new(&good.join(", ")).to_string();
    let remarks = settings.models.keys().filter_map(|name| models.key_remark(name));
    let remarks: Vec<String> = remarks.collect();
    if broken.is_empty() {
        let finding = if remarks.is_empty() { CheckResult::Good } else { CheckResult::Note };
        DoctorCheck { details: remarks, ..make_check("models", finding, good) }
    } else {
        broken.dedup();
        let details = broken.iter().map(|text| ShownText::new(text).to_string()).collect();
        let text = if good.is_empty() { "none can be used".to_owned() } else { good };
        DoctorCheck { details, ..make_check("models", CheckResult::Bad, text) }
    }
}

/// The check of changes in overlays that no person has decided about yet.
fn check_overlays(settings: &Settings, places: &HomePaths) -> DoctorCheck {
    let most = belljar_session::overlay_quota(&settings.overlays);
    let (sessions, held) = belljar_session::held_beside(&places.store_path());
    let text = format!(
        "those of {sessions} sessions hold {} of {}, {} of {} files",
        table::format_size(held.bytes),
        table::format_size(most.bytes),
        table::format_count(held.files),
        table::format_count(most.files)
    );
    let full = held.bytes >= most.bytes || held.files >= most.files;
    let hint = "`belljar discard RUN` throws changes away, `belljar sessions rm` a whole session";
    let details = if full { vec![format!("hint: {hint}")] } else { Vec::new() };
    let finding = if full { CheckResult::Bad } else { CheckResult::Good };
    DoctorCheck { details, ..make_check("overlays", finding, text) }
}

/// The check of the cache directory: present, and closed to other users.
fn check_cache(places: &HomePaths) -> DoctorCheck {
    let path = &places.cache;
    let shown = path.to_shown();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(_) => {
            return make_check(
                "cache",
                CheckResult::Note,
                format!("{shown} is not there; the first run makes it"),
            );
        }
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let mut check = make_check(
                "cache",
                CheckResult::Bad,
                format!("{shown} is open to others (mode {mode:o})"),
            );
            check.details.push(format!("hint: chmod 700 '{shown}'"));
            return check;
        }
    }
    let _ = metadata;
    if tempfile::tempfile_in(path).is_err() {
        return make_check("cache", CheckResult::Bad, format!("{shown} cannot be written"));
    }
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    let bytes: u64 = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    make_check("cache", CheckResult::Good, format!("{shown} ({})", table::format_size(bytes)))
}

/// Compiles a stock tool in the child process, without the cache, and calls the tool.
fn check_sandbox(
    directory: std::io::Result<tempfile::TempDir>,
    out: &TerminalOutput,
) -> Vec<DoctorCheck> {
    let sandbox = match host::sandbox_without_cache(out) {
        Ok(sandbox) => sandbox,
        Err(failure) => return vec![failed_check("sandbox", &failure)],
    };
    let begun = std::time::Instant::now();
    let probe = probe_sandbox(&sandbox, directory);
    let pool = match sandbox.warnings() {
        warnings if warnings.is_empty() => {
            make_check("pool", CheckResult::Good, "stores are pooled")
        }
        warnings => DoctorCheck {
            details: warnings,
            ..make_check("pool", CheckResult::Note, "stores are slower to open than they could be")
        },
    };
    let probe = match probe {
        Ok(fuel) => {
            let time = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            let fuel = table::format_fuel(fuel);
            let text = format!(
                "`{PROBE}` compiled in a child process and read a file: {} fuel, {}",
                fuel,
                table::format_micros(time)
            );
            make_check("sandbox", CheckResult::Good, text)
        }
        Err(failure) => failed_check("sandbox", &failure),
    };
    vec![probe, pool]
}

/// Reads a file with a tool in a jar; returns the fuel that the call used.
fn probe_sandbox(
    sandbox: &Sandbox,
    directory: std::io::Result<tempfile::TempDir>,
) -> Result<u64, Failure> {
    let stock = STOCK_TOOLS
        .iter()
        .find(|stock| stock.name == PROBE)
        .ok_or_else(|| Failure::new(format!("this build has no tool `{PROBE}`")))?;
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let directory = directory.map_err(|error| failed(&error))?;
    let workspace = directory.path().canonicalize().map_err(|error| failed(&error))?;
    std::fs::write(workspace.join("probe.txt"), PROBE_TEXT).map_err(|error| failed(&error))?;
    let manifest = ToolManifest::parse(Path::new("tool.toml"), stock.manifest)
        .map_err(|diagnostics| Failure::from_diagnostics("", diagnostics))?;
    let single = SingleToolCall {
        wasm: &stock.to_wasm(),
        ask: manifest.ask,
        config: std::collections::BTreeMap::new(),
        tool: &ToolName::new(PROBE).map_err(|error| failed(&error))?,
        arguments: r#"{"path": "probe.txt"}"#,
        workspace: &workspace,
        access: MountAccess::Read,
        hosts: Vec::new(),
        secrets: SecretStore::default(),
        cancel: CancellationToken::new(),
    };
    let result = host::make_runtime()?.block_on(single.call_in_jar(sandbox))?;
    let ToolOutput { parts } = result.outcome.map_err(|error| failed(&error))?;
    let right = parts
        .iter()
        .any(|part| matches!(part, OutputPart::Text(text) if text.contains(PROBE_TEXT)));
    if right {
        Ok(result.receipt.fuel)
    } else {
        Err(Failure::new(format!("`{PROBE}` did not return the file's text")))
    }
}

/// The check of toolchains: the languages whose compilers are on the path, and the install command for each
/// missing one.
fn check_toolchains() -> DoctorCheck {
    let (mut there, mut details) = (Vec::new(), Vec::new());
    for language in Language::ALL {
        match language.find_toolchain(None) {
            Ok(found) => {
                there.push(language.word());
                details.push(format!(
                    "{}: {}",
                    language.word(),
                    ShownText::new(&found.description)
                ));
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
        return DoctorCheck { details, ..make_check("toolchains", CheckResult::Note, text) };
    }
    let text = format!("tools can be built in {}", there.join(", "));
    DoctorCheck { details, ..make_check("toolchains", CheckResult::Good, text) }
}
