//! `belljar sessions`: what is stored of conversations and runs, shown, exported and deleted.

use belljar_policy::Shown;
use belljar_session::{is_at_work, remove_stale_layers, shown_status};
use belljar_store::{
    MessageStatus, Role, Store, StoreError, StoredMessage, StoredSession, SubagentRecord,
    SubagentStatus, TENANT,
};
use serde_json::json;

use crate::args::server::{SessionsArgs, SessionsCommand};
use crate::commands::inspect::export::export;
use crate::commands::inspect::receipts::resume_hint;
use crate::setup::data::{audit, failed, shown_time, with_store};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::whose::no_tenant;
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain};

/// Sessions that the list shows; `--json` lists all.
const MAX_SHOWN: u32 = 30;

/// Characters of a title in the list.
const MAX_TITLE: usize = 60;

/// Characters of what a subagent has concluded.
const MAX_SUMMARY: usize = 200;

/// Steps by which subagents of subagents are moved to the right.
const MAX_INDENT: usize = 4;

/// Sessions that are read at once.
const PAGE: u32 = 500;

pub(crate) fn run(args: &SessionsArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let tenant = args.of.other().unwrap_or(TENANT);
    with_store(&args.of.data, places, async |store, _| {
        let known = store.registry().tenant(tenant).await.map_err(failed)?;
        let store = match known {
            Some(_) if tenant == TENANT => store.clone(),
            Some(known) => store.of(tenant, &known.id),
            None => return Err(no_tenant(tenant)),
        };
        match &args.command {
            SessionsCommand::List { json: true } => out.json(&all(&store).await?)?,
            SessionsCommand::List { json: false } => {
                list(&store.sessions(MAX_SHOWN).await.map_err(failed)?, out);
            }
            SessionsCommand::Show { id } => {
                let session = named(id, &store).await?;
                let messages = store.messages(&session.id).await.map_err(failed)?;
                let subagents = store.subagents(&session.id).await.map_err(failed)?;
                show(&store, &session, messages, &subagents, out);
            }
            SessionsCommand::Export { id } => {
                let session = named(id, &store).await?;
                out.json(&export(&store, session, out).await?)?;
            }
            SessionsCommand::Rm { id, yes, .. } => {
                remove(id.as_deref(), *yes, tenant, &store, out).await?;
            }
        }
        Ok(Exit::Completed)
    })
}

/// The word for the session that was last added to.
pub(crate) const LATEST: &str = "latest";

/// The session named by a person: by id, by the beginning of the id, or as `latest`.
async fn named(word: &str, store: &Store) -> Result<StoredSession, Failure> {
    match store.find_session(word).await {
        Ok(session) => Ok(session),
        Err(StoreError::NotFound { .. }) if word == LATEST => {
            let newest = store.sessions(1).await.map_err(failed)?.into_iter().next();
            newest.ok_or_else(|| {
                Failure::usage("there is no session yet")
                    .hint("`belljar chat` and `belljar run` begin some")
            })
        }
        Err(error @ StoreError::NotFound { .. }) => Err(failed(error).hint(
            "`belljar sessions list` lists the sessions; `latest` is the one that was last added to",
        )),
        Err(error) => Err(failed(error)),
    }
}

/// Asks before something is deleted; without a person, only `--yes` is a yes.
pub(crate) fn sure(yes: bool, question: &str, out: &Out) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    match out.ask(question) {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::new("nothing was deleted").exit(Exit::Cancelled)),
        None => Err(Failure::usage("there is nobody to ask whether to delete")
            .hint("say so on the command line: `--yes`")),
    }
}

