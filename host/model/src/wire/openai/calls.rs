//! Assigns the pieces of streamed tool calls to their calls.
//!
//! OpenAI numbers its calls, and sends an id and a name with the first piece of each. Other servers leave out
//! the numbers, count from 1, number every call 0 or every piece anew, repeat id and name in each piece,
//! invent an id for each piece, send one id for all calls, or send no id.

use serde_json::{Map, Value};

use crate::ModelError;
use crate::wire::answer::PartialCall;
use crate::wire::{AttemptSink, StreamedAnswer, lenient};

/// A piece of a tool call.
pub(super) struct CallFragment<'v> {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// True if the arguments are a JSON object instead of text, and therefore complete.
    whole: bool,
    all: Option<&'v Value>,
}

impl<'v> CallFragment<'v> {
    /// Reads a piece from an element of the list `tool_calls`.
    pub(super) fn from_call(call: &'v Value) -> Self {
        let function = call.get("function").filter(|function| function.is_object());
        let (arguments, whole) = read_arguments(function.unwrap_or(call).get("arguments"));
        Self {
            index: lenient::read_count(call, "index"),
            id: lenient::read_text(call, "id"),
            name: lenient::read_text(function.unwrap_or(call), "name"),
            arguments,
            whole,
            all: Some(call),
        }
    }

    /// Reads a piece of the only call from the older field `function_call`.
    pub(super) fn from_function(function: &Map<String, Value>) -> Self {
        let (arguments, whole) = read_arguments(function.get("arguments"));
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { index: None, id: String::new(), name, arguments, whole, all: None }
    }

    fn is_anonymous(&self) -> bool {
        self.id.is_empty() && self.name.is_empty()
    }
}

/// Reads the arguments of a call. The flag is true if they came as a complete JSON value, and not as a piece
/// of a text.
fn read_arguments(value: Option<&Value>) -> (String, bool) {
    match value {
        None | Some(Value::Null) => (String::new(), false),
        Some(Value::String(piece)) => (piece.clone(), false),
        Some(object) => (object.to_string(), true),
    }
}

/// Adds a piece to the call that it belongs to, or begins a call.
pub(super) fn take_fragment(
    answer: &mut StreamedAnswer,
    piece: CallFragment<'_>,
    sink: &mut AttemptSink<'_>,
) -> Result<(), ModelError> {
    let open = open_call(answer, &piece);
    let at = match open {
        Some(at) => at,
        None => {
            // Some servers send the name again before this piece, after the arguments were complete.
            let last = answer.last_call().and_then(|at| answer.call_mut(at));
            let named = last.filter(|last| last.again && piece.name.is_empty());
            let name = named.map_or_else(|| piece.name.clone(), |last| last.name.clone());
            answer.begin_call(piece.index, &piece.id, &name, sink)?
        }
    };
    if let Some(all) = piece.all {
        answer.thoughts.take_call(at, all);
    }
    let Some(call) = answer.call_mut(at) else { return Ok(()) };
    if open.is_some() {
        call.set_identity(&piece.id, &piece.name)?;
    }
    if !call.is_whole() {
        if piece.whole && !call.arguments.trim().is_empty() {
            return call.replace_arguments(&piece.arguments);
        }
        return call.push_arguments(&piece.arguments);
    }
    call.again |= !piece.name.is_empty();
    // Arguments after a placeholder `{}` replace it; complete arguments that are sent once more are ignored.
    let placeholder = call.arguments.trim() == "{}" && !piece.arguments.trim().is_empty();
    match placeholder {
        true => call.replace_arguments(&piece.arguments),
        false => Ok(()),
    }
}

/// The position of the call that a piece belongs to; `None` if the piece begins another call.
fn open_call(answer: &mut StreamedAnswer, piece: &CallFragment<'_>) -> Option<usize> {
    let numbered = piece.index.and_then(|index| answer.find_call(|call| call.key == Some(index)));
    let named = || match piece.id.is_empty() {
        true => None,
        false => answer.find_call(|call| call.id == piece.id),
    };
    // A piece with a new number and a name belongs to another call, whatever its id.
    let at = match (numbered, piece.index) {
        (Some(at), _) => Some(at),
        (None, Some(_)) if piece.is_anonymous() => answer.last_call(),
        (None, Some(_)) => named().or_else(|| match piece.name.is_empty() {
            true => answer.last_call(),
            false => None,
        }),
        (None, None) => named().or_else(|| answer.last_call()),
    }?;
    let is_new_number = numbered.is_none() && piece.index.is_some();
    let open = answer.call_mut(at)?;
    (!begins_another(open, piece, is_new_number)).then_some(at)
}

/// Returns whether a piece begins another call, although its number, its id or its position points to the
/// call `open`.
fn begins_another(open: &PartialCall, piece: &CallFragment<'_>, is_new_number: bool) -> bool {
    let says_more = !piece.arguments.trim().is_empty();
    let repeats = piece.arguments.trim() == open.arguments.trim();
    let other_name = !piece.name.is_empty() && !open.name.is_empty() && piece.name != open.name;
    let is_empty = open.arguments.is_empty();
    let is_full = open.is_whole() && open.arguments.trim() != "{}";
    if !piece.id.is_empty() && !open.id.is_empty() && piece.id != open.id {
        // A server may invent an id for every piece; a piece without a name belongs to the same call.
        return !piece.name.is_empty() || (open.is_whole() && says_more);
    }
    if !piece.id.is_empty() && piece.id == open.id {
        return other_name
            || (is_new_number && !piece.name.is_empty() && (open.is_whole() || is_empty))
            || (is_full && says_more && !repeats);
    }
    // Without ids, a name that is repeated or arrives late begins no call.
    if piece.is_anonymous() {
        return is_full && says_more && !repeats && piece.arguments.trim_start().starts_with('{');
    }
    other_name
        || (!piece.name.is_empty() && !open.name.is_empty() && open.is_whole() && says_more)
        || (is_new_number && !piece.name.is_empty())
}
