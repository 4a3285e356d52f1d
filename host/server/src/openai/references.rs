//! Replaces references to items of earlier responses (`item_reference`) by those items.

use std::collections::HashMap;

use serde_json::Value;

use crate::app::HandlerContext;
use crate::http::problem::{Problem, ProblemKind};
use crate::http::respond::MAX_BODY;
use crate::openai::params::invalid_value;
use crate::openai::{ids, resource, stored};

/// The most responses whose items one request may reference, because each is read from the store.
const MAX_RESPONSES: usize = 64;

/// Replaces each reference in `items` by its item. INV-551: an item is searched only among the responses of
/// the caller's own tenant, each response is read once in a request, and all items together have at most the
/// size of one body.
pub(crate) async fn resolve_references(
    ctx: &HandlerContext,
    items: &mut [Value],
) -> Result<(), Problem> {
    let mut read: HashMap<String, Vec<Value>> = HashMap::new();
    // Counted, because a reference is short and the item in its place may be long.
    let mut bytes = 0_usize;
    for (index, item) in items.iter_mut().enumerate() {
        if item.get("type").and_then(Value::as_str) != Some("item_reference") {
            continue;
        }
        let at = format!("input[{index}]");
        let id = item.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let none = || {
            Problem::not_found("item", &id).with_param(at.clone()).with_hint(
                "send the item itself; one is kept as long as its response, and named once",
            )
        };
        let message = ids::item_message(&id).ok_or_else(none)?;
        if !read.contains_key(message) {
            if read.len() == MAX_RESPONSES {
                let detail = format!("the items are of more than {MAX_RESPONSES} responses");
                return Err(invalid_value(&at, detail).with_hint("use `previous_response_id`"));
            }
            read.insert(message.to_owned(), output_of_response(ctx, message).await?);
        }
        let known = read.get_mut(message).ok_or_else(none)?;
        let place = known.iter().position(|known| known["id"] == id.as_str()).ok_or_else(none)?;
        let found = known.swap_remove(place);
        bytes = bytes.saturating_add(found.to_string().len());
        if bytes > MAX_BODY {
            let detail = format!("the items that are named have over {MAX_BODY} bytes");
            return Err(Problem::new(ProblemKind::TooLarge, detail).with_param(at.clone()));
        }
        *item = found;
    }
    Ok(())
}

/// The items of a response; none if the response does not exist.
async fn output_of_response(ctx: &HandlerContext, message: &str) -> Result<Vec<Value>, Problem> {
    match stored::find_finished(ctx, message).await {
        Ok((finished, _)) => Ok(resource::output_items(&finished)),
        Err(problem) if problem.kind() == ProblemKind::NotFound => Ok(Vec::new()),
        Err(problem) => Err(problem),
    }
}
