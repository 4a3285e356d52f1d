//! The agent's tools, as `prelude.js` needs them: a list, one call, several calls.

use belljar_guest::bindings::belljar::tool::peers;
use belljar_guest::bindings::belljar::tool::types::{Call, Hints, Output, Part, ToolError};
use rquickjs::{Array, Ctx, Function, IntoJs as _, Object, Result, TypedArray, Value};

/// Adds `list`, `call` and `callMany`.
pub(crate) fn add_to<'js>(natives: &Object<'js>) -> Result<()> {
    let ctx = natives.ctx();
    natives.set("list", Function::new(ctx.clone(), list)?)?;
    natives.set("call", Function::new(ctx.clone(), call)?)?;
    natives.set("callMany", Function::new(ctx.clone(), call_many)?)
}

/// `[[name, description, schema, read-only], ...]`, the schemas as JSON text.
fn list(ctx: Ctx<'_>) -> Result<Array<'_>> {
    let tools = Array::new(ctx.clone())?;
    for (at, tool) in peers::list().into_iter().enumerate() {
        let row = Array::new(ctx.clone())?;
        row.set(0, tool.name)?;
        row.set(1, tool.description)?;
        row.set(2, tool.input_schema)?;
        row.set(3, tool.hints.contains(Hints::READ_ONLY))?;
        tools.set(at, row)?;
    }
    Ok(tools)
}

fn call(ctx: Ctx<'_>, tool: String, arguments: String) -> Result<Object<'_>> {
    answered(&ctx, peers::call(&Call { tool, arguments }))
}

/// The calls as `[[name, arguments], ...]`, the arguments as JSON text.
fn call_many(ctx: Ctx<'_>, calls: Vec<Vec<String>>) -> Result<Array<'_>> {
    let calls: Vec<Call> = calls.into_iter().filter_map(pair).collect();
    let results = Array::new(ctx.clone())?;
    for (at, result) in peers::call_many(&calls).into_iter().enumerate() {
        results.set(at, answered(&ctx, result)?)?;
    }
    Ok(results)
}

fn pair(call: Vec<String>) -> Option<Call> {
    let [tool, arguments] = call.try_into().ok()?;
    Some(Call { tool, arguments })
}

/// `{parts: [...]}`, or `{kind, message}` of a call that failed.
fn answered<'js>(
    ctx: &Ctx<'js>,
    result: std::result::Result<Output, ToolError>,
) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    match result {
        Ok(output) => {
            let parts = Array::new(ctx.clone())?;
            for (at, part) in output.parts.into_iter().enumerate() {
                parts.set(at, value(ctx, part)?)?;
            }
            object.set("parts", parts)?;
        }
        Err(error) => {
            let (kind, message) = match error {
                ToolError::InvalidArguments(text) => ("invalid-arguments", text),
                ToolError::NotFound(text) => ("not-found", text),
                ToolError::Denied(text) => ("denied", text),
                ToolError::TooLarge(text) => ("too-large", text),
                ToolError::Failed(text) => ("failed", text),
            };
            object.set("kind", kind)?;
            object.set("message", message)?;
        }
    }
    Ok(object)
}

/// A string, a value, or an attachment with its bytes.
fn value<'js>(ctx: &Ctx<'js>, part: Part) -> Result<Value<'js>> {
    match part {
        Part::Text(text) => text.into_js(ctx),
        Part::Json(json) => ctx.json_parse(json),
        Part::Attachment(attachment) => {
            let object = Object::new(ctx.clone())?;
            object.set("name", attachment.name)?;
            object.set("mediaType", attachment.media_type)?;
            object.set("data", TypedArray::<u8>::new(ctx.clone(), attachment.data)?)?;
            Ok(object.into_value())
        }
    }
}
