//! Offers the functions a component exports as tools: each is described by its types and called with JSON.
//! No code of the component runs before a call.

mod names;
mod schema;
mod shape;
mod values;

use serde_json::{Map, Value};
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, Instance, Val};
use wasmtime::{Engine, Store};

use crate::component::bindings::exports::belljar::tool::tools::{
    Attachment, Call, Output, Part, ToolError,
};
use crate::component::described::ToolClaim;
use crate::component::interfaces::import_need;
use crate::component::tool_info::ToolHints;
use crate::jar::state::Guest;
use crate::{ImportNeed, LoadError};

/// The most functions a component may export: more than a model can choose among, and few enough to check
/// all types quickly.
const MAX_FUNCTIONS: usize = 256;

/// The most functions an error names.
const MAX_NAMED: usize = 8;

/// The name and the media type of the attachment for a result that is bytes.
const BYTES_NAME: &str = "result.bin";
const BYTES_TYPE: &str = "application/octet-stream";

/// The functions a component exports.
pub(crate) struct FunctionSet {
    offered: Vec<OfferedFunction>,
    left_out: Vec<LeftOutFunction>,
    hints: ToolHints,
}

/// A function offered as a tool.
struct OfferedFunction {
    /// The name of the tool, for example `greet`.
    tool: String,
    /// The name of the function as the component spells it.
    spelled: String,
    index: ComponentExportIndex,
    ty: ComponentFunc,
}

/// An exported function that is not offered as a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutFunction {
    /// The name as the component spells it. Foreign text: escape before display.
    pub function: String,
    /// The reason in the host's own words, for example that a type is not supported.
    pub reason: String,
}

impl FunctionSet {
    /// Finds the functions of a component. Fails if there are too many, or if none can be offered.
    pub(crate) fn from_component(
        engine: &Engine,
        component: &Component,
    ) -> Result<Self, LoadError> {
        let (mut found, mut left_out) = (Vec::new(), Vec::new());
        let ty = component.component_type();
        let mut look = |interface: Option<&str>, name: &str, ty: ComponentFunc| {
            let spelled = names::spell_function(interface, name);
            if found.len() + left_out.len() >= MAX_FUNCTIONS {
                let why = format!("it exports over {MAX_FUNCTIONS} functions");
                return Err(LoadError::WrongWorld(why));
            }
            let outer = interface.and_then(|name| component.get_export_index(None, name));
            let index = match (interface, &outer) {
                (Some(_), None) => None,
                _ => component.get_export_index(outer.as_ref(), name),
            };
            let usable = match names::refusal_reason(name) {
                Some(reason) => Err(reason.to_owned()),
                None => schema::arguments_schema(&ty).and_then(|_| schema::check_result(&ty)),
            };
            match (usable, index) {
                (Ok(()), Some(index)) => found.push((spelled, index, ty)),
                (Ok(()), None) => {
                    left_out.push(LeftOutFunction {
                        function: spelled,
                        reason: "it is not there".into(),
                    });
                }
                (Err(reason), _) => left_out.push(LeftOutFunction { function: spelled, reason }),
            }
            Ok(())
        };
        for (name, item) in ty.exports(engine) {
            match item.ty {
                ComponentItem::ComponentFunc(ty) => look(None, name, ty)?,
                ComponentItem::ComponentInstance(interface) => {
                    for (function, item) in interface.exports(engine) {
                        if let ComponentItem::ComponentFunc(ty) = item.ty {
                            look(Some(name), function, ty)?;
                        }
                    }
                }
                _ => {}
            }
        }
        if found.is_empty() {
            return Err(LoadError::WrongWorld(no_function_reason(&left_out)));
        }
        let tools = names::tool_names(found.iter().map(|(spelled, ..)| spelled.as_str()));
        let offered = found
            .into_iter()
            .zip(tools)
            .map(|((spelled, index, ty), tool)| OfferedFunction { tool, spelled, index, ty });
        let reaches = |name: &str| {
            matches!(import_need(name), ImportNeed::Files | ImportNeed::Network | ImportNeed::Peers)
        };
        let outward = ty.imports(engine).any(|(name, _)| reaches(name));
        // The host derives this hint from the imports instead of asking the component: without such imports
        // it cannot change anything.
        let hints = ToolHints { read_only: !outward, ..ToolHints::default() };
        Ok(Self { offered: offered.collect(), left_out, hints })
    }

