//! Jars of attackers, and the results of their calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use belljar_policy::{
    Access, Asked, Budget, Caps, DenyCode, Grants, GuestPath, HostRule, Level, Limits, Meter,
    Mount, Permission, Rights, SecretName, ToolAsk, ToolName,
};
use belljar_sandbox::{
    CallError, CallResult, Ending, Hints, Jar, JarSpec, JarTool, Overlay, OverlayQuota, Part,
    SecretStore, ToolErrorKind, Wasm,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::arena::Arena;
use crate::attack::{Escape, Stopped, Verdict};
use crate::guests::Guest;

/// The builder of a jar. The start: the workspace read-only, no hosts, no secret, default limits.
#[must_use = "a jar is made by `open`"]
pub struct AttackJarBuilder<'a> {
    arena: &'a Arena,
    tools: Vec<Wasm>,
    mounts: Vec<Mount>,
    sealed: bool,
    hosts: Vec<HostRule>,
    /// The first rule that could not be read; told by `open`.
    fault: Option<anyhow::Error>,
    bound: Vec<HostRule>,
    limits: Limits,
    parent: Option<Budget>,
    config: BTreeMap<String, String>,
    overlay: Option<OverlayQuota>,
    shared: Option<Overlay>,
}

/// A jar with its rights at hand.
#[derive(Debug, Clone)]
pub struct OpenJar {
    jar: Arc<Jar>,
    rights: Rights,
    /// Its budget.
    pub budget: Budget,
    /// Ends its calls.
    pub cancel: CancellationToken,
    witness: Arc<crate::witness::Witness>,
}

/// The result of one call. Each check gives the verdict if it holds, and an escape if not.
#[derive(Debug)]
pub struct Call {
    /// The result and its receipt.
    pub result: CallResult,
    /// The answer to the caller.
    pub told: String,
}

/// The results of the probe's steps.
#[derive(Debug)]
pub struct Steps {
    /// One for each step: `{"ok": ...}` or `{"error": ...}`.
    pub said: Vec<Value>,
    /// The call.
    pub call: Call,
}

impl Arena {
    /// A jar with these guests, to be granted what the attack needs.
    pub fn jar(&self, guests: &[Guest]) -> AttackJarBuilder<'_> {
        AttackJarBuilder::new(self, guests.iter().map(|guest| self.suite.wasm(guest)).collect())
    }

    /// A jar with components of the attack's own making.
    pub fn jar_of(&self, components: Vec<Wasm>) -> AttackJarBuilder<'_> {
        AttackJarBuilder::new(self, components)
    }
}

