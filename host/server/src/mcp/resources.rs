//! MCP resources: files that agents and tools handed over, receipts, and changes as patches.

use std::io::{self, Write};

use belljar_session::{ReviewError, SessionLook};
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::client::{MCP_IDENTITY, ProtocolClient, refusal_error};
use super::uri::{self, ResourceName};
use super::{content, uri::parse_uri};

/// The most bytes of a patch.
const MAX_PATCH: usize = 2 << 20;

/// The most receipts in one answer; the newest are kept.
const MAX_RECEIPTS: u32 = 200;

/// Lists the resources of the client's own session.
pub(super) async fn list_resources(client: &ProtocolClient) -> Result<Vec<Resource>, ErrorData> {
    let direct = client.direct_session().await.map_err(|error| refusal_error(&error))?;
    direct.wait_until_stored().await;
    let session = direct.session_id();
    let mut all = vec![
        Resource::new(uri::receipts_uri(session), "receipts")
            .with_description("what the calls of this session did")
            .with_mime_type("application/json"),
        Resource::new(uri::changes_uri(session), "changes")
            .with_description("what they changed, for `git apply`; nothing is in the workspace yet")
            .with_mime_type("text/x-diff"),
    ];
    let files = client.service.store().latest_attachments(session).await;
    for file in files.map_err(|error| refusal_error(&error.into()))? {
        let size = u64::try_from(file.size).unwrap_or_default();
        let link = Resource::new(uri::attachment_uri(session, &file.id), file.name);
        all.push(link.with_mime_type(file.media_type).with_size(size));
    }
    Ok(all)
}

/// Patterns of the URIs of resources in other sessions, for example in a session of an agent that the client
/// called.
pub(super) fn resource_templates() -> Vec<ResourceTemplate> {
    let of =
        |form: &str, name: &str| ResourceTemplate::new(format!("belljar://sessions/{form}"), name);
    vec![
        of("{session}/receipts", "receipts of a session").with_mime_type("application/json"),
        of("{session}/changes", "changes of a session").with_mime_type("text/x-diff"),
        of("{session}/attachments/{id}", "a file of a session"),
    ]
}

/// Reads a resource by its URI. INV-295: only a resource of the caller's own tenant; a resource of another
/// tenant and a missing one return the same error.
pub(super) async fn read_resource(
    client: &ProtocolClient,
    uri: String,
) -> Result<ReadResourceResult, ErrorData> {
    let asked = json!({ "uri": uri });
    let none = || ErrorData::resource_not_found("there is no such resource", Some(asked.clone()));
    let named = parse_uri(&uri).ok_or_else(none)?;
    let (ResourceName::Attachment { session, .. }
    | ResourceName::Receipts { session }
    | ResourceName::Changes { session }) = &named;
    let direct = client.direct_session().await.map_err(|error| refusal_error(&error))?;
    let own = direct.session_id() == session;
    if own {
        direct.wait_until_stored().await;
    } else if !may_read(client, session).await {
        return Err(none());
    }
    let store = client.service.store();
    let contents = match &named {
        ResourceName::Attachment { session, id } => {
            let (file, data) = store.read_attachment(session, id).await.map_err(|_| none())?;
            content::file_contents(uri, &file.media_type, &data)
        }
        ResourceName::Receipts { session } => {
            let page = store.latest_receipts(session, None, MAX_RECEIPTS).await;
            let receipts = page.map_err(|error| refusal_error(&error.into()))?;
            let rows: Vec<_> = receipts.iter().map(|row| json!(row)).collect();
            let text = serde_json::to_string(&rows).unwrap_or_default();
            ResourceContents::text(text, uri).with_mime_type("application/json")
        }
        ResourceName::Changes { session } => {
            let patch = match own {
                true => direct.look_at(session_patch).await,
                false => client.service.look_at(session, session_patch).await,
            };
            let patch = patch.map_err(|error| refusal_error(&error))?;
            ResourceContents::text(patch, uri).with_mime_type("text/x-diff")
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Returns whether a caller may read a session of its tenant. INV-349: a client's own session, with its
/// files, receipts and changes, is only for the key that began it.
async fn may_read(client: &ProtocolClient, session: &str) -> bool {
    let Ok(stored) = client.service.store().read_session(session).await else { return false };
    if stored.agent != format!("home/{MCP_IDENTITY}") {
        return true;
    }
    let began = client.service.first_actor(session).await;
    began.is_ok_and(|actor| actor.as_deref() == Some(&*client.actor))
}

/// All changes of a session as one patch of at most [`MAX_PATCH`] bytes.
fn session_patch(look: &SessionLook) -> Result<String, ReviewError> {
    let mut text = PatchWriter(Vec::new());
    for place in look.list_changes()? {
        match place.changes.write_patch(&mut text) {
            Ok(()) => {}
            Err(_) if text.0.len() >= MAX_PATCH => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(String::from_utf8_lossy(&text.0).into_owned())
}

/// A buffer of at most [`MAX_PATCH`] bytes.
struct PatchWriter(Vec<u8>);

impl Write for PatchWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_PATCH.saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend(bytes.iter().take(room));
        // When the buffer is full this returns 0, which `write_all` reports as an error.
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
