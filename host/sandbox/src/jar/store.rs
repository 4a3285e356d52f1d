//! Opens a store, and runs jobs in it.

use std::char::DecodeUtf16Error;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::str::Utf8Error;
use std::time::{Duration, Instant};

use belljar_policy::{Budget, BudgetLevel, ExhaustedLimit, Meter, ShownText};
use futures::FutureExt;
use tokio_util::sync::CancellationToken;
use wasmtime::component::{Component, Instance};
use wasmtime::{Store, Trap};

use crate::component::bindings::exports::belljar::tool::tools::{
    Call, Definition, Output, ToolError,
};
use crate::component::bindings::hook::exports::belljar::hook::hooks::Verdict;
use crate::component::contract::ToolFunctions;
use crate::component::engine::PoolPermit;
use crate::component::load::StoreOpening;
use crate::imports::link::{BoundComponent, ComponentExports, NotGranted};
use crate::jar::command;
use crate::jar::limits::{MAX_HANDLES, MAX_HOSTCALL};
use crate::jar::meter::{CallBounds, CallBudgets, CallStop, CallTally, INTERVAL, MeteredCall};
use crate::jar::state::{Guest, GuestExit};

/// The open store of a component. Fields drop in order: the store before its reservation in the pool.
pub(crate) struct OpenStore {
    store: Store<Guest>,
    instance: Option<Instance>,
    /// The instance's functions, found and type-checked at the first call.
    tool: Option<ToolFunctions>,
    permit: Option<PoolPermit>,
}

/// A job for a store.
pub(crate) enum StoreJob {
    /// Instantiates the component, and nothing else.
    Open,
    /// Calls `describe` of the tool contract.
    Describe,
    /// Calls `invoke` of the tool contract.
    Invoke(Call),
    /// Calls `check` of the hook contract with this event, a JSON object as text.
    Judge(String),
}

/// The result of a job.
pub(crate) enum JobResult {
    /// The component is instantiated.
    Opened,
    /// The descriptions of the tools.
    Described(Vec<Definition>),
    /// The answer of a tool's call.
    Invoked(Result<Output, ToolError>),
    /// The verdict of a hook, or its reason why it cannot judge.
    Judged(Result<Verdict, String>),
}

/// Why a job has no result. The caller must then drop the store.
#[derive(Debug)]
pub(crate) enum RunFault {
    /// The guest trapped: the trap's name, and all details for the receipt.
    Trapped { name: String, detail: String },
    /// A budget is used up.
    Exhausted(ExhaustedLimit),
    /// The deadline has passed.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
    /// Host code panicked.
    Panicked,
}

/// The end of a job, with its costs.
pub(crate) struct JobReport {
    pub(crate) end: Result<JobResult, RunFault>,
    pub(crate) fuel: u64,
    pub(crate) guest_time: Duration,
    /// The time of instantiation; zero if the store was open already.
    pub(crate) opening: Duration,
    pub(crate) peak_memory: u64,
}

/// The limits of a job, with the budgets that pay for it.
pub(crate) struct JobBudget<'a> {
    /// The budget that pays for fuel; a call's own limit is part of it.
    pub(crate) budget: &'a Budget,
    /// The remaining fuel of the outer call, if the job is nested; it is billed too.
    pub(crate) slice: Option<&'a Budget>,
    /// The most wall time.
    pub(crate) time: Duration,
    /// Ends the job early.
    pub(crate) cancel: &'a CancellationToken,
}

impl OpenStore {
    /// Makes a store with all limits set. No guest code runs here.
    pub(crate) fn new(opening: StoreOpening<'_>, guest: Guest, output_bytes: u64) -> Self {
        let mut store = Store::new(opening.bound.pre.engine(), guest);
        store.limiter(|guest| &mut guest.memory);
        // An answer of the allowed size has to pass; doubled, because names and lists count too.
        let answer = usize::try_from(output_bytes.saturating_mul(2)).unwrap_or(usize::MAX);
        store.set_hostcall_fuel(MAX_HOSTCALL.max(answer));
        store.set_max_component_handles(MAX_HANDLES);
        Self { store, instance: None, tool: None, permit: opening.permit }
    }

    /// The host's data of the store.
    pub(crate) fn guest_mut(&mut self) -> &mut Guest {
        self.store.data_mut()
    }

    /// Whether the store is in the pool.
    pub(crate) fn is_pooled(&self) -> bool {
        self.permit.is_some()
    }

