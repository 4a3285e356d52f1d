//! Makes an agent ready for its first model call: its tools, its jar, its first request.

use std::collections::BTreeMap;

use belljar_model::{ChatRequest, Message};
use belljar_sandbox::{Jar, JarSpec, JarTool};
use tokio_util::sync::CancellationToken;

use crate::agent::Job;
use crate::bounds::MAX_TOOLS;
use crate::delegates::Delegates;
use crate::dispatch::{Carrier, Dispatcher};
use crate::frame::CHILD_CONTRACT;
use crate::ledger::Ledger;
use crate::outcome::RunError;
use crate::spawn::{self, SPAWN_AGENT};
use crate::toolcat::Offer;
use crate::turn::Loop;

/// A ready agent.
pub(crate) struct Prepared {
    pub(crate) machine: Loop,
    /// Absent where no tool is a component.
    pub(crate) jar: Option<Jar>,
    pub(crate) delegates: Delegates,
}

/// The allowlist's first and third places (rule 2): only permitted tools are advertised, and
/// the jar is given only the components of permitted tools.
pub(crate) async fn prepare(
    job: &Job,
    ledger: &Ledger,
    stop: &CancellationToken,
) -> Result<Prepared, RunError> {
    let host = &job.shared.host;
    let Offer { mut specs, jar_tools, warnings } =
        host.tools.offer(&host.sandbox, &job.rights).await;
    for warning in warnings {
        job.warn(ledger, warning);
    }
    let mut advertised: BTreeMap<_, _> =
        specs.iter().map(|(name, _)| (name.clone(), Carrier::Jar)).collect();
    let mut delegates = Delegates::none();
    if !job.child
        && let Ok(permit) = job.rights.tool(SPAWN_AGENT)
    {
        let listing = host.listing(&job.shared.workspace);
        delegates = Delegates::of(listing, &job.agent.definition);
        let listed = delegates.listed();
        if !listed.is_empty() {
            specs.push((permit.tool().clone(), spawn::spec(&listed)));
            advertised.insert(permit.tool().clone(), Carrier::Spawn);
        }
    }
    if specs.len() > MAX_TOOLS {
        for (name, _) in specs.drain(MAX_TOOLS..) {
            advertised.remove(&name);
            job.warn(ledger, format!("tool `{name}` is left out: more than {MAX_TOOLS} tools"));
        }
    }
    let jar = if jar_tools.is_empty() { None } else { Some(jar(job, jar_tools, stop)?) };
    let mut system = vec![job.agent.definition.body.clone()];
    if job.child {
        system.push(CHILD_CONTRACT.to_owned());
    }
    let mut messages = job.history.clone();
    messages.push(Message::User { text: job.first.clone() });
    let request = ChatRequest {
        system,
        messages,
        tools: specs.into_iter().map(|(_, spec)| spec).collect(),
        ..ChatRequest::default()
    };
    let dispatcher = Dispatcher::new(job.rights.clone(), advertised);
    Ok(Prepared { machine: Loop::new(request, dispatcher), jar, delegates })
}

fn jar(job: &Job, tools: Vec<JarTool>, stop: &CancellationToken) -> Result<Jar, RunError> {
    let spec = JarSpec {
        rights: job.rights.clone(),
        budget: job.budget.clone(),
        tools,
        secrets: job.shared.host.secrets.clone(),
        cancel: stop.clone(),
    };
    job.shared.host.sandbox.jar(spec).map_err(|error| RunError::Setup {
        message: error.to_string(),
        hint: Some("check the workspace and the mounts of this agent's grants".to_owned()),
    })
}
