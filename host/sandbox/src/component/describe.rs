//! Gets the descriptions of a component's tools: asks the component once per digest, checks the answer, and
//! stores it.
//!
//! `describe` is a stranger's code, so it runs in a temporary store without any grant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_os_sandbox::{Broker, DerivedFile};
use belljar_overlay::Digest;
use belljar_work::{OPERATOR, StopSignal, WorkKind};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::component::bindings::exports::belljar::tool::tools::{Definition, Hints as WitHints};
use crate::component::cache::{CacheKind, ComponentCache};
use crate::component::compile::WAIT;
use crate::component::described::{self, DescribeLimits, ToolClaim};
use crate::component::inspect;
use crate::component::kind::ComponentKind;
use crate::component::load::ComponentLoader;
use crate::component::throwaway::{self, ThrowawayBounds};
use crate::component::tool_info::{ToolHints, ToolInfo};
use crate::component::wasm::Wasm;
use crate::error::DescribeError;
use crate::jar::store::{JobResult, StoreJob};

/// How long to wait for the broker, which may compile the component before it runs `describe`.
const MAKE_WAIT: Duration = WAIT.saturating_add(Duration::from_secs(60));

/// Gets and stores the checked descriptions of components.
#[derive(Debug)]
pub(crate) struct ToolDescriber {
    limits: DescribeLimits,
    loader: Arc<ComponentLoader>,
    cache: Option<Arc<ComponentCache>>,
    /// The broker, which makes and stores descriptions in place of the cache, always with the default limits.
    broker: Option<Broker>,
    /// The answers of this process so far, by the digest of the component.
    known: Mutex<HashMap<Digest, Arc<Entry>>>,
}

/// The kind of host work for checking a component's descriptions.
const CHECKING: WorkKind =
    WorkKind { name: "checking the tools of a component", time: Duration::from_secs(20) };

type Answer = Result<Arc<[ToolInfo]>, DescribeError>;
type Entry = OnceCell<Result<ComponentDescription, DescribeError>>;

/// What is known of the component with a digest.
#[derive(Debug, Clone)]
enum ComponentDescription {
    /// The component described these tools.
    Tools(Arc<[ToolInfo]>),
    /// The component is a command. Its tool is described by the caller's name and form for it.
    Command,
}

/// Checks a component's descriptions on another thread, because they may have megabytes of schemas. `limits`
/// bounds how much there is to check.
pub(crate) async fn check_on_thread(
    claims: Vec<ToolClaim>,
    limits: DescribeLimits,
) -> Result<Vec<ToolInfo>, String> {
    let work = move |_: &StopSignal| described::check_claims(claims, &limits);
    belljar_work::run_job(&CHECKING, OPERATOR, work).await.map_err(|error| error.to_string())?
}

impl ToolDescriber {
    /// Makes a describer without descriptions yet.
    pub(crate) fn new(
        limits: DescribeLimits,
        loader: Arc<ComponentLoader>,
        cache: Option<Arc<ComponentCache>>,
        broker: Option<Broker>,
    ) -> Self {
        let broker = broker.filter(|_| limits == DescribeLimits::default());
        Self { limits, loader, cache, broker, known: Mutex::default() }
    }

    /// The tools of a component. Failures are not stored, so the next caller tries again.
    pub(crate) async fn describe_tools(&self, wasm: &Wasm) -> Answer {
        let digest = wasm.digest();
        let entry = Arc::clone(self.lock_answers().entry(digest).or_default());
        let answer = entry.get_or_init(|| self.ask_once(wasm)).await.clone();
        if answer.is_err() {
            let mut known = self.lock_answers();
            if known.get(&digest).is_some_and(|now| Arc::ptr_eq(now, &entry)) {
                known.remove(&digest);
            }
        }
        match answer? {
            ComponentDescription::Tools(tools) => Ok(tools),
            ComponentDescription::Command => {
                let tool = wasm.command_form().tool(wasm.name(), &self.limits);
                tool.map(|tool| Arc::from([tool])).map_err(DescribeError::Invalid)
            }
        }
    }

    /// Stores the caller's description of the component with the given digest.
    pub(crate) fn store_answer(&self, digest: Digest, tools: Arc<[ToolInfo]>) {
        self.lock_answers().insert(
            digest,
            Arc::new(Entry::new_with(Some(Ok(ComponentDescription::Tools(tools))))),
        );
    }

