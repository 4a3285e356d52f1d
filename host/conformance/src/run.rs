//! Runs the suite on a component.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use belljar_policy::{
    AskedRights, Budget, BudgetCaps, BudgetLevel, CallPermission, Grants, GuestPath, HostRule,
    Limits, LimitsRequest, Mount, MountAccess, Rights, SecretName, ToolAsk, ToolName,
};
use belljar_sandbox::http::Secret;
use belljar_sandbox::{
    CallOptions, DescribeError, Jar, JarSpec, JarTool, PeerPort, ProgressReport, ProgressSink,
    Sandbox, SecretStore, ToolHints, ToolInfo, Wasm,
};
use secrecy::SecretString;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::called::SuitePeers;
use crate::cases::{self, Case, CaseCall, WorkspaceRight};
use crate::described;
use crate::expect::{self, SeenAnswers};
use crate::peer::SECRET;
use crate::stage::SuiteStage;

/// The result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseVerdict {
    /// The subject, for example `files` or `http`.
    pub group: String,
    /// The claim of the case, which is its name.
    pub case: String,
    /// Whether the claim is true of the component.
    pub result: CaseResult,
}

/// Whether a claim is true of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseResult {
    /// The claim is true.
    Pass,
    /// The claim is false, for this reason. Foreign text: escape before showing to a person.
    Fail(String),
    /// The component lacks a tool that the case needs, for this reason, which is foreign text too.
    NotOffered(String),
}

/// Why the suite did not run.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// The component cannot be described.
    #[error("the component cannot be described")]
    Describe(#[from] DescribeError),
    /// The suite's own network hosts or directories failed.
    #[error("the suite's stage failed")]
    Stage(#[from] io::Error),
    /// The suite itself has a fault.
    #[error("the suite is not usable: {0}")]
    Suite(String),
}

/// Runs all cases on a component, one after another.
///
/// # Errors
///
/// The component does not load or cannot be described, or the suite's own hosts or directories fail. A
/// failed case is no error but a [`CaseVerdict`].
pub async fn run_cases(
    sandbox: &Sandbox,
    wasm: &Wasm,
    stage: &SuiteStage,
) -> Result<Vec<CaseVerdict>, ConformanceError> {
    let infos = sandbox.describe_tools(wasm).await?;
    let cases = async {
        let mut verdicts = Vec::new();
        for group in cases::parse_suite().map_err(ConformanceError::Suite)? {
            for case in group.cases {
                let trial = CaseTrial { sandbox, wasm, stage, infos: &infos, case: &case };
                let result = trial.run_case(verdicts.len()).await?;
                let group = group.group.clone();
                verdicts.push(CaseVerdict { group, case: case.name.clone(), result });
            }
        }
        Ok(verdicts)
    };
    tokio::select! {
        verdicts = cases => verdicts,
        ended = stage.peer.serve_requests() => {
            ended?;
            Err(ConformanceError::Suite("its host stopped answering".to_owned()))
        }
    }
}

/// A case, to be run on a component.
struct CaseTrial<'a> {
    sandbox: &'a Sandbox,
    wasm: &'a Wasm,
    stage: &'a SuiteStage,
    infos: &'a [ToolInfo],
    case: &'a Case,
}

