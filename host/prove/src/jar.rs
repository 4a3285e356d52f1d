//! Opens jars for attacks, and checks the results of their calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use belljar_policy::{
    AskedRights, Budget, BudgetCaps, BudgetLevel, CallPermission, DenyCode, Grants, GuestPath,
    HostRule, Limits, Meter, Mount, MountAccess, Rights, SecretName, ToolAsk, ToolName,
};
use belljar_sandbox::{
    CallEnding, CallError, CallResult, Jar, JarSpec, JarTool, OutputPart, Overlay, OverlayQuota,
    SecretStore, ToolErrorKind, ToolHints, Wasm,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::arena::Arena;
use crate::attack::{Escape, Stopped, Verdict};
use crate::guests::Guest;

/// The builder of an attack's jar. The defaults: the workspace read-only, no hosts, no secret, default limits.
#[must_use = "a jar is made by `open`"]
pub struct AttackJarBuilder<'a> {
    arena: &'a Arena,
    tools: Vec<Wasm>,
    mounts: Vec<Mount>,
    sealed: bool,
    hosts: Vec<HostRule>,
    /// The last invalid host rule or mount path; [`Self::open`] returns it as an error.
    fault: Option<anyhow::Error>,
    bound: Vec<HostRule>,
    limits: Limits,
    parent: Option<Budget>,
    config: BTreeMap<String, String>,
    overlay: Option<OverlayQuota>,
    shared: Option<Overlay>,
}

/// The open jar of an attack, with copies of the jar's rights, budget and cancel token.
#[derive(Debug, Clone)]
pub struct OpenJar {
    jar: Arc<Jar>,
    rights: Rights,
    /// The jar's budget.
    pub budget: Budget,
    /// Cancels the jar's calls.
    pub cancel: CancellationToken,
    witness: Arc<crate::witness::ArenaWitness>,
}

/// The result of one call. Each `check_...` method returns a verdict if the attack was stopped as expected,
/// and an [`Escape`] otherwise.
#[derive(Debug)]
pub struct AttackCall {
    /// The result of the call, with its receipt.
    pub result: CallResult,
    /// The call's output, or its error, as text.
    pub told: String,
}

/// The results of the steps that the probe executed. The probe is a guest that gets a list of steps as its
/// arguments.
#[derive(Debug)]
pub struct StepResults {
    /// One result for each step: `{"ok": ...}` or `{"error": ...}`.
    pub said: Vec<Value>,
    /// The call that executed all steps.
    pub call: AttackCall,
}

impl Arena {
    /// Returns the builder of a jar with the given guests as tools.
    pub fn jar_builder(&self, guests: &[Guest]) -> AttackJarBuilder<'_> {
        AttackJarBuilder::new(
            self,
            guests.iter().map(|guest| self.suite.guest_wasm(guest)).collect(),
        )
    }

    /// Like [`Self::jar_builder`], with components that the attack itself builds or changes.
    pub fn jar_of(&self, components: Vec<Wasm>) -> AttackJarBuilder<'_> {
        AttackJarBuilder::new(self, components)
    }
}

impl<'a> AttackJarBuilder<'a> {
    /// The builder's defaults: the workspace read-only, no hosts, no secret.
    pub(crate) fn new(arena: &'a Arena, tools: Vec<Wasm>) -> Self {
        Self {
            arena,
            tools,
            mounts: vec![Mount {
                guest: GuestPath::workspace(),
                host: arena.path("workspace"),
                access: MountAccess::Read,
            }],
            sealed: true,
            hosts: Vec::new(),
            fault: None,
            bound: Vec::new(),
            limits: Limits::default(),
            parent: None,
            config: BTreeMap::new(),
            overlay: None,
            shared: None,
        }
    }

    /// Makes the workspace writable through a new overlay with this quota.
    pub fn with_overlay(mut self, quota: OverlayQuota) -> Self {
        for mount in &mut self.mounts {
            mount.access = MountAccess::Overlay;
        }
        self.overlay = Some(quota);
        self
    }

    /// Like [`Self::with_overlay`], with an overlay that other jars use too.
    pub fn with_shared_overlay(mut self, overlay: &Overlay) -> Self {
        for mount in &mut self.mounts {
            mount.access = MountAccess::Overlay;
        }
        self.shared = Some(overlay.clone());
        self
    }

    /// Narrows the access to the workspace to `access`.
    pub fn at_most(mut self, access: MountAccess) -> Self {
        for mount in &mut self.mounts {
            mount.access = mount.access.min(access);
        }
        self
    }

    /// Makes the workspace itself writable.
    pub fn read_write(mut self) -> Self {
        for mount in &mut self.mounts {
            mount.access = MountAccess::ReadWrite;
        }
        self
    }

