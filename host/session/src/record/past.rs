//! What is known of a session that is resumed.

use belljar_agent::Usage;
use belljar_store::{Compaction, Store, StoreError, StoredMessage, StoredSession, SubagentRecord};

use crate::record::open_turn::OpenTurn;
use crate::record::rows::{PastTurn, turns};

/// What is known of a session that is resumed.
#[derive(Debug)]
pub struct Past {
    /// The session.
    pub session: StoredSession,
    /// Its turns, the oldest first.
    pub turns: Vec<PastTurn>,
    /// The summary of the older ones, if one was made.
    pub compaction: Option<Compaction>,
    /// What they used.
    pub used: Usage,
    /// The turn that a process died in. It stands in none of the others.
    pub unfinished: Option<OpenTurn>,
}

/// What is known of a session, but for a turn that has not ended.
pub(crate) async fn past(store: &Store, session: StoredSession) -> Result<Past, StoreError> {
    let rows = store.messages(&session.id).await?;
    let subagents = store.subagents(&session.id).await?;
    past_of(store, session, rows, &subagents).await
}

/// The same from these rows. `subagents` are those of the session; of a turn that was interrupted
/// they are all that is known.
pub(crate) async fn past_of(
    store: &Store,
    session: StoredSession,
    rows: Vec<StoredMessage>,
    subagents: &[SubagentRecord],
) -> Result<Past, StoreError> {
    let compaction = store.compaction(&session.id).await?;
    let (turns, used) = turns(store, rows, subagents)?;
    Ok(Past { session, turns, compaction, used, unfinished: None })
}
