//! Hooks as components: untrusted code that judges an event, without any right.

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

/// Fuel of one judgement: a tenth of a second of a tight loop; a Rust hook uses a thousandth. Small compared
/// with a call's own limit, because every call waits for it.
const FUEL: u64 = 1_000_000_000;

/// Linear memory and tables of one judgement: enough for a small script engine.
const MEMORY: u64 = 32 << 20;

/// Bytes of new arguments; a longer answer is refused.
const ANSWER: u64 = 4 << 20;

/// Characters of a reason; the rest is cut, because the model needs only a sentence or two.
const MAX_REASON: usize = 1_000;

/// The verdict of a hook component. Reasons are foreign text of bounded length: escape them before showing
/// them to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    /// No objection.
    Pass,
    /// Refused, for this reason.
    Deny(String),
    /// Allowed only if a person approves, for this reason.
    Ask(String),
    /// Allowed with these arguments instead: a JSON object of bounded depth.
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
    /// The hook reported that it cannot judge.
    #[error("it cannot judge: {0}")]
    Said(String),
    /// The answer breaks the contract.
    #[error("its answer is not valid: {0}")]
    BadAnswer(&'static str),
}

/// Runs `check` in a store without rights, and checks the answer.
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