    /// Removes all mounts.
    pub fn no_mounts(mut self) -> Self {
        self.mounts.clear();
        self
    }

    /// Adds a mount: `folder` of the arena at `/folder` in the guest.
    pub fn with_mount(mut self, folder: &str, access: MountAccess) -> Self {
        match GuestPath::new(&format!("/{folder}")) {
            Ok(guest) => self.mounts.push(Mount { guest, host: self.arena.path(folder), access }),
            Err(error) => self.fault = Some(error.into()),
        }
        self
    }

    /// Adds a mount of any host directory, at `/{at}` in the guest.
    pub fn mount_host(mut self, at: &str, host: impl Into<PathBuf>, access: MountAccess) -> Self {
        match GuestPath::new(&format!("/{at}")) {
            Ok(guest) => self.mounts.push(Mount { guest, host: host.into(), access }),
            Err(error) => self.fault = Some(error.into()),
        }
        self
    }

    /// Leaves out the check, at the end of the attack, that no file in a read-only mount has changed: for
    /// attacks in which the host or another jar writes these files.
    pub fn without_seal(mut self) -> Self {
        self.sealed = false;
        self
    }

    /// Grants the hosts of one rule in the form of `belljar.toml`, for example `https://*.example.org`.
    pub fn with_host(mut self, rule: &str) -> Self {
        match rule.parse() {
            Ok(rule) => self.hosts.push(rule),
            Err(error) => self.fault = Some(anyhow::Error::new(error)),
        }
        self
    }

    /// Grants the arena's secret, named `canary` and sent as `authorization: Bearer ...`, bound
    /// to a host.
    pub fn secret_for(mut self, rule: &str) -> Self {
        match rule.parse() {
            Ok(rule) => self.bound.push(rule),
            Err(error) => self.fault = Some(anyhow::Error::new(error)),
        }
        self
    }

    /// Changes the limits of the jar.
    pub fn with_limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Makes the jar's budget a child of `parent`, so that the jar also uses up the budget of `parent`.
    pub fn with_parent_budget(mut self, parent: &Budget) -> Self {
        self.parent = Some(parent.clone());
        self
    }

    /// Adds a configuration value, which all tools of the jar can read.
    pub fn with_config(mut self, key: &str, value: &str) -> Self {
        self.config.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Opens the jar, after compiling, describing and loading its components. The first jar of an arena also
    /// records the state that is compared after the attack.
    ///
    /// # Errors
    /// When a component is refused or a mount cannot be opened.
    pub async fn open(self) -> Result<OpenJar, Escape> {
        let arena = self.arena;
        let jar = self.open_unremembered().await?;
        arena.remember_jar(&jar);
        Ok(jar)
    }

    /// Like [`Self::open`], for a jar that the caller closes.
    pub(crate) async fn open_unremembered(self) -> Result<OpenJar, Escape> {
        let arena = self.arena;
        if let Some(fault) = self.fault {
            return Err(fault.into());
        }
        let access = self.mounts.iter().map(|mount| mount.access).max();
        let mut secrets = SecretStore::default();
        let mut names = BTreeSet::new();
        if !self.bound.is_empty() {
            let name = SecretName::new("canary").context("no name for the secret")?;
            secrets.insert(name.clone(), arena.bound_secret(self.bound)?);
            names.insert(name);
        }
        let ask = ToolAsk {
            mounts: access,
            hosts: self.hosts.clone(),
            secrets: names.clone(),
            ..ToolAsk::default()
        };
        let (mut granted, mut tools) = (BTreeMap::new(), Vec::new());
        for wasm in self.tools {
            let offered = describe_guest(arena, &wasm).await?;
            granted.extend(offered.keys().map(|name| (name.clone(), CallPermission::Allow)));
            let config = Arc::new(self.config.clone());
            tools.push(JarTool { tools: offered, wasm, ask: ask.clone(), config });
        }
        if self.sealed {
            arena.seal_mounts(&self.mounts)?;
        }
        arena.take_picture()?;
        let grants = Grants {
            tools: granted,
            mounts: self.mounts,
            hosts: vec![self.hosts],
            secrets: names,
            limits: self.limits,
        };
        let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
        let caps = BudgetCaps::for_agent(&self.limits);
        let budget = match &self.parent {
            Some(parent) => parent.new_child(BudgetLevel::Subagent, caps),
            None => Budget::new_root(BudgetLevel::Subagent, caps),
        };
        let opened = self.overlay.map(|quota| arena.open_overlay(quota)).transpose()?;
        let overlay = self.shared.or(opened).map(|overlay| (GuestPath::workspace(), overlay));
        let overlays = overlay.into_iter().collect();
        let cancel = CancellationToken::new();
        let spec = JarSpec {
            rights: rights.clone(),
            budget: budget.clone(),
            tools,
            secrets,
            overlays,
            cancel: cancel.clone(),
        };
        let jar = arena.sandbox().open_jar(spec).map_err(|error| anyhow!("no jar: {error}"))?;
        let witness = Arc::clone(arena.witness());
        Ok(OpenJar { jar: Arc::new(jar), rights, budget, cancel, witness })
    }
}

/// Compiles, describes and loads a component, and keeps it loaded, so later measurements contain only the
/// calls.
async fn describe_guest(
    arena: &Arena,
    wasm: &Wasm,
) -> Result<BTreeMap<ToolName, ToolHints>, Escape> {
    let infos = arena.sandbox().describe_tools(wasm).await;
    let infos = infos.map_err(|error| Escape::new(format!("the guest is refused: {error}")))?;
    arena.keep_loaded(wasm).await?;
    Ok(infos.iter().map(|tool| (tool.name.clone(), tool.hints)).collect())
}

impl OpenJar {
    /// Calls a tool with arguments as text, which need not be JSON.
    pub async fn call_raw(&self, tool: &str, arguments: &str) -> CallResult {
        let result = match self.rights.tool(tool) {
            Ok(permit) => self.jar.call_permitted(permit, arguments).await,
            Err(denied) => CallResult {
                outcome: Err(CallError::Refused(denied.code)),
                receipt: belljar_sandbox::Receipt::for_call(tool, "", arguments),
            },
        };
        self.witness.inspect_result(&result);
        result
    }

