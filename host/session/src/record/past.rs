//! Loads the past of a session: its ended turns, its summary, and its interrupted turn.

use std::collections::HashMap;
use std::sync::Arc;

use belljar_agent::Usage;
use belljar_store::{
    Compaction, MessageStatus, Role, Store, StoreError, StoredMessage, StoredSession,
    SubagentRecord,
};

use crate::record::images;
use crate::record::rows::parse_row;
use crate::record::turn::{OpenState, Turn};

/// The past of a session that is resumed.
#[derive(Debug)]
pub struct SessionPast {
    /// The session.
    pub session: Arc<StoredSession>,
    /// The ended turns, the oldest first.
    pub turns: Vec<Turn>,
    /// The summary of the older turns, if one was made.
    pub compaction: Option<Compaction>,
    /// The usage of the turns.
    pub used: Usage,
    /// The interrupted turn, which is not among `turns`.
    pub unfinished: Option<Turn<OpenState>>,
}

/// Loads the past of a session, without a turn that has not ended.
pub(crate) async fn load_past(
    store: &Store,
    session: StoredSession,
) -> Result<SessionPast, StoreError> {
    let rows = store.list_messages(&session.id).await?;
    let subagents = store.list_subagents(&session.id).await?;
    past_of(store, session, rows, &subagents).await
}

/// Builds the past of a session from its rows. `subagents` = the session's subagents, the only source for an
/// interrupted turn.
pub(crate) async fn past_of(
    store: &Store,
    session: StoredSession,
    rows: Vec<StoredMessage>,
    subagents: &[SubagentRecord],
) -> Result<SessionPast, StoreError> {
    let session = Arc::new(session);
    let compaction = store.latest_compaction(&session.id).await?;
    let mut turns = ended_turns(store, &session, rows, subagents)?;
    images::restore_images(store, &session.id, turns.iter_mut().flat_map(Turn::images_mut)).await?;
    let mut used = Usage::default();
    for turn in &turns {
        used += turn.state.outcome.total;
    }
    Ok(SessionPast { session, turns, compaction, used, unfinished: None })
}

/// Makes turns of the session's rows, without turns that have not ended.
fn ended_turns(
    store: &Store,
    session: &Arc<StoredSession>,
    rows: Vec<StoredMessage>,
    subagents: &[SubagentRecord],
) -> Result<Vec<Turn>, StoreError> {
    let mut of_turns: HashMap<&str, Vec<&SubagentRecord>> = HashMap::new();
    for one in subagents {
        of_turns.entry(&one.parent_message_id).or_default().push(one);
    }
    let mut turns = Vec::new();
    let mut asked = None;
    for row in rows {
        match row.role {
            Role::User => asked = Some(row),
            Role::Assistant if row.status == MessageStatus::InFlight => {}
            Role::Assistant => {
                let of_turn = of_turns.remove(row.id.as_str()).unwrap_or_default();
                let known = parse_row(store, &row.id, &row.metadata)?;
                let asked = asked.take();
                turns.push(Turn::from_rows(store, session, asked.as_ref(), &row, known, &of_turn)?);
            }
        }
    }
    Ok(turns)
}