async fn remove(
    id: Option<&str>,
    yes: bool,
    tenant: &str,
    store: &Store,
    out: &Out,
) -> Result<(), Failure> {
    let Some(id) = id else {
        sure(yes, "delete all sessions with all that belongs to them?", out)?;
        let count = store.delete_all_sessions().await.map_err(failed)?;
        remove_stale_layers(store).await.map_err(failed)?;
        audit(store, tenant, "delete_sessions", "all", json!({ "deleted": count })).await?;
        out.note(format_args!("{count} sessions are deleted"));
        return Ok(());
    };
    let session = named(id, store).await?;
    if is_at_work(store, &session.id) {
        return Err(Failure::new(format!("session `{}` is at work", session.id))
            .hint("wait for the end of its turn, or leave its chat, and repeat this"));
    }
    let title = Shown::clipped(&session.title, MAX_TITLE);
    sure(yes, &format!("delete session `{}` ({title})?", session.id), out)?;
    store.delete_session(&session.id).await.map_err(failed)?;
    remove_stale_layers(store).await.map_err(failed)?;
    audit(store, tenant, "delete_session", &session.id, json!({})).await?;
    out.note(format_args!("session `{}` is deleted", session.id));
    Ok(())
}

async fn all(store: &Store) -> Result<Vec<StoredSession>, Failure> {
    let mut sessions: Vec<StoredSession> = Vec::new();
    loop {
        let before = sessions.last().map(|session| session.id.clone());
        let page = store.sessions_page(before.as_deref(), PAGE).await.map_err(failed)?;
        if page.is_empty() {
            return Ok(sessions);
        }
        sessions.extend(page);
    }
}

fn list(sessions: &[StoredSession], out: &Out) {
    if sessions.is_empty() {
        out.note("there are no sessions; `belljar chat` and `belljar run` begin some");
        return;
    }
    let headings = ["session", "kind", "agent", "last", "title"];
    let mut table = Table::new(out, &headings).cut(MAX_TITLE);
    for session in sessions {
        let agent = session.agent.rsplit('/').next().unwrap_or_default();
        table.row([
            plain(&session.id),
            plain(session.kind),
            plain(Shown::clipped(agent, 40)),
            plain(shown_time(session.updated)),
            plain(Shown::new(&session.title)),
        ]);
    }
    table.print(out);
}

fn show(
    store: &Store,
    session: &StoredSession,
    messages: Vec<StoredMessage>,
    subagents: &[SubagentRecord],
    out: &Out,
) {
    out.line(out.paint(Style::Bold, Shown::new(&session.title)));
    out.line(format_args!(
        "{}  {}  {}  {}",
        session.id,
        session.kind,
        Shown::new(&session.agent),
        shown_time(session.created)
    ));
    for message in messages {
        let who = match message.role {
            Role::User => "you",
            Role::Assistant => "agent",
        };
        let status = shown_status(store, &session.id, message.status);
        out.line("");
        out.line(out.paint(Style::Dim, format!("{who}, {status}")));
        let text = message.content["text"].as_str().unwrap_or_default();
        out.text(&Shown::multiline(text).to_string());
        match status {
            MessageStatus::Interrupted | MessageStatus::InFlight => {
                kept(subagents.iter().filter(|one| one.parent_message_id == message.id), out);
            }
            MessageStatus::Partial | MessageStatus::Failed => {
                if let Some(why) = message.metadata["error"].as_str() {
                    out.line(format_args!("why: {}", Shown::multiline(why)));
                }
            }
            MessageStatus::Completed | MessageStatus::Cancelled => {}
        }
        if let Some(hint) = resume_hint(status, session.kind, &session.id) {
            out.note(hint);
        }
    }
}

/// The results so far of the subagents of a turn that has no answer yet.
fn kept<'a>(subagents: impl Iterator<Item = &'a SubagentRecord>, out: &Out) {
    for subagent in subagents {
        let name = Shown::clipped(&subagent.display_name, MAX_TITLE);
        let indent = "  ".repeat(usize::try_from(subagent.depth).unwrap_or(1).min(MAX_INDENT));
        let summary = match subagent.status {
            SubagentStatus::Queued | SubagentStatus::Running => String::new(),
            SubagentStatus::Completed
            | SubagentStatus::Partial
            | SubagentStatus::Failed
            | SubagentStatus::Cancelled => {
                format!(": {}", Shown::clipped(subagent.summary.trim(), MAX_SUMMARY))
            }
        };
        out.line(format_args!("{indent}{name} {}{summary}", subagent.status));
    }
}
