//! Agents that are kept through the API.

use serde_json::{Value, json};

use crate::kit::{Plan, World, agent};

#[tokio::test]
async fn an_agent_is_kept_read_replaced_and_deleted() {
    let world = World::new().await;
    let body = json!({ "slug": "scout", "text": agent("scout") });
    let made = world.call_as("blue-admin", "POST", "/v1/agents").json(&body).send().await.is(201);
    let tag = made.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(made.json()["definition"]["status"], "ready");
    let read = world.call_as("blue-read-only", "GET", "/v1/agents/scout").send().await.is(200);
    assert_eq!(read.json()["text"], agent("scout"));
    assert_eq!(read.headers["etag"].to_str().unwrap(), tag);
    let put = async |tag: Option<&str>, text: &str| {
        let call = world.call_as("blue-admin", "PUT", "/v1/agents/scout");
        let call = tag.into_iter().fold(call, |call, tag| call.header("if-match", tag));
        call.json(&json!({ "text": text })).send().await
    };
    let next = agent("scout").replace("Tells.", "Tells more.");
    put(None, &next).await.is(428).problem("no-condition");
    put(Some("\"1\""), &next).await.is(412).problem("changed");
    let replaced = put(Some(&tag), &next).await.is(200);
    assert_eq!(replaced.json()["definition"]["description"], "Tells more.");
    put(Some(&tag), &next).await.is(412).problem("changed");
    world.call_as("blue-admin", "DELETE", "/v1/agents/scout").send().await.is(200);
    world.call_as("blue-admin", "DELETE", "/v1/agents/scout").send().await.is(404);
    assert_eq!(world.store.for_tenant_name("blue").list_agents().await.unwrap().len(), 1);
}

/// INV-413.
#[tokio::test]
async fn the_text_that_an_agent_has_already_is_not_stored_again_and_leaves_no_line() {
    let world = World::new().await;
    let body = json!({ "slug": "scout", "text": agent("scout") });
    let made = world.call_as("blue-admin", "POST", "/v1/agents").json(&body).send().await.is(201);
    let tag = made.headers["etag"].to_str().unwrap().to_owned();
    let put = async |tag: &str, text: &str| {
        let call = world.call_as("blue-admin", "PUT", "/v1/agents/scout").header("if-match", tag);
        call.json(&json!({ "text": text })).send().await
    };
    let lines = async || {
        let blue = world.store.for_tenant_name("blue");
        blue.read_audit(None, 200, i64::MAX).await.unwrap().rows.len()
    };
    let before = (world.state("blue").await, lines().await);
    for _ in 0..3 {
        let same = put(&tag, &agent("scout")).await.is(200);
        assert_eq!(same.headers["etag"].to_str().unwrap(), tag);
        assert_eq!(same.json()["text"], agent("scout"));
    }
    assert_eq!((world.state("blue").await, lines().await), before);
    put("\"1\"", &agent("scout")).await.is(412).problem("changed");
    // Another text is stored, and noted.
    put(&tag, &agent("scout").replace("Tells.", "Tells more.")).await.is(200);
    assert_eq!(lines().await, before.1 + 1);
}

#[tokio::test]
async fn a_text_that_is_no_agent_is_not_kept_and_says_why() {
    let world = World::new().await;
    let before = world.state("blue").await;
    let post = async |slug: &str, text: &str| {
        let body = json!({ "slug": slug, "text": text });
        world.call_as("blue-admin", "POST", "/v1/agents").json(&body).send().await
    };
    for text in ["", "hello", "---\nname: [\n---\nx", &agent("other")] {
        post("scout", text).await.is(422).problem("agent");
    }
    // A file and one that is kept already have these names.
    for slug in ["teller", "kept", "validate"] {
        post(slug, &agent(slug)).await.is(409).problem("taken");
    }
    post("No Slug", &agent("x")).await.is(400).problem("invalid-request");
    assert_eq!(world.state("blue").await, before);
}

