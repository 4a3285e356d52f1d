//! The decision whether and how a tool call is executed: the second of the three places that enforce the
//! allowlist. Pure: no call has an effect here.
//!
//! An unknown, misspelt or denied name gets the same answer, which names only the advertised tools, so that a
//! model does not learn about denied tools or how to get them.

use std::collections::{BTreeMap, BTreeSet};

use belljar_definition::UseTerms;
use belljar_model::ToolCall;
use belljar_policy::{
    CallPermission, DecisionExplanation, DecisionSource, DenyCode, PolicyDenial, Rights, ShownText,
    ToolName, ToolPermit,
};
use serde::de::IgnoredAny;

use crate::finding::catalogue::EntryKind;
use crate::limits::{MAX_ARGUMENT_BYTES, MAX_CALLS_PER_STEP};
use crate::rights::decide::DecisionReasons;
use crate::schema::{SchemaCheck, Verdict};
use crate::tools::alias::{self, ToolAliases};
use crate::tools::answer::CallAnswer;
use crate::tools::builtin::arguments::BuiltinCall;
use crate::tools::builtin::tool::BuiltinTool;
use crate::tools::call::arguments;
use crate::tools::caller::CallerTools;
use crate::tools::in_use::SkillNarrowing;

/// Who executes an advertised tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolProvider {
    /// A component in the jar.
    Jar,
    /// The host itself.
    Builtin(BuiltinTool),
}

/// The tools shown to one agent, and the rights that bound its calls.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    rights: Rights,
    advertised: BTreeMap<ToolName, ToolProvider>,
    /// Tools that code of another tool may call but the model may not.
    in_code: BTreeSet<ToolName>,
    aliases: ToolAliases,
    reasons: DecisionReasons,
    /// The tools that the caller, not belljar, executes.
    callers: CallerTools,
    /// How a skill in use narrows the rights; `None` = skills narrow nothing.
    narrowing: Option<SkillNarrowing>,
    /// True once a skill has narrowed the rights.
    is_narrowed: bool,
    /// The agent's search tools, each with the tool whose list the search extends: without the right to use
    /// the tool, an agent may not search either.
    finders: BTreeMap<EntryKind, ToolName>,
}

/// What happens with a call; decided before any effect.
#[derive(Debug)]
pub(crate) enum CallDecision {
    /// The jar calls the component, with the permit.
    Tool(ToolPermit),
    /// The host executes the built-in tool, with the permit.
    Builtin(ToolPermit, BuiltinCall),
    /// The call is answered without being executed.
    Refuse(CallRefusal),
    /// The caller executes the call, and the agent's turn ends.
    HandOver,
}

/// A call that is answered without being executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallRefusal {
    /// The text that the model reads.
    pub(crate) text: String,
    /// The reason, in the receipt's form.
    pub(crate) reason: RefusalReason,
}

/// Why a call is not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    /// A right is missing.
    Denied(PolicyDenial),
    /// The call is malformed, or exceeds a bound.
    Malformed(String),
}

impl Dispatcher {
    /// Creates the dispatcher. `advertised` is intersected with `rights`, so a mistake of the caller
    /// cannot widen them; `aliases` has the names shown to the model.
    pub(crate) fn new(
        rights: Rights,
        advertised: BTreeMap<ToolName, ToolProvider>,
        aliases: ToolAliases,
    ) -> Self {
        let mut advertised = advertised;
        advertised.retain(|name, _| rights.tool_permission(name.as_str()) != CallPermission::Deny);
        let in_code = BTreeSet::new();
        let (reasons, callers) = (DecisionReasons::default(), CallerTools::default());
        let (narrowing, is_narrowed, finders) = (None, false, BTreeMap::new());
        Self {
            rights,
            advertised,
            in_code,
            aliases,
            reasons,
            callers,
            narrowing,
            is_narrowed,
            finders,
        }
    }

    /// Sets where refusals take their reasons from.
    pub(crate) fn with_reasons(self, reasons: DecisionReasons) -> Self {
        Self { reasons, ..self }
    }

    /// Sets how skills in use narrow the rights.
    pub(crate) fn with_narrowing(self, narrowing: SkillNarrowing) -> Self {
        Self { narrowing: Some(narrowing), ..self }
    }

