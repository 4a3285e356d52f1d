//! A jar: all stores of a subagent, with its rights, budget and secrets.

pub(crate) mod answer;
pub(crate) mod builder;
pub(crate) mod command;
pub(crate) mod course;
mod failure;
pub(crate) mod hook;
pub(crate) mod lasting;
pub(crate) mod limits;
pub(crate) mod meter;
pub(crate) mod mounts;
mod noted;
mod numbers;
pub(crate) mod operations;
pub(crate) mod output;
pub(crate) mod peers;
pub(crate) mod progress;
pub(crate) mod queue;
mod reach;
pub(crate) mod standstill;
pub(crate) mod state;
pub(crate) mod store;
mod way;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use belljar_overlay::Digest;
use belljar_overlay::Overlay;
use belljar_policy::{
    Budget, BudgetCaps, BudgetLevel, DenyCode, GuestPath, Limits, Mount, PolicyDenial, Rights,
    ToolAsk, ToolName, ToolPermit, ToolRights,
};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::component::bindings::exports::belljar::tool::tools::Call;
use crate::component::kind::ComponentKind;
use crate::component::load::LoadedComponent;
use crate::error::JarError;
use crate::imports::files::{FilesCtx, OpenMount};
use crate::imports::http::{ConnectionLimit, HttpCtx, JarSecrets, SecretStore, SecretWatch};
use crate::imports::link::{BoundComponent, GrantedImports};
use crate::jar::answer::{accept_output, is_object, output_digest, tool_error};
use crate::jar::course::CallCourse;
use crate::jar::failure::CallFailure;
use crate::jar::limits::MemoryLimiter;
use crate::jar::mounts::HeldMount;
use crate::jar::noted::{to_micros, write_receipt};
use crate::jar::operations::JarOperations;
use crate::jar::output::{CallError, CallResult, ToolErrorKind, ToolOutput};
use crate::jar::peers::{NestedScope, PeerPort, PeerReach};
use crate::jar::progress::ProgressSink;
use crate::jar::queue::CallQueue;
use crate::jar::reach::waits_for_itself;
use crate::jar::state::{Guest, GuestSettings};
use crate::jar::store::{JobBudget, JobResult, OpenStore, RunFault, StoreJob};
use crate::receipt::record::CallRecord;
use crate::receipt::withheld;
use crate::receipt::{CallEnding, Receipt};
use crate::sandbox::Sandbox;
use crate::{ToolHints, Wasm};

/// How long [`Jar::close`] waits for running operations before it returns their names.
const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// The parts that a jar is made from.
#[derive(Debug)]
pub struct JarSpec {
    /// The subagent's rights.
    pub rights: Rights,
    /// The subagent's budget. Each call gets a child budget of it.
    pub budget: Budget,
    /// The components of the tools that the subagent may call. A component's store opens with its first call.
    pub tools: Vec<JarTool>,
    /// The values of secrets; the rights decide which of them are used. Replies to tools, and texts of tools,
    /// are searched for the secrets of the rights and of the run ([`SecretStore::for_run`]).
    pub secrets: SecretStore,
    /// The overlays of mounts, by guest path. A mount with an overlay is read and written only through it,
    /// whatever the mount's access is; a mount with [`belljar_policy::MountAccess::Overlay`] must have one.
    pub overlays: BTreeMap<GuestPath, Overlay>,
    /// Ends all calls of the jar permanently.
    pub cancel: CancellationToken,
}

/// A component in a jar, with its tools.
#[derive(Debug, Clone)]
pub struct JarTool {
    /// The tools of the component that can be called, with their hints.
    pub tools: BTreeMap<ToolName, ToolHints>,
    /// The component.
    pub wasm: Wasm,
    /// The rights that the manifest asks for.
    pub ask: ToolAsk,
    /// The settings the component reads through `wasi:config`, by name.
    pub config: Arc<BTreeMap<String, String>>,
}

