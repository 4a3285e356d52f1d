//! The host's data of a store, and the small interfaces of a guest: log, progress, settings, random numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use belljar_policy::{HostScope, Limits, SecretName, WORKSPACE};
use wasmtime::component::{HasData, ResourceTable};
use wasmtime_wasi::p2::bindings::{cli::exit, random};
use wasmtime_wasi::{Rng, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::component::bindings::belljar::tool::{log, progress};
use crate::component::bindings::config::wasi::config::store as config;
use crate::component::command_form::{CommandForm, CommandLine};
use crate::imports::clocks::{StoreMonotonicClock, StoreWallClock};
use crate::imports::files::{FilesCtx, FilesView, HasFiles};
use crate::imports::http::{ConnectionLimit, HasHttp, HttpCtx, HttpOptions, HttpView, JarSecrets};
use crate::imports::stdio::{CommandStdin, StdioCapture};
use crate::jar::course::CourseFollower;
use crate::jar::limits::{MAX_RANDOM, MAX_RESOURCES, MemoryLimiter};
use crate::jar::peers::PeerReach;
use crate::jar::progress::{ProgressReport, ProgressSink};
use crate::jar::standstill::CallClock;
use crate::receipt::record::{CallRecord, clip_text};

/// The host's data of a store, which every interface of the guest works on.
pub(crate) struct Guest {
    pub(crate) table: ResourceTable,
    pub(crate) wasi: WasiCtx,
    pub(crate) files: FilesCtx,
    /// The network; `None` until the guest builds a request, if the host did not expect that.
    pub(crate) http: Option<HttpCtx>,
    pub(crate) rng: Box<dyn Rng + Send>,
    /// The simulated clock and random numbers of the running call, if it is repeatable.
    pub(crate) following: Arc<CourseFollower>,
    pub(crate) settings: GuestSettings,
    pub(crate) memory: MemoryLimiter,
    pub(crate) record: Arc<CallRecord>,
    pub(crate) stdout: StdioCapture,
    pub(crate) stderr: StdioCapture,
    pub(crate) progress: Option<ProgressSink>,
    /// The other tools that the running call may call.
    pub(crate) peers: PeerReach,
    /// The clock of the running call.
    pub(crate) standstill: Arc<CallClock>,
    /// The fuel that nested calls of the running call used.
    pub(crate) nested_fuel: u64,
}

/// The settings a guest reads through `wasi:config`. Of secrets, it reads only whether they are granted.
#[derive(Clone, Default)]
pub(crate) struct GuestSettings {
    pub(crate) values: Arc<BTreeMap<String, String>>,
    pub(crate) secrets: Arc<BTreeSet<SecretName>>,
    /// How the arguments of a call become a command line, if the component is a command.
    pub(crate) form: Arc<CommandForm>,
    /// The most bytes of a call's answer.
    pub(crate) output_bytes: u64,
}

/// A marker type: interfaces that need the whole [`Guest`] are linked with it.
pub(crate) struct WholeGuest;

impl HasData for WholeGuest {
    type Data<'a> = &'a mut Guest;
}

impl Guest {
    /// Makes the data of a new store.
    pub(crate) fn new(
        files: FilesCtx,
        http: Option<HttpCtx>,
        settings: GuestSettings,
        memory: MemoryLimiter,
        record: Arc<CallRecord>,
        stdio_bytes: u64,
    ) -> Self {
        let stdout = StdioCapture::new(stdio_bytes, Arc::clone(&record));
        let stderr = StdioCapture::new(stdio_bytes, Arc::clone(&record));
        let following = Arc::<CourseFollower>::default();
        let mut wasi = wasi_context(&stdout, &stderr, &following);
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_RESOURCES);
        Self {
            table,
            wasi: wasi.build(),
            files,
            http,
            rng: wasmtime_wasi::thread_rng(),
            following,
            settings,
            memory,
            record,
            stdout,
            stderr,
            progress: None,
            peers: PeerReach::Nobody,
            standstill: Arc::default(),
            nested_fuel: 0,
        }
    }

    /// Sets the arguments, environment and stdin of a command, and captures its stdout as the answer. Call
    /// it in a fresh store, before the command runs.
    pub(crate) fn start_command(&mut self, line: CommandLine, output_bytes: u64) {
        let record = Arc::clone(&self.record);
        self.stdout = StdioCapture::new(output_bytes, Arc::clone(&record));
        let stdin = CommandStdin::new(line.stdin.into_bytes(), record);
        self.wasi = wasi_context(&self.stdout, &self.stderr, &self.following)
            .initial_cwd(&line.workspace)
            .stdin(stdin)
            .args(&line.words)
            .envs(&line.environment)
            .build();
        self.files.open_at(&line.workspace);
    }

    fn random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.record.host_call();
        if len > MAX_RANDOM {
            wasmtime::bail!("{len} random bytes asked at once, and at most {MAX_RANDOM} are given");
        }
        let mut bytes = vec![0; usize::try_from(len)?];
        self.fill_random(&mut bytes);
        Ok(bytes)
    }

    fn random_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_random(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_random(&mut self, bytes: &mut [u8]) {
        if !self.following.fill_random(bytes) {
            self.rng.fill_bytes(bytes);
        }
    }
}

