//! One open store, and running a job in it.

use std::char::DecodeUtf16Error;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::str::Utf8Error;
use std::time::{Duration, Instant};

use belljar_policy::{Budget, Exhausted, Level, Meter, Shown};
use futures::FutureExt;
use tokio_util::sync::CancellationToken;
use wasmtime::component::{Component, Instance};
use wasmtime::{Store, Trap};

use crate::component::bindings::exports::belljar::tool::tools::{
    Call, Definition, Output, ToolError,
};
use crate::component::bindings::hook::exports::belljar::hook::hooks::Verdict;
use crate::component::contract::Tool;
use crate::component::engine::PoolPermit;
use crate::component::load::Opening;
use crate::imports::link::{Bound, Exports, NotGranted};
use crate::jar::command;
use crate::jar::limits::{MAX_HANDLES, MAX_HOSTCALL};
use crate::jar::meter::{Bounds, INTERVAL, MeteredCall, Purse, Stop, Tally};
use crate::jar::state::{Exited, Guest};

/// The store of one tool. Fields drop in order: the store before its reservation in the pool.
pub(crate) struct OpenStore {
    store: Store<Guest>,
    instance: Option<Instance>,
    /// The instance's functions, looked up and type-checked at the first call.
    tool: Option<Tool>,
    permit: Option<PoolPermit>,
}

/// A job for a store.
pub(crate) enum Job {
    /// Only instantiation.
    Open,
    /// The contract's `describe`.
    Describe,
    /// The contract's `invoke`.
    Invoke(Call),
    /// `check` of the hooks' contract.
    Judge(String),
}

/// The result of a job.
pub(crate) enum Done {
    /// The store is open.
    Opened,
    /// The descriptions of the tools.
    Described(Vec<Definition>),
    /// The answer.
    Invoked(Result<Output, ToolError>),
    /// The verdict.
    Judged(Result<Verdict, String>),
}

/// Why a job has no result. The store must then be dropped.
#[derive(Debug)]
pub(crate) enum RunFault {
    /// A trap: the name, and all details.
    Trapped { name: String, detail: String },
    /// A budget is used up.
    Exhausted(Exhausted),
    /// The time is up.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
    /// Host code panicked.
    Panicked,
}

/// The result of a job, with its time and fuel.
pub(crate) struct Ran {
    pub(crate) end: Result<Done, RunFault>,
    pub(crate) fuel: u64,
    pub(crate) guest_time: Duration,
    /// The time of instantiation; zero if the store was open already.
    pub(crate) opening: Duration,
    pub(crate) peak_memory: u64,
}

/// The limits of a job.
pub(crate) struct Allowance<'a> {
    /// The budget that pays for fuel, limited to a call's maximum.
    pub(crate) budget: &'a Budget,
    /// The remaining fuel of the outer call, which is billed too.
    pub(crate) slice: Option<&'a Budget>,
    /// The limit of wall time.
    pub(crate) time: Duration,
    /// Ends the job early.
    pub(crate) cancel: &'a CancellationToken,
}

impl OpenStore {
    /// Makes a store with all limits set. Guest code has not run yet.
    pub(crate) fn new(opening: Opening<'_>, guest: Guest, output_bytes: u64) -> Self {
        let mut store = Store::new(opening.bound.pre.engine(), guest);
        store.limiter(|guest| &mut guest.memory);
        // The limit leaves room for an answer of the allowed size; doubled, because names and lists
        // count too.
        let answer = usize::try_from(output_bytes.saturating_mul(2)).unwrap_or(usize::MAX);
        store.set_hostcall_fuel(MAX_HOSTCALL.max(answer));
        store.set_max_component_handles(MAX_HANDLES);
        Self { store, instance: None, tool: None, permit: opening.permit }
    }

    /// The store's data.
    pub(crate) fn guest(&mut self) -> &mut Guest {
        self.store.data_mut()
    }

    /// Whether the store is in the pool.
    pub(crate) fn is_pooled(&self) -> bool {
        self.permit.is_some()
    }

    /// Runs a job until it ends or a limit is reached, and bills it. After a fault, drop the store.
    pub(crate) async fn run(&mut self, bound: &Bound, job: Job, allowance: &Allowance<'_>) -> Ran {
        let guest = self.guest();
        let (record, standstill) = (guest.record.clone(), guest.standstill.clone());
        guest.nested_fuel = 0;
        standstill.reset();
        let purse = Purse { budget: allowance.budget, slice: allowance.slice };
        let begun = Instant::now();
        let cap = purse.remaining();
        let mut tally = Tally::default();
        let mut opened = None;
        let end = if cap == 0 {
            Err(RunFault::Exhausted(used_up(purse, cap)))
        } else if let Err(error) = self.refuel(cap) {
            Err(fault(&error))
        } else {
            let bounds = Bounds {
                purse,
                record: &record,
                deadline: begun + allowance.time,
                standstill: &standstill,
                cancel: allowance.cancel,
            };
            let work = pin!(self.work(bound, job, &mut opened));
            let metered = MeteredCall::new(work, bounds, &mut tally);
            match AssertUnwindSafe(metered).catch_unwind().await {
                Ok(Ok(Ok(done))) => Ok(done),
                Ok(Ok(Err(error))) => Err(fault(&error)),
                Ok(Err(stop)) => Err(stop.into()),
                Err(_) => Err(RunFault::Panicked),
            }
        };
        let used = cap.saturating_sub(self.store.get_fuel().unwrap_or(0));
        // INV-231: nested calls were billed already.
        let used = used.saturating_sub(self.guest().nested_fuel);
        let used = match &end {
            Ok(_) => used,
            Err(RunFault::Exhausted(_)) if cap == 0 => 0,
            // The fuel since the last yield is unknown, so the whole interval is billed.
            Err(RunFault::Trapped { .. } | RunFault::Panicked) => {
                used.max(tally.guest_fuel).saturating_add(INTERVAL).min(cap)
            }
            Err(RunFault::Exhausted(_) | RunFault::TimedOut | RunFault::Cancelled) => {
                used.max(tally.guest_fuel.min(cap))
            }
        };
        tally.settle(used, purse, &record);
        Ran {
            end: end.map_err(|fault| self.explain(fault, purse, cap)),
            fuel: tally.fuel(),
            guest_time: tally.guest_time,
            opening: opened.map_or(Duration::ZERO, |at: Instant| at.duration_since(begun)),
            peak_memory: self.guest().memory.take_peak(),
        }
    }

