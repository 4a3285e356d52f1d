//! `belljar sessions`: lists, shows, exports and deletes stored conversations and runs.

use belljar_policy::ShownText;
use belljar_session::{is_at_work, remove_stale_layers, shown_status};
use belljar_store::{
    MessageStatus, Role, Store, StoreError, StoredMessage, StoredSession, SubagentRecord,
    SubagentStatus, TENANT,
};
use serde_json::json;

use crate::args::server::{SessionsArgs, SessionsCommand};
use crate::commands::inspect::export::export_session;
use crate::commands::inspect::receipts::resume_hint;
use crate::setup::data::{shown_time, store_failure, with_store, write_audit};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::whose::no_tenant;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell};

/// The most sessions in the list; `--json` lists all.
const MAX_SHOWN: u32 = 30;

/// The most characters of a title in the list.
const MAX_TITLE: usize = 60;

/// The most characters of a subagent's conclusion.
const MAX_SUMMARY: usize = 200;

/// The most levels by which a subagent of a subagent is indented.
const MAX_INDENT: usize = 4;

/// The number of sessions that are read at a time.
const PAGE: u32 = 500;

/// Runs the command on the sessions of the operator or of the named tenant.
pub(crate) fn run(
    args: &SessionsArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let tenant = args.of.other_tenant().unwrap_or(TENANT);
    with_store(&args.of.data, places, async |store, _| {
        let known = store.tenant_registry().find_tenant(tenant).await.map_err(store_failure)?;
        let store = match known {
            Some(_) if tenant == TENANT => store.clone(),
            Some(known) => store.for_tenant_id(tenant, &known.id),
            None => return Err(no_tenant(tenant)),
        };
        match &args.command {
            SessionsCommand::List { json: true } => out.print_json(&all_sessions(&store).await?)?,
            SessionsCommand::List { json: false } => {
                list_sessions(&store.latest_sessions(MAX_SHOWN).await.map_err(store_failure)?, out);
            }
            SessionsCommand::Show { id } => {
                let session = session_by_name(id, &store).await?;
                let messages = store.list_messages(&session.id).await.map_err(store_failure)?;
                let subagents = store.list_subagents(&session.id).await.map_err(store_failure)?;
                show_session(&store, &session, messages, &subagents, out);
            }
            SessionsCommand::Export { id } => {
                let session = session_by_name(id, &store).await?;
                out.print_json(&export_session(&store, session, out).await?)?;
            }
            SessionsCommand::Rm { id, yes, .. } => {
                remove_sessions(id.as_deref(), *yes, tenant, &store, out).await?;
            }
        }
        Ok(CommandExit::Completed)
    })
}

/// The word on the command line for the session that was used last.
pub(crate) const LATEST: &str = "latest";

/// Finds the session that a person named: by its id, the beginning of the id, or as `latest`.
async fn session_by_name(word: &str, store: &Store) -> Result<StoredSession, Failure> {
    match store.find_session(word).await {
        Ok(session) => Ok(session),
        Err(StoreError::NotFound { .. }) if word == LATEST => {
            let newest = store.latest_sessions(1).await.map_err(store_failure)?.into_iter().next();
            newest.ok_or_else(|| {
                Failure::usage("there is no session yet")
                    .with_hint("`belljar chat` and `belljar run` begin some")
            })
        }
        Err(error @ StoreError::NotFound { .. }) => Err(store_failure(error).with_hint(
            "`belljar sessions list` lists the sessions; `latest` is the one that was last added to",
        )),
        Err(error) => Err(store_failure(error)),
    }
}

/// Asks before something is deleted. If nobody can be asked, `--yes` is required.
pub(crate) fn confirm_deletion(
    yes: bool,
    question: &str,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    match out.ask(question) {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::new("nothing was deleted").with_exit(CommandExit::Cancelled)),
        None => Err(Failure::usage("there is nobody to ask whether to delete")
            .with_hint("say so on the command line: `--yes`")),
    }
}