    /// Runs a job until it ends or a limit is reached, and bills its fuel. If the report holds a fault, drop
    /// the store.
    pub(crate) async fn run_job(
        &mut self,
        bound: &BoundComponent,
        job: StoreJob,
        allowance: &JobBudget<'_>,
    ) -> JobReport {
        let guest = self.guest_mut();
        let (record, standstill) = (guest.record.clone(), guest.standstill.clone());
        guest.nested_fuel = 0;
        standstill.reset_clock();
        let purse = CallBudgets { budget: allowance.budget, slice: allowance.slice };
        let begun = Instant::now();
        let cap = purse.remaining_fuel();
        let mut tally = CallTally::default();
        let mut opened = None;
        let end = if cap == 0 {
            Err(RunFault::Exhausted(used_up(purse, cap)))
        } else if let Err(error) = self.reset_fuel(cap) {
            Err(fault_from_error(&error))
        } else {
            let bounds = CallBounds {
                purse,
                record: &record,
                deadline: begun + allowance.time,
                standstill: &standstill,
                cancel: allowance.cancel,
            };
            let work = pin!(self.execute_job(bound, job, &mut opened));
            let metered = MeteredCall::new(work, bounds, &mut tally);
            match AssertUnwindSafe(metered).catch_unwind().await {
                Ok(Ok(Ok(done))) => Ok(done),
                Ok(Ok(Err(error))) => Err(fault_from_error(&error)),
                Ok(Err(stop)) => Err(stop.into()),
                Err(_) => Err(RunFault::Panicked),
            }
        };
        let used = cap.saturating_sub(self.store.get_fuel().unwrap_or(0));
        // INV-231: nested calls were billed when they ran.
        let used = used.saturating_sub(self.guest_mut().nested_fuel);
        let used = match &end {
            Ok(_) => used,
            Err(RunFault::Exhausted(_)) if cap == 0 => 0,
            // The guest's fuel since the last yield is unknown, so a whole interval is billed.
            Err(RunFault::Trapped { .. } | RunFault::Panicked) => {
                used.max(tally.guest_fuel).saturating_add(INTERVAL).min(cap)
            }
            Err(RunFault::Exhausted(_) | RunFault::TimedOut | RunFault::Cancelled) => {
                used.max(tally.guest_fuel.min(cap))
            }
        };
        tally.settle_fuel(used, purse, &record);
        JobReport {
            end: end.map_err(|fault| self.explain_fault(fault, purse, cap)),
            fuel: tally.total_fuel(),
            guest_time: tally.guest_time,
            opening: opened.map_or(Duration::ZERO, |at: Instant| at.duration_since(begun)),
            peak_memory: self.guest_mut().memory.take_peak(),
        }
    }

    /// Instantiates the component if needed, and calls the job's function. Stores the time of instantiation
    /// in `opened`.
    async fn execute_job(
        &mut self,
        bound: &BoundComponent,
        job: StoreJob,
        opened: &mut Option<Instant>,
    ) -> wasmtime::Result<JobResult> {
        let Self { store, instance, tool, .. } = self;
        if let (ComponentExports::Command(_), StoreJob::Invoke(call)) = (&bound.exports, &job)
            && let Err(why) = command::start_command(store.data_mut(), call)
        {
            return Ok(JobResult::Invoked(Err(ToolError::InvalidArguments(why))));
        }
        let instance = match instance {
            Some(instance) => instance,
            None => {
                share_image(bound.pre.component()).await?;
                let made = bound.pre.instantiate_async(&mut *store).await?;
                *opened = Some(Instant::now());
                instance.insert(made)
            }
        };
        match job {
            StoreJob::Open => Ok(JobResult::Opened),
            StoreJob::Describe => {
                let tool = tool_functions(tool, bound, store, instance)?;
                tool.call_describe(&mut *store).await.map(JobResult::Described)
            }
            StoreJob::Invoke(call) => match &bound.exports {
                ComponentExports::Tool(_) | ComponentExports::Hook(_) => {
                    let tool = tool_functions(tool, bound, store, instance)?;
                    tool.call_invoke(&mut *store, call).await.map(JobResult::Invoked)
                }
                ComponentExports::Command(indices) => {
                    command::run_command(indices, store, instance).await.map(JobResult::Invoked)
                }
                ComponentExports::Functions(functions) => {
                    functions.call_function(store, instance, &call).await.map(JobResult::Invoked)
                }
            },
            StoreJob::Judge(event) => {
                let ComponentExports::Hook(exports) = &bound.exports else {
                    wasmtime::bail!("it is no hook");
                };
                let hook = exports.load(&mut *store, instance)?;
                let hooks = hook.belljar_hook_hooks();
                hooks.call_check(&mut *store, &event).await.map(JobResult::Judged)
            }
        }
    }

