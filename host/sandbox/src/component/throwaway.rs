//! Runs one job in a store of its own, without any grant and with limits of its own, and drops the store.
//! For strangers' code that answers a question outside of tool calls, for example `describe`.

use std::sync::Arc;
use std::time::Duration;

use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Limits, Meter};
use tokio_util::sync::CancellationToken;

use crate::component::load::{ComponentLoader, LoadedComponent};
use crate::error::LoadError;
use crate::imports::files::FilesCtx;
use crate::imports::link::GrantedImports;
use crate::jar::limits::MemoryLimiter;
use crate::jar::state::{Guest, GuestSettings};
use crate::jar::store::{JobBudget, JobResult, OpenStore, RunFault, StoreJob};
use crate::receipt::record::CallRecord;

/// The limits of the job.
pub(crate) struct ThrowawayBounds {
    pub(crate) fuel: u64,
    /// The most bytes of linear memory and tables.
    pub(crate) memory_bytes: u64,
    /// The most wall time.
    pub(crate) time: Duration,
    /// The most bytes of the answer. The host copies a fixed minimum in any case.
    pub(crate) answer_bytes: u64,
}

/// Runs the job and drops the store. The inner error says why the job has no result; the text is escaped.
pub(crate) async fn run_throwaway(
    loader: &ComponentLoader,
    loaded: &LoadedComponent,
    job: StoreJob,
    bounds: &ThrowawayBounds,
    cancel: &CancellationToken,
) -> Result<Result<JobResult, String>, LoadError> {
    let granted = GrantedImports::NOTHING;
    let opening = loader.prepare_opening(loaded, granted, bounds.memory_bytes).await?;
    let bound = opening.bound;
    let caps = BudgetCaps::unlimited()
        .with_cap(Meter::Fuel, bounds.fuel)
        .with_cap(Meter::Memory, bounds.memory_bytes);
    let budget = Budget::new_root(BudgetLevel::Call, caps);
    let record = Arc::new(CallRecord::new(budget.clone(), 0));
    let none = Limits { open_files: 0, ..Limits::default() };
    let files = FilesCtx::new(&[], &none, Arc::clone(&record));
    let memory = MemoryLimiter::new(budget.clone());
    let guest = Guest::new(files, None, GuestSettings::default(), memory, record, 0);
    let mut store = OpenStore::new(opening, guest, bounds.answer_bytes);
    let allowance = JobBudget { budget: &budget, slice: None, time: bounds.time, cancel };
    let end = store.run_job(bound, job, &allowance).await.end;
    Ok(end.map_err(|fault| explain_fault(&fault, bounds)))
}

fn explain_fault(fault: &RunFault, bounds: &ThrowawayBounds) -> String {
    match fault {
        RunFault::Trapped { detail, .. } => detail.clone(),
        RunFault::Exhausted(which) => which.to_string(),
        RunFault::TimedOut => format!("it took over {} seconds", bounds.time.as_secs()),
        RunFault::Cancelled => "it was cancelled".to_owned(),
        RunFault::Panicked => "the host failed".to_owned(),
    }
}