impl<'a> AttackJarBuilder<'a> {
    pub(crate) fn new(arena: &'a Arena, tools: Vec<Wasm>) -> Self {
        Self {
            arena,
            tools,
            mounts: vec![Mount {
                guest: GuestPath::workspace(),
                host: arena.path("workspace"),
                access: Access::Read,
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

    /// Makes the workspace writable through an overlay, which holds this much.
    pub fn overlaid(mut self, quota: OverlayQuota) -> Self {
        for mount in &mut self.mounts {
            mount.access = Access::Overlay;
        }
        self.overlay = Some(quota);
        self
    }

    /// As [`Self::overlaid`], with an overlay that others have too.
    pub fn over(mut self, overlay: &Overlay) -> Self {
        for mount in &mut self.mounts {
            mount.access = Access::Overlay;
        }
        self.shared = Some(overlay.clone());
        self
    }

    /// Takes the workspace's access down to this.
    pub fn at_most(mut self, access: Access) -> Self {
        for mount in &mut self.mounts {
            mount.access = mount.access.min(access);
        }
        self
    }

    /// Makes the workspace writable.
    pub fn read_write(mut self) -> Self {
        for mount in &mut self.mounts {
            mount.access = Access::ReadWrite;
        }
        self
    }

    /// Takes all mounts away.
    pub fn no_mounts(mut self) -> Self {
        self.mounts.clear();
        self
    }

    /// Another mount: `folder` of the arena at `/folder` in the guest.
    pub fn mount(mut self, folder: &str, access: Access) -> Self {
        match GuestPath::new(&format!("/{folder}")) {
            Ok(guest) => self.mounts.push(Mount { guest, host: self.arena.path(folder), access }),
            Err(error) => self.fault = Some(error.into()),
        }
        self
    }

    /// A mount of any host directory at `/at`.
    pub fn mount_host(mut self, at: &str, host: impl Into<PathBuf>, access: Access) -> Self {
        match GuestPath::new(&format!("/{at}")) {
            Ok(guest) => self.mounts.push(Mount { guest, host: host.into(), access }),
            Err(error) => self.fault = Some(error.into()),
        }
        self
    }

    /// Lets something else change the read-only mounts meanwhile: they are not compared.
    pub fn unsealed(mut self) -> Self {
        self.sealed = false;
        self
    }

    /// Grants a host, as `belljar.toml` writes it.
    pub fn host(mut self, rule: &str) -> Self {
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

    /// Changes the limits.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Puts the jar's budget below another.
    pub fn under(mut self, parent: &Budget) -> Self {
        self.parent = Some(parent.clone());
        self
    }

    /// A setting of its tools.
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.config.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Makes the jar. Its components are compiled, described and loaded first; with the
    /// first jar of an arena the picture of everything else is taken.
    ///
    /// # Errors
    ///
    /// When a component is refused or a mount cannot be opened.
    pub async fn open(self) -> Result<OpenJar, Escape> {
        let arena = self.arena;
        let jar = self.make().await?;
        arena.remember(&jar);
        Ok(jar)
    }

    /// As [`Self::open`], for a jar that the caller closes.
    pub(crate) async fn make(self) -> Result<OpenJar, Escape> {
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
            let offered = describe(arena, &wasm).await?;
            granted.extend(offered.keys().map(|name| (name.clone(), Permission::Allow)));
            let config = Arc::new(self.config.clone());
            tools.push(JarTool { tools: offered, wasm, ask: ask.clone(), config });
        }
        if self.sealed {
            arena.seal(&self.mounts)?;
        }
        arena.take_picture()?;
        let grants = Grants {
            tools: granted,
            mounts: self.mounts,
            hosts: vec![self.hosts],
            secrets: names,
            limits: self.limits,
        };
        let (rights, _) = Rights::effective(&Asked::default(), &grants, None);
        let caps = Caps::of(&self.limits);
        let budget = match &self.parent {
            Some(parent) => parent.child(Level::Subagent, caps),
            None => Budget::root(Level::Subagent, caps),
        };
        let opened = self.overlay.map(|quota| arena.overlay(quota)).transpose()?;
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
        let jar = arena.sandbox().jar(spec).map_err(|error| anyhow!("no jar: {error}"))?;
        let witness = Arc::clone(arena.witness());
        Ok(OpenJar { jar: Arc::new(jar), rights, budget, cancel, witness })
    }
}

/// Compiles, asks and keeps a component loaded, so that calls measure calls.
async fn describe(arena: &Arena, wasm: &Wasm) -> Result<BTreeMap<ToolName, Hints>, Escape> {
    let infos = arena.sandbox().describe(wasm).await;
    let infos = infos.map_err(|error| Escape::new(format!("the guest is refused: {error}")))?;
    arena.keep_loaded(wasm).await?;
    Ok(infos.iter().map(|tool| (tool.name.clone(), tool.hints)).collect())
}

impl OpenJar {
    /// Calls a tool with arguments as text.
    pub async fn raw(&self, tool: &str, arguments: &str) -> CallResult {
        let result = match self.rights.tool(tool) {
            Ok(permit) => self.jar.call(permit, arguments).await,
            Err(denied) => CallResult {
                outcome: Err(CallError::Refused(denied.code)),
                receipt: belljar_sandbox::Receipt::empty(tool, "", arguments),
            },
        };
        self.witness.saw(&result);
        result
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> Call {
        Call::of(self.raw(tool, &arguments.to_string()).await)
    }

    /// Calls the tool of a guest without arguments.
    pub async fn strike(&self, guest: Guest) -> Call {
        self.call(guest.name, json!({})).await
    }

    /// Lets the probe do its steps and expects an answer.
    ///
    /// # Errors
    ///
    /// When the call as a whole is stopped; see [`Self::try_steps`] where that is what is
    /// expected.
    pub async fn steps(&self, steps: Value) -> Result<Steps, Escape> {
        let call = self.try_steps(steps).await;
        let Ok(output) = &call.result.outcome else {
            return Err(Escape::new(format!("the probe did not answer: {}", call.told)));
        };
        let said = match output.parts.as_slice() {
            [Part::Json(text)] => serde_json::from_str(text).ok(),
            _ => None,
        };
        let Some(said) = said else {
            return Err(Escape::new(format!("not an answer of the probe: {:?}", output.parts)));
        };
        Ok(Steps { said, call })
    }

    /// Lets the probe do its steps, whatever comes of it.
    pub async fn try_steps(&self, steps: Value) -> Call {
        self.call(crate::guests::PROBE.name, json!({ "steps": steps })).await
    }

    /// The jar itself.
    pub fn jar(&self) -> &Jar {
        &self.jar
    }

    /// Its rights.
    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    /// Closes it, and finds its memory given back.
    pub(crate) async fn close(&self) -> Result<(), Escape> {
        let left = self.jar.close().await;
        if !left.is_empty() {
            return Err(Escape::new(format!("still going on after its jar was closed: {left:?}")));
        }
        let held = self.budget.spent(Meter::Memory);
        if held > 0 {
            return Err(Escape::new(format!("{held} bytes of a closed jar were not given back")));
        }
        Ok(())
    }
}

impl Call {
    fn of(result: CallResult) -> Self {
        let told = match &result.outcome {
            Ok(output) => {
                let part = |part: &Part| match part {
                    Part::Text(text) | Part::Json(text) => text.clone(),
                    Part::Attachment { name, media_type, data } => {
                        format!("[{name}, {media_type}, {} bytes]", data.len())
                    }
                };
                output.parts.iter().map(part).collect()
            }
            Err(error) => error.to_string(),
        };
        Self { result, told }
    }

    /// Stopped, with what it was told, if this holds.
    pub fn stopped_if(&self, holds: bool, expected: &str) -> Stopped {
        if holds {
            return Ok(Verdict::told(self.told.clone()));
        }
        let told: String = self.told.chars().take(500).collect();
        let ending = &self.result.receipt.ending;
        Err(Escape::new(format!("expected {expected}; it ended as {ending:?}, told: {told}")))
    }

    /// A budget of the call, or of what is above it, ran out.
    pub fn exhausted(&self, meter: Meter) -> Stopped {
        let holds = matches!(&self.result.outcome,
            Err(CallError::Exhausted(which)) if which.meter == meter);
        self.stopped_if(holds, &format!("the {meter} budget to run out"))
    }

    /// Its wall-clock time passed.
    pub fn timed_out(&self) -> Stopped {
        let holds = matches!(self.result.outcome, Err(CallError::TimedOut(_)));
        self.stopped_if(holds, "its time to pass")
    }

    /// The guest trapped, and the trap's name holds this.
    pub fn trapped(&self, name: &str) -> Stopped {
        let holds =
            matches!(&self.result.outcome, Err(CallError::Trapped(trap)) if trap.contains(name));
        self.stopped_if(holds, &format!("a trap with `{name}`"))
    }

    /// The answer was refused for its form, for this reason.
    pub fn bad_output(&self, why: &str) -> Stopped {
        let holds = matches!(&self.result.outcome,
            Err(CallError::BadOutput(told)) if told.contains(why));
        self.stopped_if(holds, &format!("an unusable output: {why}"))
    }

    /// The tool gave an error of this kind.
    pub fn tool_error(&self, expected: ToolErrorKind) -> Stopped {
        let holds = matches!(&self.result.outcome,
            Err(CallError::Tool { kind, .. }) if *kind == expected);
        self.stopped_if(holds, &format!("a tool error: {expected}"))
    }

    /// The receipt holds a refusal with this code.
    pub fn denied(&self, code: DenyCode) -> Stopped {
        let holds = self.result.receipt.denials.iter().any(|denial| denial.code == code);
        self.stopped_if(holds, &format!("a refusal in the receipt: {code}"))
    }

    /// It ended well.
    pub fn completed(&self) -> Stopped {
        self.stopped_if(self.result.receipt.ending == Ending::Completed, "an answer")
    }
}

impl Steps {
    /// The value of a step that went well.
    ///
    /// # Errors
    ///
    /// When it did not.
    pub fn ok(&self, step: usize) -> Result<&Value, Escape> {
        self.said.get(step).and_then(|said| said.get("ok")).ok_or_else(|| {
            Escape::new(format!("step {step} should have gone well: {}", self.shown(step)))
        })
    }

    /// The word with which a step was refused.
    ///
    /// # Errors
    ///
    /// When it was not refused.
    pub fn error(&self, step: usize) -> Result<&str, Escape> {
        let error = self.said.get(step).and_then(|said| said.get("error")).and_then(Value::as_str);
        error.ok_or_else(|| {
            Escape::new(format!("step {step} was not refused: {}", self.shown(step)))
        })
    }

    /// The last step was refused with this word.
    pub fn refused(&self, word: &str) -> Stopped {
        let last = self.said.len().saturating_sub(1);
        let error = self.error(last)?;
        self.call.stopped_if(error.contains(word), &format!("`{word}`"))?;
        Ok(Verdict::told(error))
    }

    /// Every step from this one on was refused with one of these words.
    pub fn all_refused(&self, from: usize, words: &[&str]) -> Stopped {
        let mut told: Vec<&str> = Vec::new();
        for step in from..self.said.len() {
            let error = self.error(step)?;
            if !words.iter().any(|word| error.contains(word)) {
                let shown = self.shown(step);
                return Err(Escape::new(format!("step {step} gave {shown}, not {words:?}")));
            }
            if !told.contains(&error) {
                told.push(error);
            }
        }
        if told.is_empty() {
            return Err(Escape::new("no step was made"));
        }
        Ok(Verdict::told(told.join(", ")))
    }

    /// How often a `repeat` step was done, and the last refusal.
    ///
    /// # Errors
    ///
    /// When the step is not one of that kind.
    pub fn repeated(&self, step: usize) -> Result<(u64, Option<&str>), Escape> {
        let value = self.ok(step)?;
        let done = value.get("done").and_then(Value::as_u64);
        let done = done.ok_or_else(|| Escape::new(format!("not a repetition: {value}")))?;
        Ok((done, value.get("error").and_then(Value::as_str)))
    }

    fn shown(&self, step: usize) -> String {
        let text = self.said.get(step).map(Value::to_string).unwrap_or_default();
        text.chars().take(500).collect()
    }
}
