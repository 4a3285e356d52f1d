//! Converts the output of a tool to MCP content.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use belljar_agent::{Attachment, OutputPart};
use belljar_session::DirectDone;
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::Value;

use super::uri;

/// The most bytes of a file that an answer includes; a larger file is sent as a link.
const MAX_INLINE: u64 = 256 << 10;

/// The most bytes of a text file that an answer includes, because a model reads it.
const MAX_INLINE_TEXT: u64 = 64 << 10;

/// The MCP result of a finished call. Attachments are links into `session`, which stores the files, or
/// are included if they are small.
pub(super) fn call_result(session: &str, done: DirectDone) -> CallToolResult {
    let DirectDone { result, files } = done;
    let parts = match result.outcome {
        Ok(parts) => parts,
        Err(text) => return CallToolResult::error(vec![ContentBlock::text(text)]),
    };
    let structured = structured_output(&parts);
    let texts = parts.into_iter().filter_map(|part| match part {
        OutputPart::Text(text) | OutputPart::Json(text) => Some(ContentBlock::text(text)),
        // An attachment is only named in this text; its content block is added below.
        OutputPart::Attachment { .. } => None,
    });
    let given = result.attachments.iter().zip(&files);
    let given = given.map(|(attachment, id)| file_block(session, id, attachment));
    let mut answer = CallToolResult::success(texts.chain(given).collect());
    answer.structured_content = structured;
    answer
}

/// The JSON object of a tool's output, if it has exactly one.
fn structured_output(parts: &[OutputPart]) -> Option<Value> {
    let mut found = parts.iter().filter_map(|part| match part {
        OutputPart::Json(text) => serde_json::from_str::<Value>(text).ok(),
        OutputPart::Text(_) | OutputPart::Attachment { .. } => None,
    });
    let only = found.next().filter(Value::is_object)?;
    found.next().is_none().then_some(only)
}

/// An attachment as content: included if it is small (as image, audio, text or bytes), otherwise a
/// link.
fn file_block(session: &str, id: &str, file: &Attachment) -> ContentBlock {
    let uri = uri::attachment_uri(session, id);
    let text = is_text(&file.media_type);
    if file.size > if text { MAX_INLINE_TEXT } else { MAX_INLINE } {
        let link = Resource::new(uri, file.name.clone());
        return ContentBlock::resource_link(
            link.with_mime_type(file.media_type.clone()).with_size(file.size),
        );
    }
    match file.media_type.split('/').next() {
        Some("image") => ContentBlock::image(encode_base64(&file.data), file.media_type.clone()),
        Some("audio") => ContentBlock::audio(encode_base64(&file.data), file.media_type.clone()),
        _ => ContentBlock::resource(file_contents(uri, &file.media_type, &file.data)),
    }
}

/// A file as the content of a resource: as text if it is one, otherwise as base64.
pub(super) fn file_contents(uri: String, media_type: &str, data: &[u8]) -> ResourceContents {
    match std::str::from_utf8(data) {
        Ok(content) if is_text(media_type) => {
            ResourceContents::text(content, uri).with_mime_type(media_type)
        }
        Ok(_) | Err(_) => {
            ResourceContents::blob(encode_base64(data), uri).with_mime_type(media_type)
        }
    }
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type == "application/json"
}

fn encode_base64(data: &[u8]) -> String {
    BASE64_STANDARD.encode(data)
}