/// INV-486.
#[tokio::test]
async fn a_tool_that_nobody_knows_is_an_error_in_an_agent_of_the_api_too() {
    let world = World::new().await;
    let text = |name: &str, tool: &str| {
        agent(name).replace("tools: []", &format!("tools: [{tool}, file_read]"))
    };
    let before = world.state("blue").await;
    let body = json!({ "slug": "scout", "text": text("scout", "file_reed") });
    let call = |path: &str| world.call_as("blue-admin", "POST", path).json(&body);
    call("/v1/agents").send().await.is(422).problem("agent");
    let said = call("/v1/agents/validate").send().await.is(200).json();
    assert_eq!(said["valid"], false, "{said}");
    let found = said["diagnostics"].as_array().unwrap();
    let slip = found.iter().find(|found| found["code"] == "unknown-tool").unwrap();
    assert_eq!((&slip["severity"], &slip["line"]), (&json!("error"), &json!(4)), "{said}");
    assert_eq!(world.state("blue").await, before);
    // One that was stored before is shown with what is wrong with it, and is replaced by a right one.
    let store = world.store.for_tenant_name("blue");
    store.save_agent("older", &text("older", "file_reed"), 7, None).await.unwrap();
    let older = store.find_agent("older").await.unwrap().unwrap();
    let path = "/v1/agents/older";
    let read = world.call_as("blue-member", "GET", path).send().await.is(200).json();
    assert!(read["definition"].is_null() && read["diagnostics"].to_string().contains("file_reed"));
    let tag = format!("\"{}\"", older.updated);
    let put = world.call_as("blue-admin", "PUT", path).header("if-match", &tag);
    let right = json!({ "text": text("older", "file_read") });
    put.json(&right).send().await.is(200);
    let right = json!({ "slug": "scout", "text": text("scout", "file_read") });
    world.call_as("blue-admin", "POST", "/v1/agents").json(&right).send().await.is(201);
}

#[tokio::test]
async fn validating_says_all_and_keeps_nothing() {
    let world = World::new().await;
    let before = world.state("blue").await;
    let validate = async |text: &str| -> Value {
        let call = world.call_as("blue-member", "POST", "/v1/agents/validate");
        call.json(&json!({ "text": text })).send().await.is(200).json()
    };
    let good = validate(&agent("scout")).await;
    assert_eq!((&good["valid"], &good["definition"]["name"]), (&json!(true), &json!("scout")));
    let bad =
        validate("---\nname: x\ndescription: y\nvisibility: internal\nmaxTurns: many\n---\nz")
            .await;
    assert_eq!(bad["valid"], false);
    assert!(bad["diagnostics"][0]["line"].as_u64().unwrap() > 1, "{bad}");
    assert_eq!(world.state("blue").await, before);
}

#[tokio::test]
async fn agents_of_files_and_of_the_api_stand_in_one_list() {
    let world = World::new().await;
    let list = world.call_as("blue-read-only", "GET", "/v1/agents").send().await.is(200).json();
    let agents = list["agents"].as_array().unwrap();
    let names: Vec<_> = agents.iter().map(|agent| (&agent["slug"], &agent["scope"])).collect();
    assert_eq!(
        names,
        [(&json!("teller"), &json!("home")), (&json!("kept"), &json!("library/api"))]
    );
    let rights = world.call_as("blue-read-only", "GET", "/v1/grants?agent=teller");
    let rights = rights.send().await.is(200).json();
    assert_eq!((&rights["agent"], &rights["tools"]), (&json!("teller"), &json!({})));
    assert!(!rights.to_string().contains(&world.dir.path().to_string_lossy().into_owned()));
}

#[tokio::test]
async fn how_long_an_agent_waits_for_a_subagent_is_told_where_its_grant_says_it() {
    let settings = "[grants.teller]\ntools = [\"spawn_agent\"]\n\
                    subagents = { auto_background = \"90s\" }\n";
    let stated = World::with(Plan { settings, ..Plan::default() }).await;
    let silent = World::new().await;
    for (world, seconds) in [(&stated, Some(json!(90))), (&silent, None)] {
        let read = async |path: &str| -> Value {
            world.call_as("blue-read-only", "GET", path).send().await.is(200).json()
        };
        let grants = read("/v1/grants?agent=teller").await;
        assert_eq!(grants.get("auto_background_seconds"), seconds.as_ref(), "{grants}");
        let rights = read("/v1/rights").await;
        let row = rights["agents"].as_array().unwrap().iter().find(|row| row["slug"] == "teller");
        assert_eq!(row.unwrap().get("auto_background_seconds"), seconds.as_ref(), "{rights}");
    }
}