    /// Narrows the rights, from now on, to those that the skill `name` leaves.
    pub(crate) fn use_skill(&mut self, name: &str) {
        let narrowing = self.narrowing.as_ref();
        if let Some(left) = narrowing.and_then(|it| it.narrow_by_skill(&self.rights, name)) {
            (self.rights, self.is_narrowed) = (left, true);
        }
    }

    /// Narrows the rights to those that these terms leave, from now on. `what` explains refusals.
    pub(crate) fn use_terms(&mut self, terms: &UseTerms, what: &str) {
        let narrowing = self.narrowing.as_ref();
        if let Some(left) = narrowing.and_then(|it| it.narrow_by_terms(&self.rights, terms, what)) {
            (self.rights, self.is_narrowed) = (left, true);
        }
    }

    /// The rights that used skills have left; `None` = all of the agent's.
    pub(crate) fn narrowed_rights(&self) -> Option<&Rights> {
        self.is_narrowed.then_some(&self.rights)
    }

    /// Adds tools that the caller executes.
    pub(crate) fn with_caller_tools(self, callers: CallerTools) -> Self {
        Self { callers, ..self }
    }

    /// Adds the search tools, for example `find_agent`.
    pub(crate) fn with_finders(self, finders: BTreeMap<EntryKind, ToolName>) -> Self {
        Self { finders, ..self }
    }

    /// Refuses calls of the caller's tools beyond the number that the caller allows in one step.
    pub(crate) fn refuse_excess(&self, decisions: &mut [CallDecision]) {
        self.callers.refuse_excess(decisions);
    }

    /// The schema check that a call of a caller's tool needs before the decision; `None` = no check.
    pub(crate) fn check_of(&self, call: &ToolCall, position: usize) -> Option<SchemaCheck> {
        self.callers.arguments_check(call, position)
    }

    /// Hides all tools but `code` and `use_skill` from the model, which then uses the others from the code in its
    /// calls.
    pub(crate) fn with_code_tool(self, code: &ToolName) -> Self {
        let hidden = |tool: &&ToolName| *tool != code && tool.as_str() != BuiltinTool::Skill.name();
        let in_code = self.advertised.keys().filter(hidden).cloned().collect();
        Self { in_code, ..self }
    }

    /// Explains whether a tool may be called, with the source that decided.
    pub(crate) fn explain_tool(&self, tool: &str) -> DecisionExplanation {
        let decision = self.reasons.decide_tool(&self.rights, tool);
        match decision.permission {
            CallPermission::Allow | CallPermission::Ask if !self.advertised.contains_key(tool) => {
                decision.with_refusal("it is not offered here")
            }
            CallPermission::Allow | CallPermission::Ask | CallPermission::Deny => decision,
        }
    }

    /// Returns whether a tool, by belljar's name, may be called at all.
    pub(crate) fn offers_tool(&self, tool: &str) -> bool {
        self.advertised.contains_key(tool) && self.rights.has_tool(tool)
    }