/// All stores of one subagent, dropped together.
///
/// Invariant: a store is in its slot only between calls, and only while sound. A call takes the store out of
/// the slot, and puts it back after a successful end. After a dropped call, a trap or an exceeded limit the
/// slot stays empty, and the next call opens a fresh store.
pub struct Jar {
    sandbox: Sandbox,
    rights: Rights,
    budget: Budget,
    secrets: SecretStore,
    /// The secrets no output of a tool may contain.
    watch: SecretWatch,
    /// The limit of connections, which all stores of the jar share.
    connections: ConnectionLimit,
    cancel: CancellationToken,
    /// The open directories of the mounts. All tools of the jar use these, whatever happens to the paths on
    /// disk.
    held: Vec<Arc<HeldMount>>,
    slots: Vec<JarSlot>,
    names: HashMap<ToolName, (usize, ToolHints)>,
    queue: CallQueue,
    operations: Arc<JarOperations>,
}

/// One component of the jar, with its store.
struct JarSlot {
    tool: JarTool,
    loaded: OnceCell<Arc<LoadedComponent>>,
    /// The rights and resources of the component's stores, once the first store opened.
    given: OnceLock<SlotResources>,
    /// The open store, if any.
    store: Mutex<Option<Box<OpenStore>>>,
    /// Whether a store of this slot was discarded, and with it the state of earlier calls.
    lost: AtomicBool,
}

/// The rights and resources for the stores of a slot, fixed when the first store opens.
struct SlotResources {
    rights: ToolRights,
    budget: Budget,
    settings: GuestSettings,
    secrets: JarSecrets,
    mounts: Vec<OpenMount>,
}

/// Options of a call, beside its arguments. The default sets none.
#[derive(Default)]
pub struct CallOptions<'a> {
    /// Receives the guest's progress reports.
    pub progress: Option<ProgressSink>,
    /// Makes the calls of other tools the guest asks for; without it such calls are refused.
    pub peers: Option<Arc<dyn PeerPort>>,
    /// The outer call, if this call is nested in one.
    pub within: Option<&'a NestedScope>,
    /// The simulated times and random numbers of a repeatable call; `None`: real ones.
    pub course: Option<CallCourse>,
    /// Whether the call gets a store of its own, without the state of earlier calls, which is dropped
    /// afterwards.
    pub fresh: bool,
}

/// A job for a slot, with its options.
struct SlotWork<'a> {
    job: StoreJob,
    /// Whether the job may overlap with other jobs that may.
    shared: bool,
    with: CallOptions<'a>,
    /// When the job was requested.
    asked: Instant,
    /// The time limit the call's arguments name.
    time: Option<Duration>,
}

impl Jar {
    /// Makes a jar: checks that no two tools have the same name, and opens the mounts. Components are loaded
    /// later, at their first call.
    pub(crate) fn new(sandbox: Sandbox, spec: JarSpec) -> Result<Self, JarError> {
        let JarSpec { rights, budget, tools, secrets, overlays, cancel } = spec;
        let mut names = HashMap::new();
        let mut slots = Vec::with_capacity(tools.len());
        for (slot, tool) in tools.into_iter().enumerate() {
            for (name, hints) in &tool.tools {
                if names.insert(name.clone(), (slot, *hints)).is_some() {
                    return Err(JarError::DuplicateTool(name.clone()));
                }
            }
            slots.push(JarSlot {
                tool,
                loaded: OnceCell::new(),
                given: OnceLock::new(),
                lost: AtomicBool::new(false),
                store: Mutex::new(None),
            });
        }
        let held = sandbox.shared.mounts.open_all(
            rights.mounts(),
            &overlays,
            &sandbox.work_directories,
            &sandbox.closed_directories,
            &sandbox.written_directories,
        )?;
        let secrets = secrets.with_watched(rights.secrets());
        let watch = secrets.secret_watch();
        let cancel = cancel.child_token();
        let (queue, operations) = (CallQueue::default(), Arc::default());
        let connections = ConnectionLimit::from_limits(rights.limits());
        Ok(Self {
            sandbox,
            rights,
            budget,
            secrets,
            watch,
            connections,
            cancel,
            held,
            slots,
            names,
            queue,
            operations,
        })
    }

