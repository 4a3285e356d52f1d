//! The tools of a caller: the model sees them beside the agent's own, and the caller executes them. A call of
//! such a tool ends the agent's turn and has no effect in belljar.

use std::collections::BTreeMap;

use belljar_catalogue::ToolCatalogue;
use belljar_model::{ToolCall, ToolChoice, ToolSpec};
use belljar_policy::{ShownText, ToolName};

use crate::brought::CallerInput;
use crate::limits::{MAX_CALLS_PER_STEP, MAX_TOOLS};
use crate::schema::{CompiledSchema, SchemaCheck, SchemaSet, Verdict};
use crate::tools::alias::ToolAliases;
use crate::tools::builtin::tool::BuiltinTool;
use crate::tools::call::arguments;
use crate::tools::dispatch::{CallDecision, CallRefusal, ToolProvider, check_arguments};

/// The prefix of the names of MCP servers' tools. Callers may not use it, because an operator may add servers
/// at any time.
const OF_SERVERS: &str = "mcp__";

/// A caller's tools, with the compiled schemas of their arguments. Empty by default.
#[derive(Debug, Default)]
pub(crate) struct CallerTools {
    tools: BTreeMap<String, CompiledSchema>,
    /// True if one step may have several calls of the caller's tools.
    several: bool,
    /// The caller's tool that the model must call, if the caller named one.
    named: Option<String>,
}

impl CallerTools {
    /// The caller's tools that the model sees after the agent's own. INV-280: a tool with the name of one of
    /// the agent's or belljar's tools, allowed or not, is left out, so calls cannot be confused.
    pub(crate) fn from_input(
        brought: &CallerInput,
        compiled: &SchemaSet,
        stock: &ToolCatalogue,
        advertised: &BTreeMap<ToolName, ToolProvider>,
        specs: &mut Vec<ToolSpec>,
        aliases: &ToolAliases,
    ) -> Result<Self, String> {
        if brought.tools.is_empty() {
            return match brought.choice {
                Some(_) => Err("no tool is brought that could be chosen".to_owned()),
                None => Ok(Self::default()),
            };
        }
        if specs.len().saturating_add(brought.tools.len()) > MAX_TOOLS {
            return Err(format!("with those of the agent there are more than {MAX_TOOLS} tools"));
        }
        let mut tools = BTreeMap::new();
        for tool in &brought.tools {
            let name = tool.name.as_str();
            let taken = advertised.contains_key(name)
                || name.starts_with(OF_SERVERS)
                || aliases.find_alias(name).is_some()
                || BuiltinTool::from_name(name).is_some()
                || stock.find_component(name).is_some()
                || specs.iter().any(|spec| spec.name == name);
            if taken {
                return Err(format!("`{name}` is the name of a tool of belljar's own"));
            }
            let schema = compiled.get(&tool.schema);
            let schema = schema.ok_or_else(|| format!("`{name}` has no compiled schema"))?;
            tools.insert(name.to_owned(), schema);
        }
        specs.extend(brought.tools.iter().cloned());
        let named = match &brought.choice {
            Some(ToolChoice::Named(name)) => Some(name.clone()),
            Some(ToolChoice::Required) | None => None,
        };
        if let Some(name) = named.as_ref().filter(|name| !tools.contains_key(*name)) {
            let name = ShownText::clip_line(name, 64);
            return Err(format!("`{name}` is none of the caller's tools, so it cannot be chosen"));
        }
        Ok(Self { tools, several: brought.several, named })
    }

    #[cfg(test)]
    pub(crate) fn for_tests(name: &str, schema: &serde_json::Value) -> Self {
        let schema = crate::schema::tests::compiled(schema).unwrap();
        Self { tools: BTreeMap::from([(name.to_owned(), schema)]), several: false, named: None }
    }

    /// The names of the caller's tools.
    pub(crate) fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// The schema check of the arguments in a call of a caller's tool; `None` = another tool, or no schema.
    pub(crate) fn arguments_check(&self, call: &ToolCall, position: usize) -> Option<SchemaCheck> {
        let schema = self.tools.get(&call.name)?;
        self.admit_call(call, position).ok()?;
        Some(SchemaCheck { schema: schema.clone(), text: arguments(call).to_owned() })
    }

    /// Decides about a call with the verdict on its arguments; `None` = the call is not of a caller's tool.
    pub(crate) fn decide_call(
        &self,
        call: &ToolCall,
        position: usize,
        verdict: Option<&Verdict>,
    ) -> Option<CallDecision> {
        self.tools.get(&call.name)?;
        let decided = self.admit_call(call, position).and_then(|()| match verdict {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => Err(CallRefusal::malformed_call(format!("invalid arguments: {why}"))),
            None => Err(CallRefusal::malformed_call("the arguments were not checked".to_owned())),
        });
        Some(match decided {
            Ok(()) => CallDecision::HandOver,
            Err(refusal) => CallDecision::Refuse(refusal),
        })
    }

    /// Checks that a call is within the bounds and calls the tool that the caller requires, if any.
    fn admit_call(&self, call: &ToolCall, position: usize) -> Result<(), CallRefusal> {
        if position >= MAX_CALLS_PER_STEP {
            let text = format!("too many calls in one step: at most {MAX_CALLS_PER_STEP}");
            return Err(CallRefusal::malformed_call(text));
        }
        if self.named.as_ref().is_some_and(|named| *named != call.name) {
            let text = "your caller waits for a call of another tool of its own".to_owned();
            return Err(CallRefusal::malformed_call(text));
        }
        check_arguments(&call.arguments)
    }

    /// If the caller allows one call in a step, refuses all but the first.
    pub(crate) fn refuse_excess(&self, decisions: &mut [CallDecision]) {
        if self.several {
            return;
        }
        let theirs = |decision: &&mut CallDecision| matches!(decision, CallDecision::HandOver);
        for decision in decisions.iter_mut().filter(theirs).skip(1) {
            let text = "one such call at a time: make it again after the result of the other";
            *decision = CallDecision::Refuse(CallRefusal::malformed_call(text.to_owned()));
        }
    }
}