    /// Belljar's name of a tool that the model knows under another name.
    pub(crate) fn own_name<'a>(&self, shown: &'a str) -> &'a str {
        self.aliases.find_alias(shown).map_or(shown, |alias| alias.tool)
    }

    /// The names that the model may call.
    fn callable_names(&self) -> impl Iterator<Item = &str> {
        let shown = self.advertised.keys().filter(|tool| !self.in_code.contains(*tool));
        let shown = shown.filter(|tool| self.rights.has_tool(tool.as_str()));
        let own = shown.flat_map(|tool| {
            let shown = self.aliases.alias_names(tool.as_str());
            if shown.is_empty() { vec![tool.as_str()] } else { shown }
        });
        let finders = self.finders.keys().map(|kind| kind.finder_name());
        own.chain(finders).chain(self.callers.tool_names())
    }

    /// Translates a call under a shown name to belljar's name and arguments; `None` = the call is already in
    /// belljar's form.
    pub(crate) fn translate_call(&self, call: &ToolCall) -> Result<Option<ToolCall>, CallRefusal> {
        match self.aliases.find_alias(&call.name) {
            Some(alias) if self.advertised.contains_key(alias.tool) => {
                check_arguments(&call.arguments)?;
                alias::translate_call(alias, call).map(Some).map_err(CallRefusal::malformed_call)
            }
            None if self.aliases.alias_names(&call.name).is_empty() => Ok(None),
            Some(alias) => {
                Err(self.not_allowed(self.explain_tool(alias.tool).to_denial(alias.tool)))
            }
            None => {
                // The full name is not shown here: the receipt cuts it.
                let facts = format!("tool `{}` is not offered by that name", call.name);
                let denied =
                    PolicyDenial::new(DenyCode::ToolNotAllowed, DecisionSource::Host, facts);
                Err(self.not_allowed(denied))
            }
        }
    }

    /// The names of a tool: its own, and the shown ones.
    pub(crate) fn names_of<'a>(&self, tool: &'a str) -> Vec<&'a str> {
        std::iter::once(tool).chain(self.aliases.alias_names(tool)).collect()
    }

    /// Rewrites an answer to have the name `called`, used by the model for the call.
    pub(crate) fn reword_answer(&self, called: &str, answer: CallAnswer) -> CallAnswer {
        self.aliases.reword_answer(called, answer)
    }

    /// Decides about a call that the model itself made. INV-240: the model cannot call a tool that was not
    /// shown, though code can. `verdict` is the result of [`Dispatcher::check_of`].
    pub(crate) fn decide_asked(
        &self,
        call: &ToolCall,
        position: usize,
        verdict: Option<&Verdict>,
    ) -> CallDecision {
        if let Some(decision) = self.callers.decide_call(call, position, verdict) {
            return decision;
        }
        if !self.in_code.contains(call.name.as_str()) {
            return self.decide_call(call, position);
        }
        let facts = format!("tool `{}` is called from code alone", call.name);
        let denied = PolicyDenial::new(DenyCode::ToolNotAllowed, DecisionSource::Host, facts);
        CallDecision::Refuse(self.not_allowed(denied))
    }

    /// Decides about a call under belljar's name. `position` is its place in the step, from 0.
    pub(crate) fn decide_call(&self, call: &ToolCall, position: usize) -> CallDecision {
        if position >= MAX_CALLS_PER_STEP {
            let text = format!("too many calls in one step: at most {MAX_CALLS_PER_STEP}");
            return CallDecision::Refuse(CallRefusal::malformed_call(text));
        }
        match self.check_call(call) {
            Ok(decision) => decision,
            Err(refusal) => CallDecision::Refuse(refusal),
        }
    }

    /// Checks rights, then arguments, and returns the executor of the call.
    fn check_call(&self, call: &ToolCall) -> Result<CallDecision, CallRefusal> {
        if let Some((kind, permit)) = self.find_finder(&call.name) {
            check_arguments(&call.arguments)?;
            let search = BuiltinCall::parse_search(kind, arguments(call));
            let search = search.map_err(CallRefusal::malformed_call)?;
            return Ok(CallDecision::Builtin(permit, search));
        }
        let offered = self.advertised.get(call.name.as_str());
        let (Ok(permit), Some(provider)) = (self.rights.tool(&call.name), offered) else {
            return Err(self.not_allowed(self.explain_tool(&call.name).to_denial(&call.name)));
        };
        check_arguments(&call.arguments)?;
        match provider {
            ToolProvider::Jar => Ok(CallDecision::Tool(permit)),
            ToolProvider::Builtin(tool) => {
                let builtin = BuiltinCall::parse(*tool, arguments(call))
                    .map_err(CallRefusal::malformed_call)?;
                Ok(CallDecision::Builtin(permit, builtin))
            }
        }
    }

    /// The search tool of this name, with a permit for the tool whose list it extends.
    fn find_finder(&self, name: &str) -> Option<(EntryKind, ToolPermit)> {
        let kind = EntryKind::from_finder_name(name)?;
        let carrier = self.finders.get(&kind)?;
        Some((kind, self.rights.tool(carrier.as_str()).ok()?))
    }

    /// The refusal of a call without a right. The text names only the tools that the model may call.
    fn not_allowed(&self, denied: PolicyDenial) -> CallRefusal {
        let names: Vec<String> = self.callable_names().map(|name| format!("`{name}`")).collect();
        let text = if names.is_empty() {
            format!("{}: no tools are available", denied.code)
        } else {
            format!("{}: the available tools are {}", denied.code, names.join(", "))
        };
        CallRefusal { text, reason: RefusalReason::Denied(denied) }
    }
}

