//! Lists whose rows are as large as somebody else made them: a page ends behind its bytes, and the
//! next one has the rest.

use belljar_store::{
    AuditEntry, MessageStatus, NewMessage, ReceiptRow, Role, StoreWrite, SubagentRecord,
    SubagentSource, SubagentStatus,
};
use serde_json::{Value, json};

use crate::kit::{World, agent, session};

/// Rows, each with most of a mebibyte.
const ROWS: i64 = 7;
const LARGE: usize = 900 << 10;

/// No page is larger: what it ends behind, one row more, and what is said about them.
const LARGEST: usize = 3 << 20;

const PLACE: &str = "blue-large";

fn subagent(number: i64) -> SubagentRecord {
    SubagentRecord {
        id: format!("subagent-{number}"),
        parent_message_id: PLACE.to_owned(),
        parent_tool_call_id: "call_1".to_owned(),
        parent_agent: "home/teller".to_owned(),
        parent_subagent_id: None,
        depth: 1,
        chain_id: "run".to_owned(),
        source: SubagentSource::Preset,
        agent: "home/teller".to_owned(),
        display_name: "teller".to_owned(),
        goal: "look".to_owned(),
        context: None,
        status: SubagentStatus::Completed,
        model: "m".to_owned(),
        tool_names: Vec::new(),
        summary: String::new(),
        result: json!("y".repeat(LARGE)),
        error: None,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        fuel: 0,
        sort_order: number,
        created: 20,
        started: None,
        ended: None,
    }
}

fn receipt(number: i64) -> ReceiptRow {
    ReceiptRow {
        id: format!("receipt-{number}"),
        agent: "top".to_owned(),
        step: 1,
        call_id: "call_1".to_owned(),
        tool: "file_read".to_owned(),
        ok: true,
        ending: "returned".to_owned(),
        fuel: 1,
        micros: 1,
        body: json!("y".repeat(LARGE)),
        created: number,
    }
}

/// Gives a tenant a turn with large rows of each kind.
async fn fill(world: &World) {
    let session = session("blue");
    let message = NewMessage {
        id: PLACE.to_owned(),
        role: Role::Assistant,
        status: MessageStatus::InFlight,
        content: json!({}),
        metadata: json!({}),
        created: 20,
    };
    let line = |number: i64| AuditEntry {
        id: format!("99990101T00000000{number}Z-0000"),
        at: 30,
        actor: "key:1".to_owned(),
        action: "large".to_owned(),
        object: String::new(),
        detail: json!("y".repeat(240 << 10)),
    };
    let mut writes = vec![
        StoreWrite::AppendMessages { session: session.clone(), messages: vec![message] },
        StoreWrite::Subagents {
            session: session.clone(),
            records: (0..ROWS).map(subagent).collect(),
        },
        StoreWrite::Receipts {
            session,
            message: PLACE.to_owned(),
            receipts: (0..ROWS).map(receipt).map(Into::into).collect(),
        },
    ];
    // More of them, as one of them is smaller.
    writes.extend((0..3 * ROWS).map(line).map(StoreWrite::Audit));
    let store = world.store.for_tenant_name("blue");
    for write in writes {
        store.enqueue_writes(vec![write]).await.unwrap();
    }
}

/// Every row of a list, page by page, and how many pages there were.
async fn read(world: &World, path: &str, rows: &str, onward: &str) -> (Vec<Value>, usize) {
    let (mut seen, mut pages, mut next) = (Vec::new(), 0, String::new());
    loop {
        let path = format!("{path}{next}");
        let answer = world.call_as("blue-admin", "GET", &path).send().await.is(200);
        assert!(answer.body.len() < LARGEST, "{path}: {} bytes", answer.body.len());
        let page = answer.json();
        seen.extend(page[rows].as_array().unwrap().iter().cloned());
        pages += 1;
        assert!(pages < 100, "{path}: no end");
        let Some(last) = page["next"].as_str() else { return (seen, pages) };
        next = format!("&{onward}={last}");
    }
}

fn named(rows: &[Value], name: &str) -> Vec<String> {
    let mut names: Vec<_> =
        rows.iter().map(|row| row[name].as_str().unwrap_or_default().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn pages_of_large_rows_end_behind_their_bytes_and_have_each_row_once() {
    let world = World::new().await;
    fill(&world).await;
    let of = format!("/v1/sessions/{}", session("blue"));
    for (list, rows, onward) in
        [("subagents", "subagents", "after"), ("receipts", "receipts", "before")]
    {
        for query in ["limit=200".to_owned(), format!("message={PLACE}")] {
            let (seen, pages) = read(&world, &format!("{of}/{list}?{query}"), rows, onward).await;
            let kind = rows.trim_end_matches('s');
            let expected: Vec<_> = (0..ROWS).map(|number| format!("{kind}-{number}")).collect();
            assert_eq!(named(&seen, "id"), expected, "{list}?{query}");
            assert!(pages >= 3, "{list}: {pages}");
        }
    }
    let (seen, pages) = read(&world, "/v1/audit?limit=200", "entries", "before").await;
    let large = seen.iter().filter(|line| line["action"] == "large").count();
    assert_eq!(i64::try_from(large).unwrap(), 3 * ROWS, "each once");
    assert!(pages >= 3, "{pages}");
    // The neighbour has none of it.
    let path = format!("/v1/sessions/{}/receipts", session("red"));
    let answer = world.call_as("red-admin", "GET", &path).send().await.is(200).json();
    assert_eq!(answer, json!({ "receipts": [] }));
}

#[tokio::test]
async fn a_page_of_agents_ends_behind_its_bytes_and_has_each_agent_once() {
    let world = World::new().await;
    let store = world.store.for_tenant_name("blue");
    for number in 0..40 {
        let name = format!("long-{number:02}");
        // As long as the head of a file may be.
        let long = format!("description: {}", "y".repeat(60 << 10));
        let text = agent(&name).replace("description: Tells.", &long);
        store.save_agent(&name, &text, 7, None).await.unwrap();
    }
    let (seen, pages) = read(&world, "/v1/agents?", "agents", "after").await;
    let mut slugs = vec!["kept".to_owned(), "teller".to_owned()];
    slugs.extend((0..40).map(|number| format!("long-{number:02}")));
    slugs.sort();
    let mut expected = slugs.clone();
    let own = |slug: &String| slugs.contains(slug);
    let mut found = named(&seen, "slug");
    found.retain(own);
    expected.sort();
    assert_eq!(found, expected, "each once");
    assert!(pages >= 2, "{pages}");
    let none = world.call_as("blue-admin", "GET", "/v1/agents?after=nobody").send().await.is(200);
    assert_eq!(none.json(), json!({ "agents": [] }));
}
