//! The answers that the page is made of: searches, contents, tables, who decides, what runs.

use belljar_store::{NewReceipt, ReceiptRow, SessionKind, StoreWrite, StoredSession};
use serde_json::{Value, json};

use crate::kit::{Plan, World, session};
use crate::leaving::{HANGING, hanging};

async fn get(world: &World, caller: &str, path: &str) -> Value {
    world.call_as(caller, "GET", path).send().await.is(200).json()
}

fn ids(sessions: &Value) -> Vec<String> {
    let all = sessions["sessions"].as_array().unwrap();
    all.iter().map(|session| session["id"].as_str().unwrap().to_owned()).collect()
}

fn receipt(id: &str, tool: &str, body: Value) -> NewReceipt {
    let row = ReceiptRow {
        id: id.to_owned(),
        agent: "main".to_owned(),
        step: 1,
        call_id: format!("call {id}"),
        tool: tool.to_owned(),
        ok: true,
        ending: "returned".to_owned(),
        fuel: 7,
        micros: 9,
        body,
        created: 20,
    };
    row.into()
}

#[tokio::test]
async fn sessions_are_found_by_title_kind_and_whether_they_run() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let store = world.store.for_tenant_name("blue");
    for (id, title, kind) in [
        ("20261122T000000001Z-a", "Tides of MARCH", SessionKind::Chat),
        ("20261122T000000002Z-b", "100% of tides", SessionKind::Api),
        ("20261122T000000003Z-c", "nothing_else", SessionKind::Run),
    ] {
        let new = StoredSession {
            id: id.to_owned(),
            title: title.to_owned(),
            agent: "home/teller".to_owned(),
            workspace: "/somewhere/tides".to_owned(),
            model: String::new(),
            kind,
            created: 30,
            updated: 30,
        };
        store.enqueue_writes(vec![StoreWrite::CreateSession(new)]).await.unwrap();
    }
    let found = async |query: &str| {
        let found = get(&world, "blue-read-only", &format!("/v1/sessions?{query}")).await;
        let ids = ids(&found).into_iter().map(|id| id.split_once('-').unwrap().1.to_owned());
        (ids.collect::<Vec<_>>(), found["next"].clone())
    };
    assert_eq!(found("q=tides").await.0, ["b", "a"]);
    assert_eq!(found("q=march").await.0, ["a"]);
    assert_eq!(found("q=100%25").await.0, ["b"], "it is no pattern");
    assert_eq!(found("q=%25").await.0, ["b"]);
    assert_eq!(found("q=g_e").await.0, ["c"]);
    assert_eq!(found("q=somewhere").await.0, Vec::<String>::new(), "no path of the host");
    assert_eq!(found("q=tides&kind=chat").await.0, ["a"]);
    assert_eq!(found("kind=api").await.0, ["b", "blue"]);
    let (first, next) = found("q=tides&limit=1").await;
    assert_eq!(first, ["b"]);
    assert_eq!(found(&format!("q=tides&before={}", next.as_str().unwrap())).await.0, ["a"]);
    let red = get(&world, "red-admin", "/v1/sessions?q=tides").await;
    assert_eq!(ids(&red), Vec::<String>::new(), "its neighbour's are not there");
    for bad in ["kind=none".to_owned(), format!("q={}", "x".repeat(201)), "running=x".to_owned()] {
        let path = format!("/v1/sessions?{bad}");
        world.call_as("blue-admin", "GET", &path).send().await.is(400).problem("invalid-request");
    }
    assert_eq!(found("running=true").await.0, Vec::<String>::new());
    let (_turn, running) = hanging(&world, "blue-member").await;
    let path = "/v1/sessions?running=true";
    assert_eq!(ids(&get(&world, "blue-read-only", path).await), [running]);
    assert_eq!(ids(&get(&world, "red-read-only", path).await), Vec::<String>::new());
    assert_eq!(found("running=true&kind=chat").await.0, Vec::<String>::new());
}