    fn reset_fuel(&mut self, cap: u64) -> wasmtime::Result<()> {
        self.store.set_fuel(cap)?;
        self.store.fuel_async_yield_interval(Some(INTERVAL))
    }

    /// Replaces a trap by the limit that caused it, if any: used-up fuel, or memory refused.
    fn explain_fault(&mut self, fault: RunFault, purse: CallBudgets<'_>, cap: u64) -> RunFault {
        let refused = self.guest_mut().memory.take_refused();
        match (fault, refused) {
            (RunFault::Trapped { name, .. }, _) if name == OUT_OF_FUEL => {
                RunFault::Exhausted(used_up(purse, cap))
            }
            (RunFault::Trapped { .. }, Some(refused)) => RunFault::Exhausted(refused),
            (fault, _) => fault,
        }
    }
}

/// Makes the initial memory image all stores of a component share. The kernel cannot seal the image while
/// one of its pages is in use, for example being moved; then it is made again.
async fn share_image(component: &Component) -> wasmtime::Result<()> {
    for _ in 1..IMAGE_TRIES {
        if component.initialize_copy_on_write_image().is_ok() {
            return Ok(());
        }
        tokio::task::yield_now().await;
    }
    component.initialize_copy_on_write_image()
}

/// The instance's functions, found at the first call and then reused.
fn tool_functions<'a>(
    tool: &'a mut Option<ToolFunctions>,
    bound: &BoundComponent,
    store: &mut Store<Guest>,
    instance: &Instance,
) -> wasmtime::Result<&'a ToolFunctions> {
    if tool.is_none() {
        let ComponentExports::Tool(exports) = &bound.exports else {
            wasmtime::bail!("it is no tool");
        };
        *tool = Some(exports.load_functions(&mut *store, instance)?);
    }
    tool.as_ref().ok_or_else(|| wasmtime::Error::msg("the tool is gone"))
}

/// How often making the shared memory image is tried. Each try waits up to a seventh of a second for the
/// kernel (`memfd_wait_for_pins` of Linux).
const IMAGE_TRIES: u32 = 8;

const OUT_OF_FUEL: &str = "out of fuel";

/// Advice for the author of a tool whose text is not valid Unicode.
const MEND: &str = "the tool has to put U+FFFD there before a text leaves it";

/// The fault for an error of wasmtime: a short name for the model, and all details for the receipt.
fn fault_from_error(error: &wasmtime::Error) -> RunFault {
    let name = if let Some(trap) = error.downcast_ref::<Trap>() {
        match trap {
            Trap::OutOfFuel => OUT_OF_FUEL.to_owned(),
            trap => trap.to_string(),
        }
    } else if let Some(exited) = error.downcast_ref::<GuestExit>() {
        exited.to_string()
    } else if let Some(refused) = error.downcast_ref::<NotGranted>() {
        refused.to_string()
    } else if let Some(broken) = error.downcast_ref::<Utf8Error>() {
        format!(
            "it gave a text that is not valid UTF-8 from byte {} on; {MEND}",
            broken.valid_up_to()
        )
    } else if error.downcast_ref::<DecodeUtf16Error>().is_some() {
        format!("it gave a text in UTF-16 that has half a surrogate pair; {MEND}")
    } else {
        // A limit of the host for which the interface has no error, for example handles, or bytes of a call.
        "the host refused a call".to_owned()
    };
    let detail = ShownText::clip_line(&format!("{error:#}"), 500).to_string();
    RunFault::Trapped { name, detail }
}

/// The budget to name for used-up fuel: the first exhausted one, or else the call's own limit `cap`.
fn used_up(purse: CallBudgets<'_>, cap: u64) -> ExhaustedLimit {
    let call = ExhaustedLimit { meter: Meter::Fuel, level: BudgetLevel::Call, limit: cap };
    purse.exhausted_budget().unwrap_or(call)
}

impl From<CallStop> for RunFault {
    fn from(stop: CallStop) -> Self {
        match stop {
            CallStop::Exhausted(which) => Self::Exhausted(which),
            CallStop::TimedOut => Self::TimedOut,
            CallStop::Cancelled => Self::Cancelled,
        }
    }
}