    /// Calls a tool. Waits for earlier calls of the same component; calls start in the order in which their
    /// futures were first polled. Overlaps with calls of other components only if both tools are hinted
    /// read-only.
    ///
    /// `arguments` must be a JSON object as text. The permit must come from the jar's rights; a permit that
    /// still needs a person's answer is refused ([`ToolPermit::consented`]).
    ///
    /// Dropping the future ends the call at once and discards the store.
    pub async fn call_permitted(&self, permit: ToolPermit, arguments: &str) -> CallResult {
        self.call_with_progress(permit, arguments, None).await
    }

    /// Calls a tool by name with the jar's own rights, for a program without agents. Otherwise like
    /// [`Jar::call_permitted`].
    ///
    /// # Errors
    ///
    /// The jar has no such tool, or no right to call it.
    pub async fn call_tool(&self, tool: &str, arguments: &str) -> Result<CallResult, PolicyDenial> {
        let permit = self.rights.tool(tool)?;
        Ok(self.call_permitted(permit, arguments).await)
    }

    /// Calls a tool like [`Jar::call_permitted`], and passes on the guest's progress reports.
    pub async fn call_with_progress(
        &self,
        permit: ToolPermit,
        arguments: &str,
        progress: Option<ProgressSink>,
    ) -> CallResult {
        self.call_with(permit, arguments, CallOptions { progress, ..CallOptions::default() }).await
    }

    /// Calls a tool like [`Jar::call_permitted`], with further options.
    ///
    /// A nested call (with `within` set) queues with the other nested calls of its outer call instead of in
    /// the jar, is also billed to the outer call, and ends with it. Whatever the permit, the jar refuses a
    /// tool the outer call's manifest does not request, and a call that would wait for itself.
    pub async fn call_with(
        &self,
        permit: ToolPermit,
        arguments: &str,
        with: CallOptions<'_>,
    ) -> CallResult {
        let asked = Instant::now();
        let name = permit.tool();
        let mut receipt = Receipt::for_call(name.as_str(), "", arguments);
        let outcome = if permit.needs_answer() {
            Err(CallFailure::Refused(DenyCode::NobodyToAsk).record_failure(0, &mut receipt))
        } else {
            let progress = with.progress.map(|sink| withheld::filter_progress(&self.watch, sink));
            let with = CallOptions { progress, ..with };
            self.answer_call(name, arguments, with, asked, &mut receipt).await
        };
        let outcome = withheld::filter_outcome(&self.watch, outcome, &mut receipt);
        receipt.times.total = to_micros(asked.elapsed());
        if let Ok(output) = &outcome {
            receipt.bytes.output = output.size();
            receipt.output_digest = Digest::from_bytes(output_digest(output)).to_string();
        }
        CallResult { outcome, receipt }
    }

    /// Opens the store of a tool ahead of its first call.
    pub async fn preopen_store(&self, tool: &str) -> Result<(), CallError> {
        let Some((slot, _)) = self.names.get(tool) else {
            return Err(CallError::Refused(DenyCode::ToolNotAllowed));
        };
        let mut receipt = Receipt::for_call(tool, "", "");
        let with = CallOptions::default();
        let asked = Instant::now();
        let work = SlotWork { job: StoreJob::Open, shared: false, with, asked, time: None };
        let ran = self.run_work(*slot, work, &mut receipt).await;
        ran.map(|_| ()).map_err(|failure| {
            failure.record_failure(self.timeout_seconds(*slot, None), &mut receipt)
        })
    }

