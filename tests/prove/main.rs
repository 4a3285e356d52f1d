//! The parts of `belljar prove` that attack the real program, one test for each attack:
//! `cargo test -p belljar-cli --test prove -- libraries-git` runs those with that in their names.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use belljar_prove::{AcpPart, LibrariesPart, ProvePart, ServerPart, ServerSetup};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Times are each attack's own.
    arguments.test_threads = Some(1);
    let runtime = Arc::new(Runtime::new().unwrap());
    let parts: &[fn() -> Arc<dyn ProvePart>] = &[
        server,
        libraries,
        acp,
        #[cfg(target_os = "linux")]
        wall,
    ];
    let trials = parts.iter().flat_map(|part| trials(part(), &runtime)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_belljar"))
}

fn server() -> Arc<dyn ProvePart> {
    Arc::new(ServerPart::new(ServerSetup { program: program(), cache_dir: Some(cache()) }))
}

/// One cache for all tests of a build, so that each component is compiled once.
fn cache() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("components");
    std::fs::create_dir_all(&path).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    path
}

fn libraries() -> Arc<dyn ProvePart> {
    Arc::new(LibrariesPart::new(program()))
}

fn acp() -> Arc<dyn ProvePart> {
    Arc::new(AcpPart::new(program(), Some(cache())))
}

#[cfg(target_os = "linux")]
fn wall() -> Arc<dyn ProvePart> {
    let (child, victim) = (vec!["attack-the-wall".into()], vec!["be-attacked".into()]);
    let wall = belljar_prove::wall::WallPart::new(program(), child, victim);
    assert!(wall.attack_ids().len() >= 60, "{} attacks", wall.attack_ids().len());
    Arc::new(wall)
}

/// One test for each attack of a part.
fn trials(part: Arc<dyn ProvePart>, runtime: &Arc<Runtime>) -> Vec<Trial> {
    let trial = |id: &'static str| {
        let (part, runtime) = (Arc::clone(&part), Arc::clone(runtime));
        Trial::test(id, move || {
            let report = runtime.block_on(async {
                part.prepare().await.map_err(|error| Failed::from(format!("{error:#}")))?;
                Ok::<_, Failed>(part.make_attack(id).await)
            })?;
            if std::env::var_os("BELLJAR_HOSTILE_FIGURES").is_some() {
                println!("{}", serde_json::to_string(&report).unwrap());
            }
            report.result.map(drop).map_err(Failed::from)
        })
    };
    part.attack_ids().into_iter().map(trial).collect()
}