    fn lock_answers(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, Arc<Entry>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask_once(&self, wasm: &Wasm) -> Result<ComponentDescription, DescribeError> {
        if let Ok(found) = inspect::check_component(wasm.bytes())
            && found.kind == Some(ComponentKind::Command)
        {
            return Ok(ComponentDescription::Command);
        }
        self.ask_component(wasm).await.map(ComponentDescription::Tools)
    }

    /// Finds the tools of a component: from the broker, from the cache, or by running `describe` and
    /// checking the answer, which is then cached.
    async fn ask_component(&self, wasm: &Wasm) -> Answer {
        if let Some(tools) = self.ask_broker(wasm).await {
            return Ok(tools.into());
        }
        let name = tools_name(wasm.digest(), &self.limits);
        let found =
            self.cache.as_ref().and_then(|cache| cache.find_entry(CacheKind::Describe, &name));
        if let Some(found) = found
            && let Ok(tools) = serde_json::from_slice::<Vec<ToolInfo>>(&found)
        {
            return Ok(tools.into());
        }
        let claims = self.run_describe(wasm).await?;
        let tools = check_on_thread(claims, self.limits).await.map_err(DescribeError::Invalid)?;
        if let Some(cache) = &self.cache
            && let Ok(text) = serde_json::to_vec(&tools)
        {
            cache.store_entry(CacheKind::Describe, &name, &text);
        }
        Ok(tools.into())
    }

    /// The descriptions the broker stored or makes now. If the broker fails, this returns `None`; `describe`
    /// then runs in the current process, which reports the error, and the result is not stored on disk.
    async fn ask_broker(&self, wasm: &Wasm) -> Option<Vec<ToolInfo>> {
        let broker = self.broker.as_ref()?;
        let found = match broker.find_derived(DerivedFile::Tools, &wasm.digest().to_string()).await
        {
            Ok(Some(found)) => found,
            Ok(None) => {
                inspect::check_component(wasm.bytes()).ok()?;
                let made = tokio::time::timeout(
                    MAKE_WAIT,
                    broker.make_derived(DerivedFile::Tools, wasm.bytes()),
                );
                // Reported if slow, because the broker compiles the component first.
                self.loader.report_slow(wasm, made).await.ok()?.ok()?
            }
            Err(error) => {
                tracing::warn!(target: "belljar::sandbox", "the cache is not used: {error}");
                return None;
            }
        };
        serde_json::from_slice(&found).ok()
    }

    /// Gets the descriptions from the component itself, by running `describe` in a store without any grant.
    /// For a component of plain functions, the host writes the descriptions.
    async fn run_describe(&self, wasm: &Wasm) -> Result<Vec<ToolClaim>, DescribeError> {
        let limits = &self.limits;
        let loaded = self.loader.load_tool(wasm).await?;
        if let Some(functions) = loaded.offered_functions() {
            return Ok(functions.to_claims(limits.tools));
        }
        let texts = limits.description_bytes.saturating_add(limits.schema_bytes);
        let bounds = ThrowawayBounds {
            fuel: limits.fuel,
            memory_bytes: limits.memory_bytes,
            time: limits.time,
            answer_bytes: texts.saturating_mul(limits.tools) as u64,
        };
        let cancel = CancellationToken::new();
        match throwaway::run_throwaway(&self.loader, &loaded, StoreJob::Describe, &bounds, &cancel)
            .await?
        {
            Ok(JobResult::Described(definitions)) => {
                Ok(definitions.into_iter().map(claim_from_definition).collect())
            }
            Ok(JobResult::Opened | JobResult::Invoked(_) | JobResult::Judged(_)) => {
                Err(DescribeError::Failed("it answered something else".to_owned()))
            }
            Err(why) => Err(DescribeError::Failed(why)),
        }
    }
}

/// The cache's name for a component's descriptions. It includes the limits, so that descriptions checked
/// against wide limits are not used under narrow ones.
pub(crate) fn tools_name(digest: Digest, limits: &DescribeLimits) -> String {
    let DescribeLimits { tools, description_bytes, schema_bytes, .. } = limits;
    format!("{digest}-{tools}-{description_bytes}-{schema_bytes}")
}

fn claim_from_definition(definition: Definition) -> ToolClaim {
    let Definition { name, description, input_schema, hints } = definition;
    let hints = ToolHints {
        read_only: hints.contains(WitHints::READ_ONLY),
        idempotent: hints.contains(WitHints::IDEMPOTENT),
        open_world: hints.contains(WitHints::OPEN_WORLD),
    };
    ToolClaim { name, description, schema: input_schema, hints }
}
