//! The operator's own settings in a running server: read at the start, and again when their files have
//! changed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use belljar_agent::Host;
use belljar_definition::Settings;
use belljar_server::OpenError;
use belljar_session::{LookDepth, RenewalOutcome, SettingsVersion, VersionMaker};
use belljar_store::TENANT;

use super::judged::setup_error;
use super::late;
use super::limits::service_limits;
use super::watched::WatchedFiles;
use crate::setup::data::DataRoot;
use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;
use crate::setup::host::{self, HostAssembly};
use crate::setup::secrets;
use crate::setup::walls;
use crate::term::out::TerminalOutput;

/// The operator's settings in force, and the state of their files.
pub(crate) struct OwnSettings {
    places: HomePaths,
    data: DataRoot,
    out: TerminalOutput,
    /// The settings at the start of the server.
    began: Settings,
    state: Mutex<OwnSettingsState>,
}

/// The settings of the last read, and the state of their files.
struct OwnSettingsState {
    watched: WatchedFiles,
    /// The number of times that the settings were read.
    reads: u64,
    now: Arc<OwnVersion>,
    /// The reason why the settings read last are not in force; `None` = they are.
    invalid: Option<String>,
    /// The settings that need a restart, as logged last.
    late: Vec<String>,
}

/// The operator's settings in force, and the host of the operator's own tenant.
pub(crate) struct OwnVersion {
    pub(crate) settings: Settings,
    pub(crate) host: Host,
}

/// The result of a check for changed settings.
pub(crate) struct LookResult {
    pub(crate) now: Arc<OwnVersion>,
    reads: u64,
    invalid: Option<String>,
}

impl OwnSettings {
    /// Begins with the settings of the start and their host. `watched` has noted their files before they were
    /// read.
    pub(crate) fn new(
        settings: Settings,
        host: Host,
        watched: WatchedFiles,
        places: HomePaths,
        data: DataRoot,
        out: TerminalOutput,
    ) -> Self {
        let began = settings.clone();
        let now = Arc::new(OwnVersion { settings, host });
        let state = OwnSettingsState { watched, reads: 0, now, invalid: None, late: Vec::new() };
        Self { places, data, out, began, state: Mutex::new(state) }
    }

    pub(crate) fn operator_places(&self) -> &HomePaths {
        &self.places
    }

    pub(crate) fn data_root(&self) -> &DataRoot {
        &self.data
    }

    /// The settings in force, without checking the files.
    pub(crate) fn current_version(&self) -> Arc<OwnVersion> {
        Arc::clone(&self.lock_state().now)
    }

    /// Returns whether a part of the settings in the files needs a restart.
    pub(crate) fn waits_for_restart(&self) -> bool {
        !self.lock_state().late.is_empty()
    }

    /// The settings in force, after a check for changed files. Reads files, and may list tools in a separate
    /// runtime.
    pub(crate) fn look_at_files(&self, look: LookDepth) -> LookResult {
        let mut state = self.lock_state();
        let changed = state.watched.have_changed() || look == LookDepth::Anew;
        // INV-156: a failure may have had a cause outside of these files, so the read is repeated until it
        // succeeds. A revoked right must not stay in force because of a directory's mode.
        if changed || state.invalid.is_some() {
            let now = Arc::clone(&state.now);
            match self.read_version(&now, &mut state.watched) {
                Ok((version, late)) => {
                    state.reads = state.reads.wrapping_add(1);
                    log_late_settings(TENANT, &state.late, &late);
                    state.now = Arc::new(version);
                    state.late = late;
                    state.invalid = None;
                }
                Err(failure) => {
                    let why = failure_text(&failure);
                    if changed || state.invalid.as_ref() != Some(&why) {
                        state.reads = state.reads.wrapping_add(1);
                    }
                    state.invalid = Some(why);
                }
            }
        }
        let (now, invalid) = (Arc::clone(&state.now), state.invalid.clone());
        LookResult { now, reads: state.reads, invalid }
    }

