//! Tests of sessions, messages and subagents, and of their file.

use std::fs;
use std::path::Path;

use belljar_store::{
    MessageEnding, MessageStatus, NewMessage, Role, SCHEMA_VERSION, Store, StoreError,
    SubagentRecord, SubagentStatus,
};
use serde_json::json;
use sqlx::{Connection as _, SqliteConnection};

use crate::support::Writes as _;
use crate::support::{Home, filled, message, session, subagent};

#[tokio::test]
async fn a_first_start_makes_a_private_file_in_a_private_directory() {
    let home = Home::new();
    let store = home.open().await;
    store.create_session(&session("s", 1)).await.unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let dir = home.file().parent().unwrap().to_owned();
        assert_eq!(mode(&dir), 0o700);
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
    assert_eq!(store.latest_sessions(10).await.unwrap().len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_could_read_is_closed_to_them() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    home.open().await.close().await;
    fs::set_permissions(home.file(), fs::Permissions::from_mode(0o644)).unwrap();
    home.open().await;
    assert_eq!(fs::metadata(home.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[tokio::test]
async fn a_store_where_others_could_put_another_is_refused_and_left_as_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let (home, neighbour) = (Home::new(), Home::new());
    filled(&home).await.close().await;
    let directory = home.file().parent().unwrap().to_owned();
    let before = fs::read(home.file()).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = Store::open(&home.file()).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::NotOurs { path, .. } if *path == directory),
        "{refused}"
    );
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    // Only root can change a file's owner, so this part runs only as root.
    if std::os::unix::fs::chown(home.file(), Some(12_345), None).is_ok() {
        let refused = Store::open(&home.file()).await.unwrap_err();
        assert!(refused.to_string().contains("is a file of user 12345"), "{refused}");
        std::os::unix::fs::chown(home.file(), Some(0), None).unwrap();
    }
    assert_eq!(fs::read(home.file()).unwrap(), before);
    filled(&neighbour).await.latest_sessions(10).await.unwrap();
    assert_eq!(home.open().await.read_session("s").await.unwrap().updated, 11);
}

#[tokio::test]
async fn what_was_stored_is_there_after_a_restart() {
    let home = Home::new();
    let store = filled(&home).await;
    let (messages, subagents) =
        (store.list_messages("s").await.unwrap(), store.list_subagents("s").await.unwrap());
    store.close().await;
    let again = home.open().await;
    assert_eq!(again.list_messages("s").await.unwrap(), messages);
    assert_eq!(again.list_subagents("s").await.unwrap(), subagents);
    let order: Vec<(i64, Role)> = messages.iter().map(|m| (m.sort_order, m.role)).collect();
    assert_eq!(order, [(1, Role::User), (2, Role::Assistant)]);
    assert_eq!(again.read_session("s").await.unwrap().updated, 11);
}

#[tokio::test]
async fn a_placeholder_is_finished_once() {
    let home = Home::new();
    let store = filled(&home).await;
    let finished = |text: &str| MessageEnding {
        status: MessageStatus::Completed,
        content: json!({"text": text}),
        metadata: json!({"run": "r"}),
        updated: 20,
    };
    store.finish_message("s", "m2", &finished("first")).await.unwrap();
    let again = store.finish_message("s", "m2", &finished("second")).await.unwrap_err();
    assert!(matches!(again, StoreError::Finished { .. }), "{again}");
    let none = store.finish_message("s", "m9", &finished("third")).await.unwrap_err();
    assert!(matches!(none, StoreError::NotFound { .. }), "{none}");
    let messages = store.list_messages("s").await.unwrap();
    assert_eq!(messages[1].content, json!({"text": "first"}));
    assert_eq!(messages[1].status, MessageStatus::Completed);
    assert_eq!(messages[0].updated, 10, "the neighbour is untouched");
}

#[tokio::test]
async fn placeholders_of_a_dead_process_become_interrupted_and_nothing_else_does() {
    let home = Home::new();
    let store = filled(&home).await;
    assert_eq!(store.interrupt_in_flight("s", 30).await.unwrap(), 1);
    assert_eq!(store.interrupt_in_flight("s", 31).await.unwrap(), 0);
    let status: Vec<_> =
        store.list_messages("s").await.unwrap().iter().map(|message| message.status).collect();
    assert_eq!(status, [MessageStatus::Completed, MessageStatus::Interrupted]);
}

#[tokio::test]
async fn deleting_a_session_deletes_what_hangs_off_it_and_no_other() {
    let home = Home::new();
    let store = filled(&home).await;
    store.create_session(&session("t", 2)).await.unwrap();
    store.append_message("t", &message("n1", Role::User, MessageStatus::Completed)).await.unwrap();
    assert!(store.delete_session("s").await.unwrap());
    assert!(!store.delete_session("s").await.unwrap());
    assert!(matches!(store.list_messages("s").await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.list_messages("t").await.unwrap().len(), 1);
    store.close().await;
    let path = format!("sqlite://{}", home.file().display());
    let mut db = SqliteConnection::connect(&path).await.unwrap();
    for (count, expected) in [
        ("SELECT COUNT(*) FROM messages", 1),
        ("SELECT COUNT(*) FROM subagent_sessions", 0),
        ("SELECT COUNT(*) FROM sessions", 1),
    ] {
        let (found,): (i64,) = sqlx::query_as(count).fetch_one(&mut db).await.unwrap();
        assert_eq!(found, expected, "{count}");
    }
}

#[tokio::test]
async fn a_subagent_cannot_hang_off_another_sessions_message() {
    let home = Home::new();
    let store = filled(&home).await;
    store.create_session(&session("t", 2)).await.unwrap();
    let stray = subagent("a2", "m2", 0);
    assert!(store.record_subagents("t", &[stray]).await.is_err());
    assert!(store.list_subagents("t").await.unwrap().is_empty());
    assert_eq!(store.list_subagents("s").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_later_record_of_a_subagent_replaces_its_state_and_not_its_origin() {
    let home = Home::new();
    let store = filled(&home).await;
    let later = SubagentRecord {
        status: SubagentStatus::Completed,
        summary: "found it".into(),
        goal: "another goal".into(),
        ended: Some(40),
        ..subagent("a1", "m2", 0)
    };
    store.record_subagents("s", &[later, subagent("a2", "m2", 1)]).await.unwrap();
    let found = store.list_subagents("s").await.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].status, SubagentStatus::Completed);
    assert_eq!((found[0].summary.as_str(), found[0].goal.as_str()), ("found it", "look"));
    assert_eq!(found[0].ended, Some(40));
}

#[tokio::test]
async fn a_tenant_sees_nothing_of_another() {
    let home = Home::new();
    let store = filled(&home).await;
    let other = store.for_tenant_name("other");
    assert!(other.latest_sessions(10).await.unwrap().is_empty());
    assert!(other.latest_session("/w").await.unwrap().is_none());
    assert!(other.list_subagents("s").await.unwrap().is_empty());
    for refused in [
        other.read_session("s").await.map(drop),
        other.find_session("s").await.map(drop),
        other.list_messages("s").await.map(drop),
        other.append_message("s", &message("x", Role::User, MessageStatus::Completed)).await,
        other.record_subagents("s", &[subagent("x", "m2", 3)]).await,
    ] {
        assert!(matches!(refused, Err(StoreError::NotFound { .. })), "{refused:?}");
    }
    assert!(!other.delete_session("s").await.unwrap());
    assert_eq!(other.interrupt_in_flight("s", 1).await.unwrap(), 0);
    assert_eq!(store.list_messages("s").await.unwrap().len(), 2);
}

#[tokio::test]
async fn sessions_come_newest_first_and_are_found_by_a_prefix() {
    let home = Home::new();
    let store = home.open().await;
    for (id, created) in [("20260101-a", 1), ("20260102-b", 2), ("20260102-c", 3)] {
        store.create_session(&session(id, created)).await.unwrap();
    }
    let note = NewMessage { created: 9, ..message("m", Role::User, MessageStatus::Completed) };
    store.append_message("20260101-a", &note).await.unwrap();
    let ids = |sessions: Vec<belljar_store::StoredSession>| {
        sessions.into_iter().map(|session| session.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(store.latest_sessions(2).await.unwrap()), ["20260101-a", "20260102-c"]);
    assert_eq!(store.latest_session("/w").await.unwrap().unwrap().id, "20260101-a");
    assert!(store.latest_session("/elsewhere").await.unwrap().is_none());
    assert_eq!(store.find_session("20260101").await.unwrap().id, "20260101-a");
    let several = store.find_session("20260102").await.unwrap_err();
    assert!(several.to_string().contains("20260102-b, 20260102-c"), "{several}");
    for none in ["", "2027", "%", "20260101-a\u{1b}"] {
        let error = store.find_session(none).await.unwrap_err();
        assert!(matches!(error, StoreError::NotFound { .. }), "{none}: {error}");
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handles_that_open_and_write_at_the_same_time_lose_nothing() {
    const HANDLES: usize = 6;
    const EACH: usize = 10;
    let home = Home::new();
    let path = home.file();
    let opened = (0..HANDLES).map(|_| {
        let path = path.clone();
        tokio::spawn(async move { Store::open(&path).await })
    });
    let mut stores = Vec::new();
    for task in opened.collect::<Vec<_>>() {
        stores.push(task.await.unwrap().unwrap());
    }
    stores[0].create_session(&session("s", 1)).await.unwrap();
    let writing = stores.into_iter().enumerate().map(|(handle, store)| {
        tokio::spawn(async move {
            for number in 0..EACH {
                let id = format!("m-{handle}-{number}");
                let one = message(&id, Role::User, MessageStatus::Completed);
                store.append_message("s", &one).await.unwrap();
            }
        })
    });
    for task in writing.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let messages = home.open().await.list_messages("s").await.unwrap();
    let places: Vec<i64> = messages.iter().map(|message| message.sort_order).collect();
    let expected: Vec<i64> = (1..=(HANDLES * EACH) as i64).collect();
    assert_eq!(places, expected);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_as_it_is() {
    let home = Home::new();
    home.open().await.close().await;
    home.tamper("INSERT INTO belljar_schema VALUES (999, 0)").await;
    let before = fs::read(home.file()).unwrap();
    let error = home.refused().await;
    assert!(matches!(error, StoreError::Newer { found: 999, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&SCHEMA_VERSION.to_string()) && text.contains("belljar.db"), "{text}");
    assert_eq!(fs::read(home.file()).unwrap(), before);
}

#[tokio::test]
async fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    let mut damaged = b"SQLite format 3\0".to_vec();
    damaged.extend_from_slice(&[0xa5; 8192]);
    for bytes in [b"these are my notes, not a database at all".to_vec(), damaged] {
        let home = Home::new();
        fs::create_dir_all(home.file().parent().unwrap()).unwrap();
        fs::write(home.file(), &bytes).unwrap();
        let error = home.refused().await;
        assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
        assert!(error.to_string().contains("move it away"), "{error}");
        assert_eq!(fs::read(home.file()).unwrap(), bytes);
    }
}

#[tokio::test]
async fn a_store_with_a_damaged_page_is_an_error_and_not_an_empty_list() {
    let home = Home::new();
    filled(&home).await.close().await;
    let mut bytes = fs::read(home.file()).unwrap();
    // Overwrites all pages except for the first one, which contains the schema.
    bytes[4096..].fill(0xa5);
    fs::write(home.file(), &bytes).unwrap();
    let read = async { Store::open(&home.file()).await?.latest_sessions(10).await };
    let error = read.await.unwrap_err();
    assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let home = Home::new();
    fs::create_dir_all(home.file().parent().unwrap()).unwrap();
    fs::write(home.file(), b"").unwrap();
    home.tamper("CREATE TABLE bookmarks (url TEXT)").await;
    let before = fs::read(home.file()).unwrap();
    let error = home.refused().await;
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(fs::read(home.file()).unwrap(), before);
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    let home = Home::new();
    fs::create_dir_all(home.file()).unwrap();
    let error = home.refused().await;
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

#[tokio::test]
async fn a_row_that_cannot_be_understood_is_an_error_that_names_it() {
    let home = Home::new();
    filled(&home).await.close().await;
    home.tamper("UPDATE messages SET status = 'odd' WHERE id = 'm1'").await;
    let error = home.open().await.list_messages("s").await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("`m1`") && text.contains("`odd`"), "{text}");
}