    /// Calls a tool; records its answer for the search for secrets.
    pub async fn call_tool(&self, tool: &str, arguments: Value) -> AttackCall {
        AttackCall::from_result(self.call_raw(tool, &arguments.to_string()).await)
    }

    /// Calls the tool of a guest without arguments.
    pub async fn call_guest(&self, guest: Guest) -> AttackCall {
        self.call_tool(guest.name, json!({})).await
    }

    /// Has the probe execute these steps.
    ///
    /// # Errors
    /// When the call as a whole is stopped; use [`Self::try_steps`] if that is expected.
    pub async fn run_steps(&self, steps: Value) -> Result<StepResults, Escape> {
        let call = self.try_steps(steps).await;
        let Ok(output) = &call.result.outcome else {
            return Err(Escape::new(format!("the probe did not answer: {}", call.told)));
        };
        let said = match output.parts.as_slice() {
            [OutputPart::Json(text)] => serde_json::from_str(text).ok(),
            _ => None,
        };
        let Some(said) = said else {
            return Err(Escape::new(format!("not an answer of the probe: {:?}", output.parts)));
        };
        Ok(StepResults { said, call })
    }

    /// Has the probe execute these steps; the call may also be stopped as a whole.
    pub async fn try_steps(&self, steps: Value) -> AttackCall {
        self.call_tool(crate::guests::PROBE.name, json!({ "steps": steps })).await
    }

    /// The jar.
    pub fn jar(&self) -> &Jar {
        &self.jar
    }

    /// The rights of the jar.
    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    /// Closes the jar, and checks that its memory was returned.
    pub(crate) async fn close(&self) -> Result<(), Escape> {
        let left = self.jar.close().await;
        if !left.is_empty() {
            return Err(Escape::new(format!("still going on after its jar was closed: {left:?}")));
        }
        let held = self.budget.spent_amount(Meter::Memory);
        if held > 0 {
            return Err(Escape::new(format!("{held} bytes of a closed jar were not given back")));
        }
        Ok(())
    }
}

impl AttackCall {
    /// Collects the output's parts, or the error, as one text.
    fn from_result(result: CallResult) -> Self {
        let told = match &result.outcome {
            Ok(output) => {
                let part = |part: &OutputPart| match part {
                    OutputPart::Text(text) | OutputPart::Json(text) => text.clone(),
                    OutputPart::Attachment { name, media_type, data } => {
                        format!("[{name}, {media_type}, {} bytes]", data.len())
                    }
                };
                output.parts.iter().map(part).collect()
            }
            Err(error) => error.to_string(),
        };
        Self { result, told }
    }

    /// Returns the verdict "stopped" with the call's answer if `holds`; otherwise an [`Escape`] that names
    /// `expected`.
    pub fn stopped_if(&self, holds: bool, expected: &str) -> Stopped {
        if holds {
            return Ok(Verdict::with_words(self.told.clone()));
        }
        let told: String = self.told.chars().take(500).collect();
        let ending = &self.result.receipt.ending;
        Err(Escape::new(format!("expected {expected}; it ended as {ending:?}, told: {told}")))
    }