impl CallDecision {
    /// The permit of a call that will be executed; `None` = refused or for the caller.
    pub(crate) fn tool_permit(&self) -> Option<&ToolPermit> {
        match self {
            Self::Tool(permit) | Self::Builtin(permit, _) => Some(permit),
            Self::Refuse(_) | Self::HandOver => None,
        }
    }

    /// Replaces the permit, for example after a person's yes, by another one for the same tool.
    pub(crate) fn with_permit(self, change: impl FnOnce(ToolPermit) -> ToolPermit) -> Self {
        match self {
            Self::Tool(permit) => Self::Tool(change(permit)),
            Self::Builtin(permit, builtin) => Self::Builtin(change(permit), builtin),
            Self::Refuse(refusal) => Self::Refuse(refusal),
            Self::HandOver => Self::HandOver,
        }
    }
}

impl CallRefusal {
    /// The warning for a person about a subagent of a batch that was refused. The others run, so the call
    /// does not fail.
    pub(crate) fn child_warning(&self, agent: Option<&str>) -> String {
        let agent = ShownText::clip_line(agent.unwrap_or("general-purpose"), 64);
        let why = match &self.reason {
            RefusalReason::Denied(denied) => &denied.facts,
            RefusalReason::Malformed(text) => text,
        };
        format!("subagent `{agent}` was not started: {why}")
    }

    /// The refusal of a malformed call. `text` names the fault, for the model.
    pub(crate) fn malformed_call(text: String) -> Self {
        Self { reason: RefusalReason::Malformed(text.clone()), text }
    }
}