/// Agent files of every kind, those that are wrong in every way among them.
fn agent_files() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut folders = vec![root.join("oracle/agent-files"), root.join("fuzz/corpus/definition")];
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => texts.push(String::from_utf8_lossy(&std::fs::read(path).unwrap()).into()),
            }
        }
    }
    texts
}

#[tokio::test]
async fn what_is_said_of_a_text_names_no_command_or_file_of_the_operators_machine() {
    let world = World::new().await;
    let mount =
        "---\nname: a\ndescription: d\nmounts: [{path: /a, access: read, host: /b}]\n---\nx\n";
    let mut texts = agent_files();
    assert!(texts.len() > 80, "{}", texts.len());
    texts.push(mount.to_owned());
    let mut hints = std::collections::BTreeSet::new();
    for text in texts {
        let body = json!({ "slug": "scout", "text": text });
        let call = world.call_as("blue-admin", "POST", "/v1/agents/validate").json(&body);
        let said = call.send().await.is(200).json();
        for found in said["diagnostics"].as_array().unwrap() {
            let (message, hint) = (&found["message"], &found["hint"]);
            for (part, of) in [(message, "message"), (hint, "hint")] {
                let part = part.as_str().unwrap_or_default();
                for operators in ["belljar.toml", "`belljar ", "`--lenient", "`--partial"] {
                    assert!(!part.contains(operators), "{of}: {part} in {said:#}");
                }
            }
            hints.extend(hint.as_str().map(str::to_owned));
        }
    }
    for expected in ["`GET /v1/tools`", "the operator of this server grants directories"] {
        assert!(hints.iter().any(|hint| hint.contains(expected)), "no {expected} in {hints:#?}");
    }
}

#[tokio::test]
async fn an_agent_of_any_script_is_kept_and_reached_by_its_name_in_a_url() {
    let world = World::new().await;
    let text = agent("Pr\u{fc}fer");
    let body = json!({ "slug": "pru\u{308}fer", "text": text });
    let made = world.call_as("blue-admin", "POST", "/v1/agents").json(&body).send().await.is(201);
    assert_eq!(made.json()["slug"], "pr\u{fc}fer");
    // As one character, as two, and as it is written.
    for name in ["pr%C3%BCfer", "pru%CC%88fer", "Pr%C3%BCfer"] {
        let path = format!("/v1/agents/{name}");
        let read = world.call_as("blue-read-only", "GET", &path).send().await.is(200);
        assert_eq!(read.json()["text"], text, "{name}");
    }
    for near in ["prufer", "pr%C3%BAfer", "pr%C3%BCfer%E2%80%AE", "pr%FCfer"] {
        let path = format!("/v1/agents/{near}");
        world.call_as("blue-read-only", "GET", &path).send().await.is(404);
    }
    // INV-562: a name of several words, with the bytes of a blank.
    let words = json!({ "slug": "مراجع-الكود", "text": agent("مراجع الكود") });
    world.call_as("blue-admin", "POST", "/v1/agents").json(&words).send().await.is(201);
    let path = "/v1/agents/%D9%85%D8%B1%D8%A7%D8%AC%D8%B9%20%D8%A7%D9%84%D9%83%D9%88%D8%AF";
    world.call_as("blue-read-only", "GET", path).send().await.is(200);
    let other = json!({ "slug": "prufer", "text": agent("prufer") });
    world.call_as("blue-admin", "POST", "/v1/agents").json(&other).send().await.is(201);
    let hidden = json!({ "slug": "pr\u{202e}fer", "text": agent("x") });
    world.call_as("blue-admin", "POST", "/v1/agents").json(&hidden).send().await.is(400);
}
