//! Subscriptions: notifies a client about changes to its own session's resources. INV-295: never about
//! another session's, even of the same tenant.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use belljar_session::DirectDone;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::sync::watch;

use super::client::{Client, refused};
use super::uri::{self, Named};

/// How often each resource of a session was changed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Versions {
    receipts: u64,
    changes: u64,
    files: u64,
}

/// The versions of the resources in a client's session, for subscriptions.
#[derive(Default)]
pub(crate) struct Touched(watch::Sender<Versions>);

impl Touched {
    /// Notes the resources that a call has changed.
    pub(super) fn note(&self, done: &DirectDone) {
        let wrote = |versions: &mut Versions| {
            let receipts = &done.result.receipts;
            versions.receipts += u64::from(!receipts.is_empty());
            versions.changes +=
                u64::from(receipts.iter().any(|call| !call.receipt.paths_written.is_empty()));
            versions.files += u64::from(!done.files.is_empty());
        };
        self.0.send_modify(wrote);
    }

    pub(super) fn versions(&self) -> Versions {
        *self.0.borrow()
    }
}

/// The resources that a session of the older revision has subscribed to.
#[derive(Default)]
pub(super) struct Watched(Mutex<BTreeSet<String>>);

impl Watched {
    pub(super) async fn add(&self, client: &Client, uri: String) -> Result<(), ErrorData> {
        own(client, &uri).await?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uri);
        Ok(())
    }

    pub(super) fn remove(&self, uri: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }

    /// Notifies the client about the resources that changed since `before`.
    pub(super) async fn say(
        &self,
        client: &Client,
        cx: &RequestContext<RoleServer>,
        before: Versions,
    ) {
        let now = client.touched.versions();
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for uri in watched.into_iter().filter(|uri| has_changed(uri, before, now)) {
            let updated = ResourceUpdatedNotificationParam::new(uri);
            // An error: the client has disconnected, and its session ends.
            let _ = cx.peer.notify_resource_updated(updated).await;
        }
    }
}

/// The part of a request that can be had.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.resources_list_changed = requested.resources_list_changed;
    accepted.resource_subscriptions.clone_from(&requested.resource_subscriptions);
    accepted
}

/// Notifies a client of the newer revision about changes, until the client disconnects.
pub(super) async fn listen(client: &Client, cx: &SubscriptionContext) -> Result<(), ErrorData> {
    let _waiting = client.waits.begin();
    let uris = cx.accepted().resource_subscriptions.clone().unwrap_or_default();
    for uri in &uris {
        own(client, uri).await?;
    }
    let mut versions = client.touched.0.subscribe();
    // Calls that ended after the confirmation of listening are included.
    let mut before = Versions::default();
    loop {
        let now = *versions.borrow_and_update();
        for uri in uris.iter().filter(|uri| has_changed(uri, before, now)) {
            if cx.sink().notify_resource_updated(uri.clone()).await.is_err() {
                return Ok(());
            }
        }
        if now.files != before.files {
            // An error: the client did not subscribe to this.
            let _ = cx.sink().notify_resource_list_changed().await;
        }
        before = now;
        tokio::select! {
            () = cx.cancelled() => return Ok(()),
            changed = versions.changed() => if changed.is_err() { return Ok(()) },
        }
    }
}

fn has_changed(uri: &str, before: Versions, now: Versions) -> bool {
    match uri::parse(uri) {
        Some(Named::Receipts { .. }) => now.receipts != before.receipts,
        Some(Named::Changes { .. }) => now.changes != before.changes,
        Some(Named::Attachment { .. }) | None => false,
    }
}

/// Checks that a resource is the session's own, and can change.
async fn own(client: &Client, uri: &str) -> Result<(), ErrorData> {
    let none = || ErrorData::resource_not_found("there is no such resource to watch", None);
    let (Named::Receipts { session } | Named::Changes { session }) =
        uri::parse(uri).ok_or_else(none)?
    else {
        return Err(none());
    };
    let direct = client.direct().await.map_err(|error| refused(&error))?;
    if direct.id() == session { Ok(()) } else { Err(none()) }
}