impl CaseTrial<'_> {
    /// Runs a case: checks the descriptions, makes the calls (in several jars at once, if the case says so),
    /// then checks the workspace. All faults together are the result.
    async fn run_case(&self, number: usize) -> Result<CaseResult, ConformanceError> {
        if let Some(reason) = described::missing_reason(self.case, self.infos) {
            return Ok(CaseResult::NotOffered(reason));
        }
        let workspace = self.stage.make_workspace(number)?;
        let seen = SeenAnswers::default();
        let jars = (0..self.case.together).map(|_| self.run_calls(&workspace, &seen));
        let mut faults = described::description_faults(self.case, self.infos);
        for fault in futures::future::join_all(jars).await {
            faults.extend(fault?);
        }
        faults.extend(self.changed_file(&workspace));
        if self.stage.stranger.was_reached() {
            faults.push("a host that was not granted was reached".to_owned());
        }
        Ok(match faults.is_empty() {
            true => CaseResult::Pass,
            false => CaseResult::Fail(faults.join("; ")),
        })
    }

    /// Makes the calls of the case in a jar, and returns the first fault.
    async fn run_calls(
        &self,
        workspace: &Path,
        seen: &SeenAnswers,
    ) -> Result<Option<String>, ConformanceError> {
        let (jar, rights) = self.make_jar(workspace)?;
        let mut fault = None;
        for call in &self.case.calls {
            let name = call.alias.as_deref().unwrap_or(&call.tool);
            let permit = rights.tool(name).map_err(|denied| suite_error(&denied))?;
            let arguments = self.fill_arguments(call)?.to_string();
            let reports: Arc<Mutex<Vec<ProgressReport>>> = Arc::default();
            let sink: ProgressSink = Arc::new({
                let reports = reports.clone();
                move |report| {
                    reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
                }
            });
            let peers: Option<Arc<dyn PeerPort>> = match self.case.peers {
                true => Some(Arc::new(SuitePeers)),
                false => None,
            };
            let with = CallOptions { progress: Some(sink), peers, ..CallOptions::default() };
            let result = jar.call_with(permit, &arguments, with).await;
            let reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(why) = expect::first_fault(&call.expect, &result, &reports, seen) {
                let said = result.receipt.stderr.trim();
                let said = if said.is_empty() {
                    String::new()
                } else {
                    format!(" (it said: {})", expect::clip_text(said))
                };
                fault = Some(format!("`{name}`: {why}{said}"));
                break;
            }
        }
        // An operation that did not end is a fault of the host, which has its own tests for that.
        let _ = jar.close().await;
        Ok(fault)
    }

    /// Makes the jar of a case: the tools may be called by their names and aliases; the case decides the
    /// limits and the access to the workspace; the suite's HTTP server and secret are granted.
    fn make_jar(&self, workspace: &Path) -> Result<(Jar, Rights), ConformanceError> {
        let called = self.case.calls.iter().filter_map(|call| call.alias.as_deref());
        let aliases = called.map(|name| {
            let name = ToolName::new(name).map_err(|error| suite_error(&error))?;
            Ok((name, ToolHints::default()))
        });
        let mut tools: BTreeMap<ToolName, ToolHints> =
            aliases.collect::<Result<_, ConformanceError>>()?;
        tools.extend(self.infos.iter().map(|info| (info.name.clone(), info.hints)));
        let rule: HostRule = self.stage.peer.url()?.parse().map_err(|error| suite_error(&error))?;
        let secret = SecretName::new("suite").map_err(|error| suite_error(&error))?;
        let mut limits = LimitsRequest::default();
        for (key, value) in &self.case.limits {
            limits.set(key, *value);
        }
        let access = match self.case.access {
            WorkspaceRight::Read => Some(MountAccess::Read),
            WorkspaceRight::ReadWrite => Some(MountAccess::ReadWrite),
            WorkspaceRight::None => None,
        };
        let mounts = access.map(|access| Mount {
            guest: GuestPath::workspace(),
            host: workspace.to_path_buf(),
            access,
        });
        let grants = Grants {
            tools: tools
                .keys()
                .cloned()
                .chain(SuitePeers::granted_tools())
                .map(|name| (name, CallPermission::Allow))
                .collect(),
            mounts: mounts.into_iter().collect(),
            hosts: vec![vec![rule.clone()]],
            secrets: [secret.clone()].into(),
            limits: Limits::default().granted(&limits),
        };
        let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
        let mut secrets = SecretStore::default();
        let value = Secret::new(&SecretString::from(SECRET), vec![rule.clone()], "x-suite", "");
        secrets.insert(secret.clone(), value.map_err(|error| suite_error(&error))?);
        let settings = [("style", "plain"), ("motto", "żółć ☃")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let spec = JarSpec {
            budget: Budget::new_root(BudgetLevel::Subagent, BudgetCaps::for_agent(&grants.limits)),
            tools: vec![JarTool {
                tools,
                wasm: self.wasm.clone(),
                ask: ToolAsk {
                    mounts: Some(MountAccess::ReadWrite),
                    hosts: vec![rule],
                    secrets: [secret].into(),
                    peers: SuitePeers::asked_peers(),
                    ..ToolAsk::default()
                },
                config: Arc::new(settings.into()),
            }],
            rights: rights.clone(),
            secrets,
            overlays: BTreeMap::new(),
            cancel: CancellationToken::new(),
        };
        let jar = self.sandbox.open_jar(spec).map_err(|error| suite_error(&error))?;
        Ok((jar, rights))
    }

    /// The arguments of a call, with `{peer}`, `{stranger}` and long texts filled in.
    fn fill_arguments(&self, call: &CaseCall) -> Result<Value, ConformanceError> {
        let (peer, stranger) = (self.stage.peer.url()?, self.stage.stranger.url()?);
        let fill = |text: &str| text.replace("{peer}", &peer).replace("{stranger}", &stranger);
        let mut arguments = call.arguments.clone();
        for value in arguments.as_object_mut().into_iter().flat_map(|object| object.values_mut()) {
            if let Value::String(text) = value {
                *text = fill(text);
            } else if let Some(whole) = cases::expand_repeated(value) {
                *value = whole;
            }
        }
        Ok(arguments)
    }

    /// A file that is not as the case expects after the calls.
    fn changed_file(&self, workspace: &Path) -> Option<String> {
        self.case.files.iter().find_map(|(path, wanted)| {
            let found = std::fs::read_to_string(workspace.join(path)).ok();
            (found != *wanted).then(|| match found {
                Some(_) => format!("`{path}` is not as it has to be afterwards"),
                None => format!("`{path}` is not there afterwards"),
            })
        })
    }
}

fn suite_error(error: &dyn std::fmt::Display) -> ConformanceError {
    ConformanceError::Suite(error.to_string())
}
