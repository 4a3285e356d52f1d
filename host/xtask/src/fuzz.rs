//! `cargo xtask fuzz --seconds N [TARGET]`: runs each fuzz target of `tests/fuzz` for some time.
//!
//! Inputs that reach new code are kept under `target/fuzz`, and the next run continues from them. An input
//! that makes a target fail is copied to `tests/fuzz/regressions`; from then on, `cargo test` runs the input
//! too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};

/// The directory of the fuzz targets.
const FUZZ_DIR: &str = "tests/fuzz";

/// The most bytes of an input: enough to exceed every bound that an input can exceed, and small enough to
/// run fast.
const MAX_LEN: u32 = 16 << 10;

/// The limits of a target: MiB of memory, and seconds for an input. An input that exceeds a limit is a
/// finding.
const RSS_LIMIT_MB: u32 = 2048;
const TIMEOUT_SECONDS: u32 = 10;

/// How many lines of a target's log are printed with a finding.
const SHOWN_LINES: usize = 30;

#[derive(clap::Args)]
pub(crate) struct FuzzArgs {
    /// How long each target runs; with 0 the targets are only built
    #[arg(long, value_name = "N")]
    seconds: u32,
    /// Run this one alone
    target: Option<String>,
}

/// The result of running one target.
struct FuzzRun {
    target: String,
    executions: u64,
    per_second: u64,
    peak_mb: u64,
    findings: Vec<PathBuf>,
    died: bool,
    log: String,
}

/// Builds the chosen targets, runs them in parallel, and reports the results.
pub(crate) fn run(root: &Path, arguments: &FuzzArgs) -> Result<()> {
    let host = check_tools()?;
    let all = list_targets(root)?;
    let chosen: Vec<_> = match &arguments.target {
        None => all,
        Some(one) => {
            ensure!(all.contains(one), "there is no target `{one}`; there are {}", all.join(", "));
            vec![one.clone()]
        }
    };
    let work = work_dir(root);
    let binaries = build_targets(root, &work, &host, arguments.target.as_deref())?;
    if arguments.seconds == 0 {
        return Ok(());
    }
    let one = |target: &str| {
        crate::print_line(&format!("fuzz {target}: {} s", arguments.seconds));
        fuzz_target(root, &work, &binaries, target, arguments.seconds)
    };
    report_runs(root, &on_every_core(&chosen, one)?)
}

