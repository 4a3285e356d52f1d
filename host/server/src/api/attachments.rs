//! Files that tools handed over to the person: lists and downloads them, never in a form that a browser
//! renders as a page.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use belljar_store::StoredAttachment;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::HandlerContext;
use crate::http::ids::is_id;
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, PathOf};

/// Media types that a browser shows without running code. A file with any other type is sent as
/// [`BYTES`].
const HARMLESS: [&str; 8] = [
    "application/json",
    "application/pdf",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
    "text/csv",
    "text/plain",
];

/// The media type of files whose stated type is not in [`HARMLESS`].
const BYTES: &str = "application/octet-stream";

/// The most bytes of a file's name in the header `Content-Disposition`.
const MAX_NAME: usize = 200;

/// The latest files of a session, the oldest of them first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Attachments {
    #[schema(value_type = Vec<AttachmentBody>)]
    attachments: Vec<StoredAttachment>,
}

/// A file. Its name and its media type are foreign.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "the schema of a row of the store")]
pub(crate) struct AttachmentBody {
    id: String,
    message: String,
    call_id: Option<String>,
    name: String,
    media_type: String,
    size: i64,
    created: i64,
}

/// `GET /v1/sessions/{id}/attachments`: lists a session's attachments.
pub(crate) async fn list_attachments(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
) -> Result<JsonAnswer<Attachments>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    Ok(JsonAnswer(Attachments { attachments: ctx.store().latest_attachments(&session).await? }))
}

/// `GET /v1/sessions/{id}/attachments/{attachment}`: returns the bytes of an attachment.
pub(crate) async fn read_attachment(
    ctx: HandlerContext,
    PathOf((id, attachment)): PathOf<(String, String)>,
) -> Result<Response, Problem> {
    let session = ctx.find_session(&id).await?.id;
    if !is_id(&attachment) {
        return Err(Problem::not_found("attachment", &attachment));
    }
    let (about, data) = ctx.store().read_attachment(&session, &attachment).await?;
    let name = ctx.app.place_hider().hide_in_text(&about.name);
    let mut response = Response::new(Body::from(data));
    let headers = response.headers_mut();
    let kind = HARMLESS.iter().find(|kind| **kind == about.media_type).unwrap_or(&BYTES);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let saved = HeaderValue::from_str(&disposition_header(name.as_str()));
    let saved = saved.unwrap_or(HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_DISPOSITION, saved);
    Ok(response)
}

/// A value of `Content-Disposition` that makes a browser save a file under `name` instead of showing
/// it. Bytes other than letters, digits, `.`, `-` and `_` are percent-encoded.
fn disposition_header(name: &str) -> String {
    let mut text = "attachment; filename*=UTF-8''".to_owned();
    for byte in name.bytes().take(MAX_NAME) {
        if byte.is_ascii_alphanumeric() || b".-_".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // The write cannot fail, because a `String` grows as needed.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place_in_the_header() {
        let text = disposition_header("a\"; x=1\r\nSet-Cookie: ü.txt");
        assert_eq!(
            text,
            "attachment; filename*=UTF-8''a%22%3B%20x%3D1%0D%0ASet-Cookie%3A%20%C3%BC.txt"
        );
    }
}