/// Deletes one session, or all without an id, with their overlays, and writes a line of the audit log.
async fn remove_sessions(
    id: Option<&str>,
    yes: bool,
    tenant: &str,
    store: &Store,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    let Some(id) = id else {
        confirm_deletion(yes, "delete all sessions with all that belongs to them?", out)?;
        let count = store.delete_all_sessions().await.map_err(store_failure)?;
        remove_stale_layers(store).await.map_err(store_failure)?;
        write_audit(store, tenant, "delete_sessions", "all", json!({ "deleted": count })).await?;
        out.note(format_args!("{count} sessions are deleted"));
        return Ok(());
    };
    let session = session_by_name(id, store).await?;
    if is_at_work(store, &session.id) {
        return Err(Failure::new(format!("session `{}` is at work", session.id))
            .with_hint("wait for the end of its turn, or leave its chat, and repeat this"));
    }
    let title = ShownText::clip_line(&session.title, MAX_TITLE);
    confirm_deletion(yes, &format!("delete session `{}` ({title})?", session.id), out)?;
    store.delete_session(&session.id).await.map_err(store_failure)?;
    remove_stale_layers(store).await.map_err(store_failure)?;
    write_audit(store, tenant, "delete_session", &session.id, json!({})).await?;
    out.note(format_args!("session `{}` is deleted", session.id));
    Ok(())
}

/// Reads all sessions, page by page.
async fn all_sessions(store: &Store) -> Result<Vec<StoredSession>, Failure> {
    let mut sessions: Vec<StoredSession> = Vec::new();
    loop {
        let before = sessions.last().map(|session| session.id.clone());
        let page = store.sessions_page(before.as_deref(), PAGE).await.map_err(store_failure)?;
        if page.is_empty() {
            return Ok(sessions);
        }
        sessions.extend(page);
    }
}

/// Prints the table of sessions.
fn list_sessions(sessions: &[StoredSession], out: &TerminalOutput) {
    if sessions.is_empty() {
        out.note("there are no sessions; `belljar chat` and `belljar run` begin some");
        return;
    }
    let headings = ["session", "kind", "agent", "last", "title"];
    let mut table = TextTable::new(out, &headings).with_cut(MAX_TITLE);
    for session in sessions {
        let agent = session.agent.rsplit('/').next().unwrap_or_default();
        table.push_row([
            plain_cell(&session.id),
            plain_cell(session.kind),
            plain_cell(ShownText::clip_line(agent, 40)),
            plain_cell(shown_time(session.updated)),
            plain_cell(ShownText::new(&session.title)),
        ]);
    }
    table.print_to(out);
}

/// Prints a session: its messages, and below each answer the subagents.
fn show_session(
    store: &Store,
    session: &StoredSession,
    messages: Vec<StoredMessage>,
    subagents: &[SubagentRecord],
    out: &TerminalOutput,
) {
    out.print_line(out.paint(TextStyle::Bold, ShownText::new(&session.title)));
    out.print_line(format_args!(
        "{}  {}  {}  {}",
        session.id,
        session.kind,
        ShownText::new(&session.agent),
        shown_time(session.created)
    ));
    for message in messages {
        let who = match message.role {
            Role::User => "you",
            Role::Assistant => "agent",
        };
        let status = shown_status(store, &session.id, message.status);
        out.print_line("");
        out.print_line(out.paint(TextStyle::Dim, format!("{who}, {status}")));
        let text = message.content["text"].as_str().unwrap_or_default();
        out.print_text(&ShownText::multiline(text).to_string());
        match status {
            MessageStatus::Interrupted | MessageStatus::InFlight => {
                print_stored_results(
                    subagents.iter().filter(|one| one.parent_message_id == message.id),
                    out,
                );
            }
            MessageStatus::Partial | MessageStatus::Failed => {
                if let Some(why) = message.metadata["error"].as_str() {
                    out.print_line(format_args!("why: {}", ShownText::multiline(why)));
                }
            }
            MessageStatus::Completed | MessageStatus::Cancelled => {}
        }
        if let Some(hint) = resume_hint(status, session.kind, &session.id) {
            out.note(hint);
        }
    }
}

/// Prints the results so far of a turn's subagents, while the turn has no answer.
fn print_stored_results<'a>(
    subagents: impl Iterator<Item = &'a SubagentRecord>,
    out: &TerminalOutput,
) {
    for subagent in subagents {
        let name = ShownText::clip_line(&subagent.display_name, MAX_TITLE);
        let indent = "  ".repeat(usize::try_from(subagent.depth).unwrap_or(1).min(MAX_INDENT));
        let summary = match subagent.status {
            SubagentStatus::Queued | SubagentStatus::Running => String::new(),
            SubagentStatus::Completed
            | SubagentStatus::Partial
            | SubagentStatus::Failed
            | SubagentStatus::Cancelled => {
                format!(": {}", ShownText::clip_line(subagent.summary.trim(), MAX_SUMMARY))
            }
        };
        out.print_line(format_args!("{indent}{name} {}{summary}", subagent.status));
    }
}
