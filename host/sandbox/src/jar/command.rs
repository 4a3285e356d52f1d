//! Runs a command-line program as a tool: it starts with the arguments of a call, runs to its end, and its
//! output is the answer.

use serde_json::{Map, Value};
use wasmtime::Store;
use wasmtime::component::Instance;
use wasmtime_wasi::p2::bindings::CommandIndices;

use crate::component::bindings::exports::belljar::tool::tools::{
    Attachment, Call, Output, Part, ToolError,
};
use crate::jar::state::{Guest, GuestExit};

/// Stderr gets at most an eighth of the answer's bytes, because a byte may need six in JSON.
const STDERR_SHARE: usize = 8;

/// Bytes reserved in the answer for the counts of dropped bytes.
const SLACK: usize = 64;

/// The name and the media type of the attachment that carries stdout if it is not text.
const BYTES_NAME: &str = "stdout.bin";
const BYTES_TYPE: &str = "application/octet-stream";

/// Prepares a fresh store for a call: sets the program's arguments. `Err` says what is wrong with the call's
/// arguments, for the model.
pub(crate) fn start_command(guest: &mut Guest, call: &Call) -> Result<(), String> {
    let line = guest.settings.form.command_line(&call.tool, &call.arguments)?;
    let most = guest.settings.output_bytes;
    guest.start_command(line, most);
    Ok(())
}

/// Runs the command to its end. The inner result is the answer, with any exit status; the outer error is a
/// trap.
pub(crate) async fn run_command(
    indices: &CommandIndices,
    store: &mut Store<Guest>,
    instance: &Instance,
) -> wasmtime::Result<Result<Output, ToolError>> {
    let command = indices.load(&mut *store, instance)?;
    let code = match command.wasi_cli_run().call_run(&mut *store).await {
        Ok(Ok(())) => 0,
        Ok(Err(())) => 1,
        Err(error) => match error.downcast_ref::<GuestExit>() {
            Some(GuestExit::Success) => 0,
            Some(GuestExit::Failure) => 1,
            Some(GuestExit::Status(code)) => *code,
            None => return Err(error),
        },
    };
    Ok(Ok(command_output(store.data(), code)))
}

/// The answer of a command. The first part is the host's own JSON, for example
/// `{"exit_code":1,"stderr":"..."}`, so that the command's text cannot imitate it; the second is stdout.
fn command_output(guest: &Guest, code: u8) -> Output {
    let most = usize::try_from(guest.settings.output_bytes).unwrap_or(usize::MAX);
    let (mut stdout, out_dropped) = guest.stdout.take_bytes();
    let (mut stderr, err_dropped) = guest.stderr.peek_text();
    let err_cut = cut_text(&mut stderr, most / STDERR_SHARE);
    let head = |out_dropped: u64| {
        let mut head = Map::new();
        head.insert("exit_code".to_owned(), code.into());
        if !stderr.is_empty() {
            head.insert("stderr".to_owned(), stderr.clone().into());
        }
        for (name, dropped) in
            [("stdout_dropped", out_dropped), ("stderr_dropped", err_dropped + err_cut)]
        {
            if dropped > 0 {
                head.insert(name.to_owned(), dropped.into());
            }
        }
        Value::Object(head).to_string()
    };
    let room = most.saturating_sub(head(out_dropped).len() + SLACK);
    let mut dropped = out_dropped;
    let written = match String::from_utf8(std::mem::take(&mut stdout)) {
        Ok(mut text) => {
            dropped += cut_text(&mut text, room);
            (!text.is_empty()).then_some(Part::Text(text))
        }
        // Dropping bytes cut the last character in two; the rest of stdout is text.
        Err(error) if out_dropped > 0 && is_cut(&error.utf8_error()) => {
            let mut text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            dropped += cut_text(&mut text, room);
            Some(Part::Text(text))
        }
        Err(error) => {
            let mut data = error.into_bytes();
            let room = room.saturating_sub(BYTES_NAME.len() + BYTES_TYPE.len());
            dropped += data.len().saturating_sub(room) as u64;
            data.truncate(room);
            let (name, media_type) = (BYTES_NAME.to_owned(), BYTES_TYPE.to_owned());
            Some(Part::Attachment(Attachment { name, media_type, data }))
        }
    };
    let parts = std::iter::once(Part::Json(head(dropped))).chain(written);
    Output { parts: parts.collect() }
}

/// Whether the only fault is an unfinished character at the end.
fn is_cut(error: &std::str::Utf8Error) -> bool {
    error.error_len().is_none()
}

/// Cuts a text to `most` bytes, at a character, and returns how many bytes were removed.
fn cut_text(text: &mut String, most: usize) -> u64 {
    let before = text.len();
    if before > most {
        text.truncate(text.floor_char_boundary(most));
    }
    (before - text.len()) as u64
}
