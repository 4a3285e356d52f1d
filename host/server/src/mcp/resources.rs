//! Resources: files that agents and tools handed over, receipts, and changes as patches.

use std::io::{self, Write};

use belljar_session::{ReviewError, SessionLook};
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::client::{Client, MCP_IDENTITY, refused};
use super::uri::{self, Named};
use super::{content, uri::parse};

/// Most bytes of a patch.
const MAX_PATCH: usize = 2 << 20;

/// Most receipts in one answer: the newest.
const MAX_RECEIPTS: u32 = 200;

/// The resources of the client's own session.
pub(super) async fn list(client: &Client) -> Result<Vec<Resource>, ErrorData> {
    let direct = client.direct().await.map_err(|error| refused(&error))?;
    direct.stored().await;
    let session = direct.id();
    let mut all = vec![
        Resource::new(uri::receipts(session), "receipts")
            .with_description("what the calls of this session did")
            .with_mime_type("application/json"),
        Resource::new(uri::changes(session), "changes")
            .with_description("what they changed, for `git apply`; nothing is in the workspace yet")
            .with_mime_type("text/x-diff"),
    ];
    let files = client.service.store().attachments(session).await;
    for file in files.map_err(|error| refused(&error.into()))? {
        let size = u64::try_from(file.size).unwrap_or_default();
        let link = Resource::new(uri::attachment(session, &file.id), file.name);
        all.push(link.with_mime_type(file.media_type).with_size(size));
    }
    Ok(all)
}

/// The forms of names, for sessions of agents that were called.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let of =
        |form: &str, name: &str| ResourceTemplate::new(format!("belljar://sessions/{form}"), name);
    vec![
        of("{session}/receipts", "receipts of a session").with_mime_type("application/json"),
        of("{session}/changes", "changes of a session").with_mime_type("text/x-diff"),
        of("{session}/attachments/{id}", "a file of a session"),
    ]
}

/// Reads a resource. INV-295: only the caller's own tenant's; another tenant's and a missing one return the
/// same error.
pub(super) async fn read(client: &Client, uri: String) -> Result<ReadResourceResult, ErrorData> {
    let asked = json!({ "uri": uri });
    let none = || ErrorData::resource_not_found("there is no such resource", Some(asked.clone()));
    let named = parse(&uri).ok_or_else(none)?;
    let (Named::Attachment { session, .. }
    | Named::Receipts { session }
    | Named::Changes { session }) = &named;
    let direct = client.direct().await.map_err(|error| refused(&error))?;
    let own = direct.id() == session;
    if own {
        direct.stored().await;
    } else if !may_read(client, session).await {
        return Err(none());
    }
    let store = client.service.store();
    let contents = match &named {
        Named::Attachment { session, id } => {
            let (file, data) = store.attachment(session, id).await.map_err(|_| none())?;
            content::contents(uri, &file.media_type, &data)
        }
        Named::Receipts { session } => {
            let page = store.receipts(session, None, MAX_RECEIPTS).await;
            let receipts = page.map_err(|error| refused(&error.into()))?;
            let rows: Vec<_> = receipts.iter().map(|row| json!(row)).collect();
            let text = serde_json::to_string(&rows).unwrap_or_default();
            ResourceContents::text(text, uri).with_mime_type("application/json")
        }
        Named::Changes { session } => {
            let patch = match own {
                true => direct.look_at(patch).await,
                false => client.service.look_at(session, patch).await,
            };
            let patch = patch.map_err(|error| refused(&error))?;
            ResourceContents::text(patch, uri).with_mime_type("text/x-diff")
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Returns whether a caller may read a session of its tenant. INV-349: the files, receipts and changes of a
/// client's own session, for example outputs of its calls, are only for the key that began the session.
async fn may_read(client: &Client, session: &str) -> bool {
    let Ok(stored) = client.service.store().session(session).await else { return false };
    if stored.agent != format!("home/{MCP_IDENTITY}") {
        return true;
    }
    let began = client.service.began(session).await;
    began.is_ok_and(|actor| actor.as_deref() == Some(&*client.actor))
}

/// All changes of a session as one patch, cut at a bound.
fn patch(look: &SessionLook) -> Result<String, ReviewError> {
    let mut text = Bounded(Vec::new());
    for place in look.changes()? {
        match place.changes.patch(&mut text) {
            Ok(()) => {}
            Err(_) if text.0.len() >= MAX_PATCH => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(String::from_utf8_lossy(&text.0).into_owned())
}

/// A buffer with a bound.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_PATCH.saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend(bytes.iter().take(room));
        // Zero bytes written is an error for `write_all`.
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