/// The part of a store that wasmtime-wasi implements, with no argument, environment variable or socket.
fn wasi_context(
    stdout: &StdioCapture,
    stderr: &StdioCapture,
    following: &Arc<CourseFollower>,
) -> WasiCtxBuilder {
    let mut wasi = WasiCtx::builder();
    wasi.stdout(stdout.clone())
        .stderr(stderr.clone())
        .initial_cwd(WORKSPACE)
        .wall_clock(StoreWallClock(Arc::clone(following)))
        .monotonic_clock(StoreMonotonicClock(Instant::now(), Arc::clone(following)))
        .max_random_size(MAX_RANDOM)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false);
    wasi
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl HasFiles for Guest {
    fn files_view(&mut self) -> FilesView<'_> {
        FilesView { ctx: &mut self.files, table: &mut self.table }
    }
}

impl HasHttp for Guest {
    fn http_view(&mut self) -> HttpView<'_> {
        let nowhere = || {
            let (scope, secrets) = (HostScope::none(), JarSecrets::default());
            let (limits, record) = (Limits::default(), Arc::clone(&self.record));
            let jar = ConnectionLimit::from_limits(&limits);
            HttpCtx::new(scope, secrets, &limits, &jar, record, HttpOptions::default())
        };
        HttpView { ctx: self.http.get_or_insert_with(nowhere), table: &mut self.table }
    }
}

/// The error with which an exit of the guest ends its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GuestExit {
    /// The guest called `exit(ok)`.
    #[error("it exited in the middle of the call")]
    Success,
    /// The guest called `exit(err)`, which has no status: this is how every exit code of a program arrives,
    /// for example of `exit(3)`.
    #[error("it exited with a failure")]
    Failure,
    /// The guest called `exit-with-code` with the given status.
    #[error("it exited with status {0}")]
    Status(u8),
}

impl exit::Host for &mut Guest {
    fn exit(&mut self, status: Result<(), ()>) -> wasmtime::Result<()> {
        let exited = if status.is_ok() { GuestExit::Success } else { GuestExit::Failure };
        Err(wasmtime::Error::new(exited))
    }

    fn exit_with_code(&mut self, status_code: u8) -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(GuestExit::Status(status_code)))
    }
}

impl random::random::Host for &mut Guest {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.random_bytes(len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.random_u64())
    }
}

impl random::insecure::Host for &mut Guest {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.random_bytes(len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.random_u64())
    }
}

impl log::Host for &mut Guest {
    fn log(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        self.record.host_call();
        let level = match level {
            log::Level::Trace => "trace",
            log::Level::Debug => "debug",
            log::Level::Info => "info",
            log::Level::Warn => "warn",
            log::Level::Error => "error",
        };
        self.record.add_log_line(level, &message);
        Ok(())
    }
}

impl progress::Host for &mut Guest {
    fn report(&mut self, done: u64, total: Option<u64>, message: String) -> wasmtime::Result<()> {
        self.record.host_call();
        if self.record.count_progress()
            && let Some(sink) = &self.progress
        {
            sink(ProgressReport { done, total, message: clip_text(&message) });
        }
        Ok(())
    }
}

/// The value of the setting `secret.NAME`, in place of the secret itself: a guest may learn that a secret is
/// granted.
const SECRET_THERE: &str = "granted";
const SECRET_PREFIX: &str = "secret.";

impl GuestSettings {
    fn find_value(&self, key: &str) -> Option<String> {
        match key.strip_prefix(SECRET_PREFIX) {
            Some(name) => self.secrets.contains(name).then(|| SECRET_THERE.to_owned()),
            None => self.values.get(key).cloned(),
        }
    }

    fn list_values(&self) -> Vec<(String, String)> {
        let values = self.values.iter().map(|(key, value)| (key.clone(), value.clone()));
        let secret =
            |name: &SecretName| (format!("{SECRET_PREFIX}{name}"), SECRET_THERE.to_owned());
        values
            .filter(|(key, _)| !key.starts_with(SECRET_PREFIX))
            .chain(self.secrets.iter().map(secret))
            .collect()
    }
}

impl config::Host for &mut Guest {
    fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<String>, config::Error>> {
        self.record.host_call();
        Ok(Ok(self.settings.find_value(&key)))
    }

    fn get_all(&mut self) -> wasmtime::Result<Result<Vec<(String, String)>, config::Error>> {
        self.record.host_call();
        Ok(Ok(self.settings.list_values()))
    }
}