    /// Ends running calls, waits for their operations, and drops the stores; afterwards no code of the jar
    /// has any effect. Returns the names of operations that still run after ten seconds, for example of a
    /// host with a stuck disk; normally none.
    pub async fn close(&self) -> Vec<String> {
        self.cancel.cancel();
        let ended = async {
            self.queue.wait_idle().await;
            for slot in &self.slots {
                drop(slot.remove_store());
            }
            self.operations.wait_ended().await;
        };
        match tokio::time::timeout(CLOSE_WAIT, ended).await {
            Ok(()) => Vec::new(),
            Err(_) => self.operations.running_names(),
        }
    }

    /// Checks a call and its arguments, runs it, and checks the answer. Writes the ending into the receipt.
    async fn answer_call(
        &self,
        name: &ToolName,
        arguments: &str,
        with: CallOptions<'_>,
        asked: Instant,
        receipt: &mut Receipt,
    ) -> Result<ToolOutput, CallError> {
        let here = self.names.get(name).filter(|_| self.rights.tool(name.as_str()).is_ok());
        // INV-230: a nested call of a tool that the outer call's manifest does not request is refused, even
        // with a permit.
        let here = here.filter(|_| with.within.is_none_or(|it| it.may_call(name.as_str())));
        let Some((slot, hints)) = here else {
            return Err(CallFailure::Refused(DenyCode::ToolNotAllowed).record_failure(0, receipt));
        };
        if with.within.is_some_and(|it| it.nest.slots.contains(slot)) {
            let message = waits_for_itself(name);
            receipt.ending = CallEnding::Refused(message.clone());
            return Err(CallError::Tool { kind: ToolErrorKind::Denied, message });
        }
        // INV-471: broken escapes in the arguments are replaced, because a strict parser of a tool would
        // refuse half a surrogate pair.
        let arguments = &*belljar_received::json::mend_text(arguments);
        let arguments = &*self.with_whole_numbers(*slot, name, arguments).await;
        if !is_object(arguments) {
            let message = "the arguments are not a JSON object".to_owned();
            receipt.ending = CallEnding::Refused(message.clone());
            return Err(CallError::Tool { kind: ToolErrorKind::InvalidArguments, message });
        }
        let call = Call { tool: name.as_str().to_owned(), arguments: arguments.to_owned() };
        let job = StoreJob::Invoke(call);
        // A tool that may call others runs alone, because its read-only hint does not cover the nested calls.
        let shared = hints.read_only && !self.may_call_others(name.as_str());
        let time = self.slots.get(*slot).and_then(|slot| slot.asked_time(arguments));
        match self.run_work(*slot, SlotWork { job, shared, with, asked, time }, receipt).await {
            Ok((JobResult::Invoked(Ok(output)), budget)) => match accept_output(output, &budget) {
                Ok(output) => {
                    receipt.ending = CallEnding::Completed;
                    Ok(self.mark_output(*slot, output))
                }
                Err(error) => {
                    receipt.ending = match &error {
                        CallError::Exhausted(which) => CallEnding::Exhausted(which.to_string()),
                        error => CallEnding::BadOutput(error.to_string()),
                    };
                    Err(error)
                }
            },
            Ok((JobResult::Invoked(Err(error)), _)) => {
                let mut error = tool_error(error);
                if let CallError::Tool { kind, message } = &mut error {
                    receipt.ending = CallEnding::ToolError(kind.as_str().to_owned());
                    self.mark_error(*slot, message);
                }
                Err(error)
            }
            Ok((JobResult::Opened | JobResult::Described(_) | JobResult::Judged(_), _)) => {
                Err(CallError::HostFault)
            }
            Err(failure) => Err(failure.record_failure(self.timeout_seconds(*slot, time), receipt)),
        }
    }