    /// Reads the settings that a start of the server would read, changed to what this process can apply.
    fn read_version(
        &self,
        now: &OwnVersion,
        watched: &mut WatchedFiles,
    ) -> Result<(OwnVersion, Vec<String>), Failure> {
        let mut settings = host::settings_again(&self.places)?;
        watched.watch_further(further_files(&settings, &self.places));
        let late = late::fit_settings(
            &mut settings,
            &self.began,
            &now.settings,
            &self.places,
            walls::wall_reach(),
        );
        let closed = host::own_directories(&self.places, Some(self.data.root_path()));
        let sandbox = now.host.sandbox.clone().with_closed_directories(closed);
        let assembly = HostAssembly::from_settings(settings.clone(), &self.places, &self.out);
        let host = assembly.with_sandbox(sandbox).build_host()?;
        for problem in host.tools.problems() {
            self.out.print_diagnostic(problem);
        }
        Ok((OwnVersion { settings, host }, late))
    }

    fn lock_state(&self) -> MutexGuard<'_, OwnSettingsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files with a home's settings, and the directory of its tools, so that an installed or removed tool
/// takes effect at once.
pub(crate) fn settings_files(places: &HomePaths) -> Vec<PathBuf> {
    let lock = places.libraries_directory().join("lock.toml");
    vec![places.config_path(), places.workspace_config(), lock, places.tools_directory()]
}

/// Further files to watch: those with values of secrets, and the directories of installed tools, whose files
/// are written one after another.
pub(crate) fn further_files(
    settings: &Settings,
    places: &HomePaths,
) -> impl Iterator<Item = PathBuf> {
    let tools = std::fs::read_dir(places.tools_directory()).into_iter().flatten().flatten();
    secrets::files_named(settings, places).into_iter().chain(tools.map(|entry| entry.path()))
}

/// Logs the settings that need a restart, except those that were logged already.
pub(crate) fn log_late_settings(tenant: &str, before: &[String], late: &[String]) {
    for what in late.iter().filter(|what| !before.contains(what)) {
        tracing::warn!(tenant, "takes effect after a restart: {what}");
    }
}

/// A failure as one text.
fn failure_text(failure: &Failure) -> String {
    match setup_error(failure) {
        OpenError::OutOfReach(why) | OpenError::Setup(why) => why,
    }
}

/// Makes the versions of the operator's own tenant.
pub(crate) struct OwnRenewal {
    own: Arc<OwnSettings>,
    /// The number of the read from which the version in force was made.
    seen: Mutex<u64>,
}

impl OwnRenewal {
    pub(crate) fn new(own: Arc<OwnSettings>, seen: u64) -> Self {
        Self { own, seen: Mutex::new(seen) }
    }

    /// Whether the operator's own tenant gets a new version after this check.
    fn to_renewed(&self, looked: LookResult) -> RenewalOutcome {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == looked.reads {
            return RenewalOutcome::Same;
        }
        *seen = looked.reads;
        match looked.invalid {
            Some(why) => RenewalOutcome::Invalid(why),
            None => RenewalOutcome::New(Box::new(looked.to_version())),
        }
    }
}

impl LookResult {
    /// The number of times that the settings were read.
    pub(crate) fn read_count(&self) -> u64 {
        self.reads
    }

    fn to_version(&self) -> SettingsVersion {
        let OwnVersion { settings, host } = &*self.now;
        SettingsVersion { host: host.clone(), limits: service_limits(&settings.server) }
    }
}

#[async_trait]
impl VersionMaker for OwnRenewal {
    async fn renew_version(&self, look: LookDepth) -> RenewalOutcome {
        let own = Arc::clone(&self.own);
        #[expect(
            clippy::disallowed_methods,
            reason = "settings that the operator wrote, behind one lock; tools that are read meanwhile \
                      need places of the operator's"
        )]
        let looked = tokio::task::spawn_blocking(move || own.look_at_files(look)).await;
        match looked {
            Ok(looked) => self.to_renewed(looked),
            Err(error) => RenewalOutcome::Invalid(format!("they could not be read: {error}")),
        }
    }
}