/// Checks that arguments are one JSON object within [`MAX_ARGUMENT_BYTES`]. The tool gets the bytes
/// unchanged, except that half a surrogate pair becomes U+FFFD (INV-471).
pub(crate) fn check_arguments(arguments: &str) -> Result<(), CallRefusal> {
    if arguments.len() > MAX_ARGUMENT_BYTES {
        let text = format!(
            "invalid arguments: {} bytes, at most {MAX_ARGUMENT_BYTES} are accepted",
            arguments.len()
        );
        return Err(CallRefusal::malformed_call(text));
    }
    let trimmed = arguments.trim();
    if trimmed.is_empty() {
        return Ok(());
    }
    let parsed = serde_json::from_str::<IgnoredAny>(arguments);
    if let Err(error) = parsed {
        // The message of serde_json names positions and expected characters, and may quote a character of the
        // arguments.
        let shown = ShownText::clip_line(&error.to_string(), 200).to_string();
        return Err(CallRefusal::malformed_call(format!(
            "invalid arguments: not valid JSON ({shown}); send one JSON object"
        )));
    }
    if !trimmed.starts_with('{') {
        let text = "invalid arguments: not a JSON object; send one, such as {\"path\": \"a\"}";
        return Err(CallRefusal::malformed_call(text.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_policy::{AskedRights, Grants};

    /// A dispatcher with rights to `granted` tools, of which `shown` are advertised.
    fn dispatcher(granted: &[&str], shown: &[&str]) -> Dispatcher {
        let mut grants = Grants::none();
        for name in granted {
            grants.tools.insert(ToolName::new(name).unwrap(), CallPermission::Allow);
        }
        let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
        let advertised = shown.iter().map(|name| (ToolName::new(name).unwrap(), ToolProvider::Jar));
        Dispatcher::new(rights, advertised.collect(), ToolAliases::default())
    }

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() }
    }

    /// The refusal of a call, which must be refused.
    fn refusal(dispatcher: &Dispatcher, call: &ToolCall) -> CallRefusal {
        match dispatcher.decide_call(call, 0) {
            CallDecision::Refuse(refusal) => refusal,
            decision => panic!("not refused: {decision:?}"),
        }
    }

    #[test]
    fn unknown_and_forbidden_names_get_one_answer_without_a_recipe() {
        let it = dispatcher(&["file_read", "gone"], &["file_read", "file_write"]);
        let texts: Vec<String> = ["file_write", "gone", "File_Read", "file_read ", "", "../x"]
            .iter()
            .map(|name| refusal(&it, &call(name, "{}")).text)
            .collect();
        for text in &texts {
            assert_eq!(text, "tool not allowed: the available tools are `file_read`");
        }
        let bare = dispatcher(&[], &["file_read"]);
        let text = refusal(&bare, &call("file_read", "{}")).text;
        assert_eq!(text, "tool not allowed: no tools are available");
    }

    #[test]
    fn a_refusal_names_who_decided() {
        let mut grants = Grants::none();
        for name in ["listed", "given_up", "unlisted", "gone"] {
            grants.tools.insert(ToolName::new(name).unwrap(), CallPermission::Allow);
        }
        let name = |name: &str| ToolName::new(name).unwrap();
        let asked = AskedRights {
            tools: Some(["listed", "given_up", "not_granted", "gone"].map(name).into()),
            at_most: [(name("given_up"), CallPermission::Deny)].into(),
            ..AskedRights::default()
        };
        let (rights, _) = Rights::intersect_rights(&asked, &grants, None);
        let it = Dispatcher::new(rights, BTreeMap::new(), ToolAliases::default());
        for (tool, by) in [
            ("given_up", DecisionSource::Definition),
            ("unlisted", DecisionSource::Definition),
            ("not_granted", DecisionSource::Grants),
            ("gone", DecisionSource::Host),
        ] {
            let RefusalReason::Denied(denied) = refusal(&it, &call(tool, "{}")).reason else {
                panic!("{tool}");
            };
            assert_eq!(denied.by, by, "{tool}: {denied}");
            assert_eq!(it.explain_tool(tool).decided_by, Some(by), "{tool}");
        }
    }

    #[test]
    fn arguments_must_be_one_object_within_the_bound() {
        let it = dispatcher(&["t"], &["t"]);
        for bad in ["{", "[]", "1", "null", "{} {}", "{\"a\":}", "\u{feff}{}"] {
            let refused = refusal(&it, &call("t", bad));
            assert!(refused.text.starts_with("invalid arguments: "), "{bad}: {}", refused.text);
        }
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_ARGUMENT_BYTES));
        assert!(refusal(&it, &call("t", &long)).text.contains("at most"));
        // Deep nesting costs the host no stack; what the tool makes of it is its own affair.
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        for good in ["", " ", "{}", " {\"a\": 1}\n", deep.as_str()] {
            assert!(matches!(it.decide_call(&call("t", good), 0), CallDecision::Tool(_)));
        }
    }

    #[test]
    fn tools_that_were_shown_as_code_are_called_from_code_alone() {
        let code = ToolName::new("run_python").unwrap();
        let it = dispatcher(&["run_python", "file_read"], &["run_python", "file_read"]);
        let it = it.with_code_tool(&code);
        let CallDecision::Refuse(refused) = it.decide_asked(&call("file_read", "{}"), 0, None)
        else {
            panic!("a tool that is not shown was called");
        };
        assert_eq!(refused.text, "tool not allowed: the available tools are `run_python`");
        assert!(matches!(
            it.decide_asked(&call("run_python", "{}"), 0, None),
            CallDecision::Tool(_)
        ));
        assert!(matches!(it.decide_call(&call("file_read", "{}"), 0), CallDecision::Tool(_)));
        assert!(it.offers_tool("file_read") && !it.offers_tool("file_write"));
    }

    #[test]
    fn calls_past_the_bound_of_a_step_are_answered_and_not_performed() {
        let it = dispatcher(&["t"], &["t"]);
        let call = call("t", "{}");
        assert!(matches!(it.decide_call(&call, MAX_CALLS_PER_STEP - 1), CallDecision::Tool(_)));
        assert!(matches!(it.decide_call(&call, MAX_CALLS_PER_STEP), CallDecision::Refuse(_)));
    }
}