    /// Checks that the call ended because this budget was used up: the call's own or its agent's.
    pub fn check_exhausted(&self, meter: Meter) -> Stopped {
        let holds = matches!(&self.result.outcome,
            Err(CallError::Exhausted(which)) if which.meter == meter);
        self.stopped_if(holds, &format!("the {meter} budget to run out"))
    }

    /// Checks that the call reached its time limit.
    pub fn check_timed_out(&self) -> Stopped {
        let holds = matches!(self.result.outcome, Err(CallError::TimedOut(_)));
        self.stopped_if(holds, "its time to pass")
    }

    /// Checks that the guest trapped, with `name` in the trap's name.
    pub fn check_trapped(&self, name: &str) -> Stopped {
        let holds =
            matches!(&self.result.outcome, Err(CallError::Trapped(trap)) if trap.contains(name));
        self.stopped_if(holds, &format!("a trap with `{name}`"))
    }

    /// Checks that the host refused the form of the tool's output, with `why` in the reason.
    pub fn check_bad_output(&self, why: &str) -> Stopped {
        let holds = matches!(&self.result.outcome,
            Err(CallError::BadOutput(told)) if told.contains(why));
        self.stopped_if(holds, &format!("an unusable output: {why}"))
    }

    /// Checks that the tool returned an error of the given kind.
    pub fn tool_error(&self, expected: ToolErrorKind) -> Stopped {
        let holds = matches!(&self.result.outcome,
            Err(CallError::Tool { kind, .. }) if *kind == expected);
        self.stopped_if(holds, &format!("a tool error: {expected}"))
    }

    /// Checks that the receipt has a refusal with the given code.
    pub fn check_denied(&self, code: DenyCode) -> Stopped {
        let holds = self.result.receipt.denials.iter().any(|denial| denial.code == code);
        self.stopped_if(holds, &format!("a refusal in the receipt: {code}"))
    }

    /// Checks that the call completed.
    pub fn check_completed(&self) -> Stopped {
        self.stopped_if(self.result.receipt.ending == CallEnding::Completed, "an answer")
    }
}

impl StepResults {
    /// The value of a step that succeeded.
    ///
    /// # Errors
    /// When the step failed.
    pub fn step_value(&self, step: usize) -> Result<&Value, Escape> {
        self.said.get(step).and_then(|said| said.get("ok")).ok_or_else(|| {
            Escape::new(format!("step {step} should have gone well: {}", self.format_step(step)))
        })
    }

    /// The error word with which a step was refused.
    ///
    /// # Errors
    /// When the step was not refused.
    pub fn step_error(&self, step: usize) -> Result<&str, Escape> {
        let error = self.said.get(step).and_then(|said| said.get("error")).and_then(Value::as_str);
        error.ok_or_else(|| {
            Escape::new(format!("step {step} was not refused: {}", self.format_step(step)))
        })
    }

    /// Checks that the last step was refused with the given word.
    pub fn check_refused(&self, word: &str) -> Stopped {
        let last = self.said.len().saturating_sub(1);
        let error = self.step_error(last)?;
        self.call.stopped_if(error.contains(word), &format!("`{word}`"))?;
        Ok(Verdict::with_words(error))
    }

    /// Checks that every step from `from` on was refused with one of the given words.
    pub fn all_refused(&self, from: usize, words: &[&str]) -> Stopped {
        let mut told: Vec<&str> = Vec::new();
        for step in from..self.said.len() {
            let error = self.step_error(step)?;
            if !words.iter().any(|word| error.contains(word)) {
                let shown = self.format_step(step);
                return Err(Escape::new(format!("step {step} gave {shown}, not {words:?}")));
            }
            if !told.contains(&error) {
                told.push(error);
            }
        }
        if told.is_empty() {
            return Err(Escape::new("no step was made"));
        }
        Ok(Verdict::with_words(told.join(", ")))
    }

    /// How often a `repeat` step was executed, and its last refusal.
    ///
    /// # Errors
    /// When the step is not a `repeat` step.
    pub fn repeat_count(&self, step: usize) -> Result<(u64, Option<&str>), Escape> {
        let value = self.step_value(step)?;
        let done = value.get("done").and_then(Value::as_u64);
        let done = done.ok_or_else(|| Escape::new(format!("not a repetition: {value}")))?;
        Ok((done, value.get("error").and_then(Value::as_str)))
    }

    fn format_step(&self, step: usize) -> String {
        let text = self.said.get(step).map(Value::to_string).unwrap_or_default();
        text.chars().take(500).collect()
    }
}
