//! Runs hooks that are components: untrusted code, without any right, whose verdict decides about a call.

use std::time::Duration;

use belljar_policy::ShownText;
use tokio_util::sync::CancellationToken;

use crate::component::bindings::hook::exports::belljar::hook::hooks::Verdict;
use crate::component::load::ComponentLoader;
use crate::component::throwaway::{self, ThrowawayBounds};
use crate::component::wasm::Wasm;
use crate::error::LoadError;
use crate::jar::answer::is_object;
use crate::jar::store::{JobResult, StoreJob};

/// The fuel for a verdict: a tenth of a second of a tight loop. A hook in Rust uses a thousandth of it.
/// Small beside the fuel of a tool's call, because every call waits for the hook.
const FUEL: u64 = 1_000_000_000;

/// The bytes of linear memory and tables for a verdict: enough for a small script engine.
const MEMORY: u64 = 32 << 20;

/// The most bytes of a verdict, which may contain new arguments. A longer one is refused.
const ANSWER: u64 = 4 << 20;

/// The most characters of a verdict's reason, because a model needs only a sentence or two. The rest is cut.
const MAX_REASON: usize = 1_000;

/// The verdict of a hook about a call. Reasons are foreign text of bounded length: escape before display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    /// The hook has no objection.
    Pass,
    /// The call is refused, for this reason.
    Deny(String),
    /// The call is allowed only if a person approves, for this reason.
    Ask(String),
    /// The call is allowed with these arguments instead: a JSON object of bounded depth.
    Narrow(String),
}

/// Why a hook component returned no verdict. The texts are escaped.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HookError {
    /// The component does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The hook trapped, used up a limit, timed out or was cancelled.
    #[error("it failed: {0}")]
    Failed(String),
    /// The hook answered with an error: it cannot judge the event.
    #[error("it cannot judge: {0}")]
    Said(String),
    /// The answer breaks the contract.
    #[error("its answer is not valid: {0}")]
    BadAnswer(&'static str),
}

/// Runs the hook's `check` on an event, in a store without rights, and checks the verdict.
pub(crate) async fn judge_event(
    loader: &ComponentLoader,
    wasm: &Wasm,
    event: &str,
    time: Duration,
    cancel: &CancellationToken,
) -> Result<HookVerdict, HookError> {
    let loaded = loader.load_hook(wasm).await?;
    let bounds = ThrowawayBounds { fuel: FUEL, memory_bytes: MEMORY, time, answer_bytes: ANSWER };
    let job = StoreJob::Judge(event.to_owned());
    match throwaway::run_throwaway(loader, &loaded, job, &bounds, cancel).await? {
        Ok(JobResult::Judged(Ok(verdict))) => check_verdict(verdict),
        Ok(JobResult::Judged(Err(why))) => {
            Err(HookError::Said(ShownText::clip_line(&why, MAX_REASON).to_string()))
        }
        Ok(JobResult::Opened | JobResult::Described(_) | JobResult::Invoked(_)) => {
            Err(HookError::BadAnswer("it answered something else"))
        }
        Err(why) => Err(HookError::Failed(why)),
    }
}

fn check_verdict(verdict: Verdict) -> Result<HookVerdict, HookError> {
    Ok(match verdict {
        Verdict::Pass => HookVerdict::Pass,
        Verdict::Deny(why) => HookVerdict::Deny(clip_reason(&why)),
        Verdict::Ask(why) => HookVerdict::Ask(clip_reason(&why)),
        Verdict::Narrow(arguments) if is_object(&arguments) => HookVerdict::Narrow(arguments),
        Verdict::Narrow(_) => {
            return Err(HookError::BadAnswer("the new arguments are no JSON object"));
        }
    })
}

fn clip_reason(text: &str) -> String {
    text.chars().take(MAX_REASON).collect()
}