#[tokio::test]
async fn what_goes_with_a_session_is_counted() {
    let world = World::new().await;
    let (id, store) = (session("blue"), world.store.for_tenant_name("blue"));
    let receipts = vec![receipt("1", "file_read", json!({})), receipt("2", "file_read", json!({}))];
    let (session, message) = (id.clone(), "blue-answer".to_owned());
    store.enqueue_writes(vec![StoreWrite::Receipts { session, message, receipts }]).await.unwrap();
    let told = get(&world, "blue-read-only", &format!("/v1/sessions/{id}/contents")).await;
    let expected = json!({
        "messages": 2, "subagents": 0, "receipts": 2, "attachments": 1, "attachment_bytes": 25,
        "changes": 0, "running": false,
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn only_a_turn_that_was_left_off_is_resumed() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let path = |id: &str| format!("/v1/sessions/{id}/resume");
    let own = path(&session("blue"));
    let told = world.call_as("blue-member", "POST", &own).send().await.is(200).json();
    assert_eq!(told, json!({ "resumed": false }));
    let before = world.state("blue").await;
    world.call_as("blue-read-only", "POST", &own).send().await.is(403);
    world.call_as("red-member", "POST", &own).send().await.is(404);
    assert_eq!(world.state("blue").await, before);
    let (_turn, running) = hanging(&world, "blue-member").await;
    world.call_as("blue-member", "POST", &path(&running)).send().await.is(409).problem("busy");
}

#[tokio::test]
async fn receipts_are_a_table_that_no_spreadsheet_computes() {
    let world = World::new().await;
    let (id, store) = (session("blue"), world.store.for_tenant_name("blue"));
    let body = json!({
        "call_id": "call 1", "parent": "call 0", "error": "it was refused;=1+1",
        "receipt": {
            "peak_memory": 65_536,
            "bytes": { "read": 77, "written": 0 },
            "paths_read": ["/workspace/a.md", "=HYPERLINK(\"http://evil.test\")"],
            "hosts": ["@SUM(1)"],
            "denials": [{ "code": "path-not-allowed", "what": "open", "facts": "/etc/passwd" }],
        },
    });
    let receipts = vec![receipt("1", "=1+1", body), receipt("2", "a,\"b\"\r\n=2", json!({}))];
    let (session, message) = (id.clone(), "blue-answer".to_owned());
    store.enqueue_writes(vec![StoreWrite::Receipts { session, message, receipts }]).await.unwrap();
    let path = format!("/v1/sessions/{id}/receipts?format=csv");
    let answer = world.call_as("blue-read-only", "GET", &path).send().await.is(200);
    assert_eq!(answer.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(answer.headers["content-disposition"], "attachment; filename=\"receipts.csv\"");
    let text = String::from_utf8(answer.body).unwrap();
    let mut lines = text.split("\r\n");
    assert!(
        lines.next().unwrap().starts_with("created,message,id,agent,step,call_id,parent,tool,ok,")
    );
    assert!(text.contains(",'=1+1,true,"), "{text}");
    assert!(text.contains(",\"a,\"\"b\"\"\r\n'=2\",true,"), "inside of its quotes: {text}");
    assert!(text.contains(",65536,") && text.contains(",'@SUM(1),"), "{text}");
    assert!(text.contains(",path-not-allowed open /etc/passwd,"), "{text}");
    assert!(text.contains("\"it was refused;'=1+1\"") && text.contains(",77,0,"), "{text}");
    assert!(text.contains("/workspace/a.md\n'=HYPERLINK"), "{text}");
    let json = get(&world, "blue-read-only", &format!("/v1/sessions/{id}/receipts")).await;
    assert_eq!(json["receipts"].as_array().unwrap().len(), 2, "JSON stays as it is");
    let path = format!("/v1/sessions/{id}/receipts?format=xml");
    world.call_as("blue-admin", "GET", &path).send().await.is(400);
}

#[tokio::test]
async fn who_decides_is_told_to_all_and_the_way_around_to_admins_alone() {
    let world = World::new().await;
    let path = "/v1/explain?agent=teller&tool=file_read";
    let all = async |query: &str| {
        let mut told = Vec::new();
        for caller in ["blue-read-only", "blue-member", "blue-admin"] {
            told.push(get(&world, caller, query).await);
        }
        told
    };
    let told = all(path).await;
    for answer in &told {
        assert_eq!((&answer["agent"], &answer["permission"]), (&json!("teller"), &json!("deny")));
        assert_eq!(answer["decided_by"], "definition", "its file names no tools: {answer}");
        let votes = answer["votes"].as_array().unwrap();
        assert!(votes.iter().any(|vote| vote["source"] == "grants"), "{answer}");
    }
    let agent = "---\nname: asker\ndescription: Asks.\ntools: file_read\n---\nRead.\n";
    let new = json!({ "slug": "asker", "text": agent });
    world.call_as("blue-admin", "POST", "/v1/agents").json(&new).send().await.is(201);
    let told = all("/v1/explain?agent=asker&tool=file_read&target=/elsewhere/x").await;
    for (answer, knows) in told.iter().zip([false, false, true]) {
        let decided = (&answer["permission"], &answer["decided_by"]);
        assert_eq!(decided, (&json!("deny"), &json!("grants")), "{answer}");
        assert_eq!(answer["command"].is_string(), knows, "{answer}");
        assert_eq!(answer["grant"].is_string(), knows, "{answer}");
    }
    let rows = all("/v1/rights").await;
    for rights in &rows {
        let tools = rights["tools"].as_array().unwrap();
        let place = tools.iter().position(|tool| tool["name"] == "file_read").unwrap();
        let row = |name: &str| {
            let agents = rights["agents"].as_array().unwrap();
            agents.iter().find(|agent| agent["slug"] == name).unwrap().clone()
        };
        assert_eq!(row("teller")["cells"][place], "absent");
        assert_eq!(row("teller")["cells"].as_array().unwrap().len(), tools.len());
        assert_eq!(row("asker")["cells"][place], "allow");
        assert_eq!(row("asker")["agent"], "library/api/asker");
    }
    let named = get(&world, "red-admin", "/v1/rights").await.to_string();
    assert!(!named.contains("asker"), "its neighbour's are not there: {named}");
    for (path, status) in [
        ("/v1/explain?agent=teller&tool=nothing", 404),
        ("/v1/explain?agent=nobody&tool=file_read", 404),
        ("/v1/explain?agent=teller&tool=file_read&target=../x", 400),
        ("/v1/explain?agent=teller", 400),
    ] {
        world.call_as("blue-admin", "GET", path).send().await.is(status);
    }
}

#[tokio::test]
async fn pages_of_rights_have_each_agent_once() {
    let world = World::new().await;
    let home = world.dir.path().join("blue/home/agents");
    for number in 0..230 {
        let name = format!("agent-{number:03}");
        std::fs::write(home.join(format!("{name}.md")), crate::kit::agent(&name)).unwrap();
    }
    let (mut seen, mut pages, mut after) = (Vec::new(), 0, String::new());
    loop {
        let page = get(&world, "blue-read-only", &format!("/v1/rights{after}")).await;
        let rows = page["agents"].as_array().unwrap();
        seen.extend(rows.iter().map(|row| row["agent"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(next) = page["next"].as_str() else { break };
        assert_eq!(rows.len(), 100);
        after = format!("?after={next}");
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((pages, seen.len()), (3, all), "each once");
    assert!(seen.len() >= 231, "{}", seen.len());
    let none = get(&world, "blue-read-only", "/v1/rights?after=nobody").await;
    assert_eq!((&none["agents"], &none["next"]), (&json!([]), &Value::Null));
}

#[tokio::test]
async fn a_tool_is_shown_with_its_digest_and_a_preview_with_its_costs() {
    let world = World::new().await;
    let tools = get(&world, "blue-read-only", "/v1/tools").await;
    let all = tools["tools"].as_array().unwrap();
    for tool in all {
        let component = tool["component"].is_string();
        let digest = tool["digest"].as_str().unwrap_or_default();
        assert_eq!(digest.len(), if component { 64 } else { 0 }, "{tool}");
        assert_eq!(tool["imports"].as_array().unwrap().is_empty(), !component, "{tool}");
    }
    // Of one agent: `teller` has none, and whoever calls tools itself has what it is granted.
    let of = async |agent: &str| {
        let path = format!("/v1/tools?agent={agent}");
        let tools = get(&world, "blue-read-only", &path).await["tools"].clone();
        let names = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone());
        names.collect::<Vec<Value>>()
    };
    assert_eq!(of("teller").await, Vec::<Value>::new());
    let own = of("mcp").await;
    assert!(own.contains(&json!("file_read")), "{own:?}");
    let path = "/v1/tools?agent=nobody";
    world.call_as("blue-read-only", "GET", path).send().await.is(404);
    let libraries = get(&world, "blue-read-only", "/v1/libraries").await;
    assert_eq!(libraries["libraries"], json!([]));
    assert!(libraries["rules"].as_array().unwrap().len() > 3);
    let asked = json!({ "agent": "teller", "text": "tell" });
    let call = world.call_as("blue-member", "POST", "/v1/preview").json(&asked);
    let preview = call.send().await.is(200).json();
    let blocks = preview["blocks"].as_array().unwrap();
    assert_eq!(blocks[0]["kind"], "system");
    let system = preview["request"]["system"][0].as_str().unwrap();
    assert_eq!(blocks[0]["bytes"], system.len());
    let messages = blocks.iter().filter(|block| block["kind"] == "message").count();
    assert_eq!(messages, preview["request"]["messages"].as_array().unwrap().len());
}

#[tokio::test]
async fn the_operator_sees_what_runs_everywhere_and_nobody_else_does() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let (_blue, blue) = hanging(&world, "blue-member").await;
    let (_red, red) = hanging(&world, "red-member").await;
    let all = get(&world, "local-admin", "/v1/running?all=true").await;
    let mut turns: Vec<(String, String)> = all["turns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| [&turn["tenant"], &turn["session"]].map(|it| it.as_str().unwrap().to_owned()))
        .map(|[tenant, session]| (tenant, session))
        .collect();
    turns.sort();
    assert_eq!(turns, [("blue".to_owned(), blue.clone()), ("red".to_owned(), red)]);
    for caller in ["blue-admin", "red-member", "local-read-only"] {
        let call = world.call_as(caller, "GET", "/v1/running?all=true");
        let told = call.send().await.is(403).problem("scope").to_string();
        assert!(!told.contains(&blue), "{told}");
    }
    let own = get(&world, "blue-admin", "/v1/running").await;
    assert_eq!(own["turns"].as_array().unwrap().len(), 1, "{own}");
    assert_eq!(own["turns"][0]["session"], blue);
    assert_eq!(get(&world, "local-admin", "/v1/running").await["turns"], json!([]));
}

#[tokio::test]
async fn the_audit_log_is_read_by_actor_and_by_action() {
    let world = World::new().await;
    let path = format!("/v1/sessions/{}", session("blue"));
    world.call_as("blue-read-only", "DELETE", &path).send().await.is(403);
    world.call_as("blue-member", "DELETE", &path).send().await.is(200);
    let actions = async |query: &str| -> Vec<String> {
        let log = get(&world, "blue-admin", &format!("/v1/audit?{query}")).await;
        let lines = log["entries"].as_array().unwrap();
        lines.iter().map(|line| line["action"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(actions("action=refused").await, ["refused"]);
    let member = format!("actor=key:{}", &world.keys["blue-member"][3..19]);
    assert_eq!(actions(&member).await, ["delete_session"]);
    assert_eq!(actions(&format!("{member}&action=refused")).await, Vec::<String>::new());
}