/// Calls `one` for each target, in parallel on all processors, because libFuzzer uses one processor. The
/// results are in the order of the targets.
fn on_every_core<T: Send>(
    targets: &[String],
    one: impl Fn(&str) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let waiting = Mutex::new(targets.iter().enumerate());
    let done = Mutex::new(Vec::new());
    let next = || waiting.lock().ok()?.next();
    let work = || {
        while let Some((at, target)) = next() {
            let run = one(target);
            if let Ok(mut done) = done.lock() {
                done.push((at, run));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    ensure!(done.len() == targets.len(), "a target was not run to its end");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, run)| run).collect()
}

/// Checks that the nightly toolchain and cargo-fuzz are installed. Returns the target triple of the local
/// machine.
fn check_tools() -> Result<String> {
    let nightly = Command::new("rustc").args(["+nightly", "-vV"]).output();
    let nightly = nightly.context("failed to start rustc")?;
    ensure!(
        nightly.status.success(),
        "there is no nightly toolchain, which instruments the targets; `rustup toolchain install \
         nightly` installs it (`cargo test` replays the corpus without)"
    );
    let fuzz = Command::new("cargo").args(["+nightly", "fuzz", "--version"]).output();
    ensure!(
        fuzz.context("failed to start cargo")?.status.success(),
        "there is no cargo-fuzz; `cargo install cargo-fuzz --locked` installs it"
    );
    let text = String::from_utf8_lossy(&nightly.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` names no host")
}

/// The names of the targets: the names of the folders with their example inputs.
fn list_targets(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(FUZZ_DIR).join("corpus")).context("no corpus")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn work_dir(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| root.join("target")).join("fuzz")
}

/// Builds one target, or all. Returns the directory of the binaries.
fn build_targets(root: &Path, work: &Path, host: &str, target: Option<&str>) -> Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["+nightly", "fuzz", "build", "--fuzz-dir", FUZZ_DIR])
        // The manifest explains why no sanitizer is used. With 16 codegen units, the build takes half the
        // time.
        .args(["--sanitizer", "none", "--codegen-units", "16", "--target", host, "--target-dir"])
        .arg(work)
        .args(target)
        // The variable may name a wrapper for the stable toolchain.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .current_dir(root)
        .status()
        .context("failed to start cargo")?;
    ensure!(status.success(), "the fuzz targets could not be built");
    Ok(work.join(host).join("release"))
}

fn fuzz_target(
    root: &Path,
    work: &Path,
    binaries: &Path,
    target: &str,
    seconds: u32,
) -> Result<FuzzRun> {
    let folder = |name: &str| work.join(name).join(target);
    let (found, artifacts) = (folder("found"), folder("artifacts"));
    // Findings of an earlier run were already copied to the tree.
    if artifacts.exists() {
        fs::remove_dir_all(&artifacts).context("failed to clear the artifacts")?;
    }
    let regressions = root.join(FUZZ_DIR).join("regressions").join(target);
    for dir in [&found, &artifacts, &regressions] {
        fs::create_dir_all(dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
    }
    let log_path = work.join(format!("{target}.log"));
    let log = fs::File::create(&log_path).context("failed to make the log")?;
    let mut command = Command::new(binaries.join(target));
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={MAX_LEN}"))
        .arg(format!("-rss_limit_mb={RSS_LIMIT_MB}"))
        .arg(format!("-timeout={TIMEOUT_SECONDS}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg("-print_final_stats=1");
    let words = root.join(FUZZ_DIR).join("words").join(format!("{target}.dict"));
    if words.exists() {
        command.arg(format!("-dict={}", words.display()));
    }
    // libFuzzer writes new inputs to the first folder; the others are only read.
    let status = command
        .arg(&found)
        .args([root.join(FUZZ_DIR).join("corpus").join(target), regressions.clone()])
        // A backtrace would push the message of the panic out of the lines that are printed.
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .status()
        .with_context(|| format!("failed to start `{target}`"))?;
    let log = fs::read(&log_path).context("failed to read the log")?;
    let log = String::from_utf8_lossy(&log).into_owned();
    let mut findings = Vec::new();
    for entry in fs::read_dir(&artifacts).context("failed to list the artifacts")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // An input named `slow-unit-` is slow but within the limit; an input above the limit is named
        // `timeout-`.
        if !name.starts_with("slow-unit-") {
            let kept = regressions.join(&name);
            fs::copy(&path, &kept).context("failed to keep a finding")?;
            findings.push(kept);
        }
    }
    let stat = |name: &str| parse_stat(&log, name);
    Ok(FuzzRun {
        target: target.to_owned(),
        executions: stat("number_of_executed_units"),
        per_second: stat("average_exec_per_sec"),
        peak_mb: stat("peak_rss_mb"),
        findings,
        died: !status.success(),
        log,
    })
}

/// The value of a line `stat::NAME: N` that libFuzzer prints at the end; 0 if there is no such line.
fn parse_stat(log: &str, name: &str) -> u64 {
    let lines = log.lines().filter_map(|line| line.strip_prefix("stat::"));
    let mut named = lines.filter_map(|line| line.split_once(':')).filter(|(key, _)| *key == name);
    named.next().and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
}

/// Prints a table of the runs, and the log of each target with findings. Fails if there is a finding.
fn report_runs(root: &Path, runs: &[FuzzRun]) -> Result<()> {
    crate::print_line("target         executions   per second   peak MiB   findings");
    for run in runs {
        let FuzzRun { target, executions, per_second, peak_mb, findings, .. } = run;
        let found = findings.len();
        crate::print_line(&format!(
            "{target:<12} {executions:>12} {per_second:>12} {peak_mb:>10} {found:>10}"
        ));
    }
    let mut failed = Vec::new();
    for run in runs.iter().filter(|run| run.died || !run.findings.is_empty()) {
        failed.push(run.target.as_str());
        let lines: Vec<_> = run.log.lines().collect();
        let shown = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default();
        crate::print_line(&format!("--- {}\n{}", run.target, shown.join("\n")));
        for path in &run.findings {
            let path = path.strip_prefix(root).unwrap_or(path);
            crate::print_line(&format!("kept as `{}`", path.display()));
        }
    }
    if !failed.is_empty() {
        bail!("findings in {}; mend them and commit the kept inputs", failed.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_run_once_and_told_of_in_its_place() {
        let targets: Vec<String> = (0..20).map(|number| format!("t{number}")).collect();
        let runs = on_every_core(&targets, |target| Ok(target.to_owned())).unwrap();
        assert_eq!(runs, targets);
        let one_fails = |target: &str| match target {
            "t7" => bail!("t7 does not start"),
            _ => Ok(()),
        };
        let error = on_every_core(&targets, one_fails).unwrap_err();
        assert_eq!(error.to_string(), "t7 does not start");
    }

    #[test]
    fn the_figures_are_read_from_libfuzzers_own_words() {
        let log = "#9 DONE\nDone 9 runs in 3 second(s)\nstat::number_of_executed_units: 905\n\
                   stat::average_exec_per_sec:     301\n";
        assert_eq!(parse_stat(log, "number_of_executed_units"), 905);
        assert_eq!(parse_stat(log, "average_exec_per_sec"), 301);
        assert_eq!(parse_stat(log, "peak_rss_mb"), 0);
    }
}