    /// The functions not offered as tools, with reasons.
    pub(crate) fn left_out(&self) -> &[LeftOutFunction] {
        &self.left_out
    }

    /// The descriptions of the functions as tools, for the same checks as a tool's own descriptions. Returns
    /// at most `most` and one more, so that the check notices that there are too many.
    pub(crate) fn to_claims(&self, most: usize) -> Vec<ToolClaim> {
        let offered = self.offered.iter().take(most.saturating_add(1));
        let claim = |function: &OfferedFunction| ToolClaim {
            name: function.tool.clone(),
            description: format!(
                "Calls the function `{}` of this component: {}",
                function.spelled,
                shape::format_function(&function.ty)
            ),
            schema: schema::arguments_schema(&function.ty).unwrap_or_default().to_string(),
            hints: self.hints,
        };
        offered.map(claim).collect()
    }

    /// Calls a function with JSON arguments. The outer error is a trap of the guest.
    pub(crate) async fn call_function(
        &self,
        store: &mut Store<Guest>,
        instance: &Instance,
        call: &Call,
    ) -> wasmtime::Result<Result<Output, ToolError>> {
        let Some(function) = self.offered.iter().find(|function| function.tool == call.tool) else {
            let text = format!("there is no function `{}`", call.tool);
            return Ok(Err(ToolError::NotFound(text)));
        };
        let arguments: Map<String, Value> = match serde_json::from_str(&call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Err(ToolError::InvalidArguments(error.to_string()))),
        };
        let arguments = match values::parse_arguments(&function.ty, &arguments) {
            Ok(arguments) => arguments,
            Err(why) => return Ok(Err(ToolError::InvalidArguments(why))),
        };
        let Some(callee) = instance.get_func(&mut *store, function.index) else {
            wasmtime::bail!("the function is gone");
        };
        let mut results = vec![Val::Bool(false); function.ty.results().len()];
        callee.call_async(&mut *store, &arguments, &mut results).await?;
        drop(arguments);
        Ok(to_output(&function.ty, results))
    }
}

/// Converts the result of a function to an answer: a text stays a text, bytes become an attachment, any
/// other value becomes JSON. The error case of a result becomes the tool's error.
fn to_output(ty: &ComponentFunc, results: Vec<Val>) -> Result<Output, ToolError> {
    let (Some(ty), Some(value)) = (ty.results().next(), results.into_iter().next()) else {
        return Ok(Output { parts: vec![Part::Json("null".to_owned())] });
    };
    let (ty, value) = match (values::outcome_types(&ty), value) {
        (Some((ok, _)), Val::Result(Ok(value))) => (ok, value.map(|value| *value)),
        (Some((_, err)), Val::Result(Err(value))) => {
            let text = match (err, value) {
                (Some(_), Some(value)) if matches!(*value, Val::String(_)) => match *value {
                    Val::String(text) => text,
                    _ => String::new(),
                },
                (Some(ty), Some(value)) => values::to_json(&ty, &value).to_string(),
                _ => "it failed, and says no more".to_owned(),
            };
            return Err(ToolError::Failed(text));
        }
        (_, value) => (Some(ty), Some(value)),
    };
    let part = match (ty, value) {
        (Some(_), Some(Val::String(text))) => Part::Text(text),
        (Some(ty), Some(value)) => match values::to_byte_list(&ty, &value) {
            Some(data) => Part::Attachment(Attachment {
                name: BYTES_NAME.to_owned(),
                media_type: BYTES_TYPE.to_owned(),
                data,
            }),
            None => Part::Json(values::to_json(&ty, &value).to_string()),
        },
        _ => Part::Json("null".to_owned()),
    };
    Ok(Output { parts: vec![part] })
}

/// The text for a component none of whose functions can be offered.
fn no_function_reason(left_out: &[LeftOutFunction]) -> String {
    if left_out.is_empty() {
        return "it exports no function".to_owned();
    }
    let named = left_out.iter().take(MAX_NAMED).map(|left| {
        let shown = belljar_policy::ShownText::clip_line(&left.function, 128);
        format!("`{shown}`: {}", left.reason)
    });
    let named: Vec<_> = named.collect();
    format!("none of its functions can be offered: {}", named.join("; "))
}