    async fn work(
        &mut self,
        bound: &Bound,
        job: Job,
        opened: &mut Option<Instant>,
    ) -> wasmtime::Result<Done> {
        let Self { store, instance, tool, .. } = self;
        if let (Exports::Command(_), Job::Invoke(call)) = (&bound.exports, &job)
            && let Err(why) = command::start(store.data_mut(), call)
        {
            return Ok(Done::Invoked(Err(ToolError::InvalidArguments(why))));
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
            Job::Open => Ok(Done::Opened),
            Job::Describe => {
                let tool = ready(tool, bound, store, instance)?;
                tool.describe(&mut *store).await.map(Done::Described)
            }
            Job::Invoke(call) => match &bound.exports {
                Exports::Tool(_) | Exports::Hook(_) => {
                    let tool = ready(tool, bound, store, instance)?;
                    tool.invoke(&mut *store, call).await.map(Done::Invoked)
                }
                Exports::Command(indices) => {
                    command::run(indices, store, instance).await.map(Done::Invoked)
                }
                Exports::Functions(functions) => {
                    functions.call(store, instance, &call).await.map(Done::Invoked)
                }
            },
            Job::Judge(event) => {
                let Exports::Hook(exports) = &bound.exports else {
                    wasmtime::bail!("it is no hook");
                };
                let hook = exports.load(&mut *store, instance)?;
                let hooks = hook.belljar_hook_hooks();
                hooks.call_check(&mut *store, &event).await.map(Done::Judged)
            }
        }
    }

    fn refuel(&mut self, cap: u64) -> wasmtime::Result<()> {
        self.store.set_fuel(cap)?;
        self.store.fuel_async_yield_interval(Some(INTERVAL))
    }

    /// Names the budget that caused a fault: fuel, or memory that was refused to the guest.
    fn explain(&mut self, fault: RunFault, purse: Purse<'_>, cap: u64) -> RunFault {
        let refused = self.guest().memory.take_refused();
        match (fault, refused) {
            (RunFault::Trapped { name, .. }, _) if name == OUT_OF_FUEL => {
                RunFault::Exhausted(used_up(purse, cap))
            }
            (RunFault::Trapped { .. }, Some(refused)) => RunFault::Exhausted(refused),
            (fault, _) => fault,
        }
    }
}

/// Makes the initial memory image that all stores of a component share. The kernel cannot seal a page while
/// it is in use, for example being moved; the image is then made again.
async fn share_image(component: &Component) -> wasmtime::Result<()> {
    for _ in 1..IMAGE_TRIES {
        if component.initialize_copy_on_write_image().is_ok() {
            return Ok(());
        }
        tokio::task::yield_now().await;
    }
    component.initialize_copy_on_write_image()
}

/// The instance's functions, looked up at the first call.
fn ready<'a>(
    tool: &'a mut Option<Tool>,
    bound: &Bound,
    store: &mut Store<Guest>,
    instance: &Instance,
) -> wasmtime::Result<&'a Tool> {
    if tool.is_none() {
        let Exports::Tool(exports) = &bound.exports else {
            wasmtime::bail!("it is no tool");
        };
        *tool = Some(exports.load(&mut *store, instance)?);
    }
    tool.as_ref().ok_or_else(|| wasmtime::Error::msg("the tool is gone"))
}

/// Attempts at making the shared memory image. Each attempt waits for the kernel for a seventh of a second
/// (`memfd_wait_for_pins` of Linux).
const IMAGE_TRIES: u32 = 8;

const OUT_OF_FUEL: &str = "out of fuel";

/// Advice for the author of a tool that returned invalid text.
const MEND: &str = "the tool has to put U+FFFD there before a text leaves it";

fn fault(error: &wasmtime::Error) -> RunFault {
    let name = if let Some(trap) = error.downcast_ref::<Trap>() {
        match trap {
            Trap::OutOfFuel => OUT_OF_FUEL.to_owned(),
            trap => trap.to_string(),
        }
    } else if let Some(exited) = error.downcast_ref::<Exited>() {
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
        // A limit of the host without an error in the interface, for example handles, or bytes of
        // one call.
        "the host refused a call".to_owned()
    };
    let detail = Shown::clipped(&format!("{error:#}"), 500).to_string();
    RunFault::Trapped { name, detail }
}

fn used_up(purse: Purse<'_>, cap: u64) -> Exhausted {
    let call = Exhausted { meter: Meter::Fuel, level: Level::Call, limit: cap };
    purse.exhausted().unwrap_or(call)
}

impl From<Stop> for RunFault {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Exhausted(which) => Self::Exhausted(which),
            Stop::TimedOut => Self::TimedOut,
            Stop::Cancelled => Self::Cancelled,
        }
    }
}