    /// Runs a job in a slot: waits for the slot's turn, opens the store if there is none, runs the job, and
    /// puts a sound store back.
    async fn run_work(
        &self,
        at: usize,
        work: SlotWork<'_>,
        receipt: &mut Receipt,
    ) -> Result<(JobResult, Budget), CallFailure> {
        let SlotWork { job, shared, with, asked, time } = work;
        let CallOptions { progress, peers, within, course, fresh } = with;
        let cancelled = || CallFailure::Fault(RunFault::Cancelled);
        // INV-232: a nested call ends with its outer call.
        let cancel = within.map_or(&self.cancel, |within| &within.nest.stop);
        if cancel.is_cancelled() || self.budget.is_cancelled() {
            return Err(cancelled());
        }
        let queue = within.map_or(&self.queue, |within| &within.nest.queue);
        let turn = tokio::select! {
            biased;
            turn = queue.enter_lane(at, shared) => turn,
            () = self.wait_cancelled(cancel) => return Err(cancelled()),
        };
        let _turn = turn.map_err(|_| CallFailure::Refused(DenyCode::LimitReached))?;
        let begun = Instant::now();
        receipt.times.queued = to_micros(begun - asked);
        let Some(slot) = self.slots.get(at) else { return Err(cancelled()) };
        receipt.component = slot.tool.wasm.digest().to_string();
        if fresh {
            // INV-350: the slot's turn has come, so no other call uses the old store.
            drop(slot.remove_store());
        }
        let given = self.slot_resources(slot);
        let opening = async {
            let loaded = slot
                .loaded
                .get_or_try_init(|| self.sandbox.shared.loader.load_tool(&slot.tool.wasm))
                .await
                .map_err(CallFailure::NotLoaded)?;
            self.open_store(slot, given, loaded).await
        };
        let (mut store, bound) = tokio::select! {
            biased;
            opened = opening => opened?,
            () = self.wait_cancelled(cancel) => return Err(cancelled()),
        };
        let loading = begun.elapsed();
        let limits = given.rights.limits();
        let budget = given.budget.new_child(BudgetLevel::Call, BudgetCaps::for_call(limits));
        let reach = self.peer_reach(at, given, within, peers);
        let nest = match &reach {
            PeerReach::Open(_, nest) => Some(Arc::clone(nest)),
            PeerReach::Nobody | PeerReach::TooDeep(_) => None,
        };
        // If this future is dropped, the guard ends the nested calls too.
        let _ends = nest.as_ref().map(|nest| nest.stop.clone().drop_guard());
        store.guest_mut().progress = progress;
        store.guest_mut().following.begin_call(course);
        store.guest_mut().peers = reach;
        let most = Duration::from_secs(limits.call_timeout_seconds);
        let allowance = JobBudget {
            budget: &budget,
            slice: within.map(|within| &within.slice),
            time: time.map_or(most, |time| time.min(most)),
            cancel,
        };
        let ran = store.run_job(bound, job, &allowance).await;
        store.guest_mut().progress = None;
        store.guest_mut().peers = PeerReach::Nobody;
        if let Some(nest) = nest {
            // Nested calls end with their outer call.
            nest.stop.cancel();
            nest.queue.wait_idle().await;
        }
        write_receipt(receipt, &mut store, &ran, loading, begun.elapsed());
        // INV-221: a command's store ends with its run; the next call opens a new one.
        if ran.end.is_ok() && bound.exports.component_kind() != ComponentKind::Command {
            // INV-350: the store of a fresh call is dropped.
            if !fresh {
                slot.insert_store(store);
            }
        } else {
            slot.lost.store(true, Ordering::Relaxed);
        }
        ran.end.map(|done| (done, budget)).map_err(CallFailure::Fault)
    }

