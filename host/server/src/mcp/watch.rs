//! Subscriptions to resources: notifies a client about changes in its own session. INV-295: never about
//! another session's resources, even of the same tenant.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use belljar_session::DirectDone;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::sync::watch;

use super::client::{ProtocolClient, refusal_error};
use super::uri::{self, ResourceName};

/// How often each resource of a session has changed so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResourceVersions {
    receipts: u64,
    changes: u64,
    files: u64,
}

/// Publishes the present [`ResourceVersions`] of a client's session.
#[derive(Default)]
pub(crate) struct ResourceChanges(watch::Sender<ResourceVersions>);

impl ResourceChanges {
    /// Counts the resources that a finished call has changed.
    pub(super) fn note_call(&self, done: &DirectDone) {
        let wrote = |versions: &mut ResourceVersions| {
            let receipts = &done.result.receipts;
            versions.receipts += u64::from(!receipts.is_empty());
            versions.changes +=
                u64::from(receipts.iter().any(|call| !call.receipt.paths_written.is_empty()));
            versions.files += u64::from(!done.files.is_empty());
        };
        self.0.send_modify(wrote);
    }

    pub(super) fn versions(&self) -> ResourceVersions {
        *self.0.borrow()
    }
}

/// The URIs that a client subscribed to in a session of an older revision.
#[derive(Default)]
pub(super) struct WatchedResources(Mutex<BTreeSet<String>>);

impl WatchedResources {
    /// Adds a subscription to a resource of the client's own session.
    pub(super) async fn add_resource(
        &self,
        client: &ProtocolClient,
        uri: String,
    ) -> Result<(), ErrorData> {
        check_own_resource(client, &uri).await?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uri);
        Ok(())
    }

    pub(super) fn remove_resource(&self, uri: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }

    /// Notifies the client about each subscribed resource that changed since `before`.
    pub(super) async fn notify_changes(
        &self,
        client: &ProtocolClient,
        cx: &RequestContext<RoleServer>,
        before: ResourceVersions,
    ) {
        let now = client.touched.versions();
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for uri in watched.into_iter().filter(|uri| has_changed(uri, before, now)) {
            let updated = ResourceUpdatedNotificationParam::new(uri);
            // An error means: the client has disconnected, and its session ends.
            let _ = cx.peer.notify_resource_updated(updated).await;
        }
    }
}

/// The part of a requested subscription that this server can fulfil.
pub(super) fn accepted_filter(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.resources_list_changed = requested.resources_list_changed;
    accepted.resource_subscriptions.clone_from(&requested.resource_subscriptions);
    accepted
}

/// Notifies a client of the newest revision about changes, until the client disconnects.
pub(super) async fn notify_until_end(
    client: &ProtocolClient,
    cx: &SubscriptionContext,
) -> Result<(), ErrorData> {
    let _waiting = client.waits.begin_waiting();
    let uris = cx.accepted().resource_subscriptions.clone().unwrap_or_default();
    for uri in &uris {
        check_own_resource(client, uri).await?;
    }
    let mut versions = client.touched.0.subscribe();
    // Compared with zero, so calls that ended before this point are reported too.
    let mut before = ResourceVersions::default();
    loop {
        let now = *versions.borrow_and_update();
        for uri in uris.iter().filter(|uri| has_changed(uri, before, now)) {
            if cx.sink().notify_resource_updated(uri.clone()).await.is_err() {
                return Ok(());
            }
        }
        if now.files != before.files {
            // An error means: the client did not subscribe to this list.
            let _ = cx.sink().notify_resource_list_changed().await;
        }
        before = now;
        tokio::select! {
            () = cx.cancelled() => return Ok(()),
            changed = versions.changed() => if changed.is_err() { return Ok(()) },
        }
    }
}

/// True if the resource `uri` has changed between two counts.
fn has_changed(uri: &str, before: ResourceVersions, now: ResourceVersions) -> bool {
    match uri::parse_uri(uri) {
        Some(ResourceName::Receipts { .. }) => now.receipts != before.receipts,
        Some(ResourceName::Changes { .. }) => now.changes != before.changes,
        Some(ResourceName::Attachment { .. }) | None => false,
    }
}

/// Checks that a resource belongs to the client's own session, and that it can change.
async fn check_own_resource(client: &ProtocolClient, uri: &str) -> Result<(), ErrorData> {
    let none = || ErrorData::resource_not_found("there is no such resource to watch", None);
    let (ResourceName::Receipts { session } | ResourceName::Changes { session }) =
        uri::parse_uri(uri).ok_or_else(none)?
    else {
        return Err(none());
    };
    let direct = client.direct_session().await.map_err(|error| refusal_error(&error))?;
    if direct.session_id() == session { Ok(()) } else { Err(none()) }
}
