//! `belljar prove --wall`: the child process that raises the OS sandbox of `serve`, and attacks from behind
//! it.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use belljar_prove::wall::WallPart;

use crate::args::server::DataArg;
use crate::commands::serve;
use crate::commands::serve::opening as serve_tenants;
use crate::setup::data::DataRoot;
use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::setup::walls::{self, WallRaiser};
use crate::term::out::TerminalOutput;

/// The part whose attacks run in children of this program.
pub(crate) fn wall_part() -> Result<WallPart, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("failed to find the running program: {error}")))?;
    Ok(WallPart::new(program, vec![walls::ATTACK.into()], vec![walls::VICTIM.into()]))
}

/// Runs the child: raises the OS sandbox, makes one attack, and reports its result.
pub(crate) fn run_attack(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let out = TerminalOutput::new(false, false);
    let mut word = || words.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    let (id, targets) = (word(), word());
    let attacked = belljar_prove::wall::run_attack(&id, &targets, |root| {
        let raised = raise_wall(root, &out).map_err(|failure| anyhow::anyhow!(failure.message))?;
        Ok((raised.landlock, raised.seccomp, raised.missing))
    });
    match attacked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out.print_failure(&Failure::new(format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

/// Raises the OS sandbox of `belljar serve` around the temporary directory `root`.
fn raise_wall(
    root: &Path,
    out: &TerminalOutput,
) -> Result<belljar_os_sandbox::WallStatus, Failure> {
    let home = root.join("home");
    let (cache, workspace) = (home.join("cache"), root.join("workspace"));
    let places = HomePaths { home, cache, workspace, user_home: None };
    let data =
        DataRoot::find_root(&DataArg { data: None }, &host::read_settings(&places)?, &places)?;
    let tenants = serve_tenants::written_places(&data);
    Ok(WallRaiser::new(false, out).raise_quietly(&places, &serve::wall_gaps(&data, tenants)))
}