    /// Waits until this token, or a budget of the jar, is cancelled.
    async fn wait_cancelled(&self, cancel: &CancellationToken) {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = self.budget.wait_cancelled() => {}
        }
    }

    /// Takes the slot's store, or opens a new one.
    async fn open_store<'a>(
        &self,
        slot: &JarSlot,
        given: &SlotResources,
        loaded: &'a LoadedComponent,
    ) -> Result<(Box<OpenStore>, &'a BoundComponent), CallFailure> {
        let limits = given.rights.limits();
        let granted = GrantedImports {
            network: !given.rights.hosts().is_none(),
            peers: !given.rights.peer_tools().is_empty(),
        };
        if let Some(store) = slot.remove_store() {
            let bound =
                loaded.find_bound(store.is_pooled(), granted).map_err(CallFailure::NotLoaded)?;
            return Ok((store, bound));
        }
        let loader = &self.sandbox.shared.loader;
        let opening = loader
            .prepare_opening(loaded, granted, limits.memory_bytes)
            .await
            .map_err(CallFailure::NotLoaded)?;
        let bound = opening.bound;
        let guest = self.new_guest(given, granted.network && loaded.imports_http());
        Ok((Box::new(OpenStore::new(opening, guest, limits.output_bytes)), bound))
    }

    /// The host's data for a new store: its files, network, memory limiter and record.
    fn new_guest(&self, given: &SlotResources, network: bool) -> Guest {
        let limits = given.rights.limits();
        let record = CallRecord::new(given.budget.clone(), limits.log_lines)
            .with_operations(Arc::clone(&self.operations));
        let record = Arc::new(record);
        let files = FilesCtx::new(&given.mounts, limits, Arc::clone(&record));
        let http = network.then(|| {
            let (scope, options) = (given.rights.hosts().clone(), self.sandbox.shared.http.clone());
            let secrets = given.secrets.clone();
            HttpCtx::new(scope, secrets, limits, &self.connections, Arc::clone(&record), options)
        });
        let memory = MemoryLimiter::new(given.budget.clone());
        let settings = given.settings.clone();
        Guest::new(files, http, settings, memory, record, limits.stdio_bytes)
    }

    /// The rights and resources for the slot's stores: the jar's rights, narrowed to the requests of the
    /// tool's manifest.
    fn slot_resources<'a>(&self, slot: &'a JarSlot) -> &'a SlotResources {
        slot.given.get_or_init(|| {
            let rights = self.rights.for_tool(&slot.tool.ask);
            let secrets = self.secrets.allowed_secrets(rights.secrets());
            let settings = GuestSettings {
                values: Arc::clone(&slot.tool.config),
                secrets: Arc::new(secrets.names().cloned().collect()),
                form: slot.tool.wasm.command_form(),
                output_bytes: rights.limits().output_bytes,
            };
            let budget = self.budget_of(rights.limits());
            let mounts =
                rights.mounts().iter().filter_map(|mount| self.find_mount(mount)).collect();
            SlotResources { rights, budget, settings, secrets, mounts }
        })
    }

    /// The jar's open directory for a mount, with at most the access of that mount.
    fn find_mount(&self, mount: &Mount) -> Option<OpenMount> {
        let held = self.held.iter().find(|held| *held.mount.guest_path() == mount.guest)?;
        Some(held.mount.at_most(mount.access))
    }

    /// The budget for a tool with these limits: the subagent's own, or a child of it if the manifest narrows
    /// the limits.
    fn budget_of(&self, limits: &Limits) -> Budget {
        let caps = BudgetCaps::for_agent(limits);
        if caps == BudgetCaps::for_agent(self.rights.limits()) {
            return self.budget.clone();
        }
        self.budget.new_child(BudgetLevel::Subagent, caps)
    }

    /// The time limit of a call in seconds, for its error text: the least of the tool's and the arguments'
    /// limit.
    fn timeout_seconds(&self, slot: usize, asked: Option<Duration>) -> u64 {
        let given = self.slots.get(slot).and_then(|slot| slot.given.get());
        let most = given.map_or(0, |given| given.rights.limits().call_timeout_seconds);
        asked.map_or(most, |asked| most.min(asked.as_secs_f64().ceil() as u64))
    }
}

impl JarSlot {
    fn remove_store(&self) -> Option<Box<OpenStore>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn insert_store(&self, store: Box<OpenStore>) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
    }
}

impl std::fmt::Debug for Jar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jar").field("tools", &self.names.keys()).finish_non_exhaustive()
    }
}
