//! The operator's own settings in a running server: read at the start, and again when files have changed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use belljar_agent::Host;
use belljar_definition::Settings;
use belljar_server::OpenError;
use belljar_session::{Look, Renew, Renewed, Version};
use belljar_store::TENANT;

use super::judged::setup;
use super::late;
use super::limits::limits;
use super::watched::Watched;
use crate::setup::data::Data;
use crate::setup::exit::Failure;
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::setup::secrets;
use crate::setup::walls;
use crate::term::out::Out;

/// The operator's settings over time.
pub(crate) struct Own {
    places: Places,
    data: Data,
    out: Out,
    /// Those of the start.
    began: Settings,
    state: Mutex<State>,
}

struct State {
    watched: Watched,
    /// How often they were read.
    reads: u64,
    now: Arc<OwnVersion>,
    /// Why those of the last read are not in force.
    invalid: Option<String>,
    /// The settings that wait for a restart, as logged.
    late: Vec<String>,
}

/// The operator's settings in force, and the host of its own tenant.
pub(crate) struct OwnVersion {
    pub(crate) settings: Settings,
    pub(crate) host: Host,
}

/// The findings of a look.
pub(crate) struct Looked {
    pub(crate) now: Arc<OwnVersion>,
    reads: u64,
    invalid: Option<String>,
}

impl Own {
    /// The settings of the start, with their host. `watched` noted their files before they were read.
    pub(crate) fn new(
        settings: Settings,
        host: Host,
        watched: Watched,
        places: Places,
        data: Data,
        out: Out,
    ) -> Self {
        let began = settings.clone();
        let now = Arc::new(OwnVersion { settings, host });
        let state = State { watched, reads: 0, now, invalid: None, late: Vec::new() };
        Self { places, data, out, began, state: Mutex::new(state) }
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn data(&self) -> &Data {
        &self.data
    }

    /// Those in force, without a look.
    pub(crate) fn now(&self) -> Arc<OwnVersion> {
        Arc::clone(&self.state().now)
    }

    /// Whether something of the settings as they are written waits for a restart.
    pub(crate) fn waits_for_restart(&self) -> bool {
        !self.state().late.is_empty()
    }

    /// The settings in force, after a check of the files. Reads files, and may describe tools on a separate
    /// runtime.
    pub(crate) fn look(&self, look: Look) -> Looked {
        let mut state = self.state();
        let changed = state.watched.have_changed() || look == Look::Anew;
        // INV-156: a failure may have had a cause outside of these files, so it is retried until it succeeds:
        // a revoked right must not survive because of a directory's mode.
        if changed || state.invalid.is_some() {
            let now = Arc::clone(&state.now);
            match self.read(&now, &mut state.watched) {
                Ok((version, late)) => {
                    state.reads = state.reads.wrapping_add(1);
                    say_late(TENANT, &state.late, &late);
                    state.now = Arc::new(version);
                    state.late = late;
                    state.invalid = None;
                }
                Err(failure) => {
                    let why = said(&failure);
                    if changed || state.invalid.as_ref() != Some(&why) {
                        state.reads = state.reads.wrapping_add(1);
                    }
                    state.invalid = Some(why);
                }
            }
        }
        let (now, invalid) = (Arc::clone(&state.now), state.invalid.clone());
        Looked { now, reads: state.reads, invalid }
    }

    /// The same settings that a start would read, as far as this process can apply them.
    fn read(
        &self,
        now: &OwnVersion,
        watched: &mut Watched,
    ) -> Result<(OwnVersion, Vec<String>), Failure> {
        let mut settings = host::settings_again(&self.places)?;
        watched.besides(besides(&settings, &self.places));
        let late =
            late::fit(&mut settings, &self.began, &now.settings, &self.places, walls::reach());
        let closed = host::own_directories(&self.places, Some(self.data.root()));
        let sandbox = now.host.sandbox.clone().with_closed_directories(closed);
        let assembly = Assembly::of(settings.clone(), &self.places, &self.out);
        let host = assembly.sharing(sandbox).host()?;
        for problem in host.tools.problems() {
            self.out.diagnostic(problem);
        }
        Ok((OwnVersion { settings, host }, late))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files behind a home's settings, and the directory of its tools: a tool installed or removed meanwhile
/// counts at once.
pub(crate) fn files(places: &Places) -> Vec<PathBuf> {
    let lock = places.libraries().join("lock.toml");
    vec![places.config(), places.workspace_config(), lock, places.tools()]
}

/// Further watched files: those with values of secrets, and the directories of installed tools, whose files
/// are written one after another.
pub(crate) fn besides(settings: &Settings, places: &Places) -> impl Iterator<Item = PathBuf> {
    let tools = std::fs::read_dir(places.tools()).into_iter().flatten().flatten();
    secrets::files_named(settings, places).into_iter().chain(tools.map(|entry| entry.path()))
}

/// Says what waits for a restart, each once.
pub(crate) fn say_late(tenant: &str, before: &[String], late: &[String]) {
    for what in late.iter().filter(|what| !before.contains(what)) {
        tracing::warn!(tenant, "takes effect after a restart: {what}");
    }
}

/// A failure as one text, as reported for a tenant at the start.
fn said(failure: &Failure) -> String {
    match setup(failure) {
        OpenError::OutOfReach(why) | OpenError::Setup(why) => why,
    }
}

/// Makes the versions of the operator's own tenant.
pub(crate) struct OwnRenewal {
    own: Arc<Own>,
    /// Which read the version in force is of.
    seen: Mutex<u64>,
}

impl OwnRenewal {
    pub(crate) fn new(own: Arc<Own>, seen: u64) -> Self {
        Self { own, seen: Mutex::new(seen) }
    }

    fn found(&self, looked: Looked) -> Renewed {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == looked.reads {
            return Renewed::Same;
        }
        *seen = looked.reads;
        match looked.invalid {
            Some(why) => Renewed::Invalid(why),
            None => Renewed::New(Box::new(looked.version())),
        }
    }
}

impl Looked {
    /// The number of the read.
    pub(crate) fn reads(&self) -> u64 {
        self.reads
    }

    fn version(&self) -> Version {
        let OwnVersion { settings, host } = &*self.now;
        Version { host: host.clone(), limits: limits(&settings.server) }
    }
}

#[async_trait]
impl Renew for OwnRenewal {
    async fn renew(&self, look: Look) -> Renewed {
        let own = Arc::clone(&self.own);
        #[expect(
            clippy::disallowed_methods,
            reason = "settings that the operator wrote, behind one lock; tools that are read meanwhile \
                      need places of the operator's"
        )]
        let looked = tokio::task::spawn_blocking(move || own.look(look)).await;
        match looked {
            Ok(looked) => self.found(looked),
            Err(error) => Renewed::Invalid(format!("they could not be read: {error}")),
        }
    }
}
