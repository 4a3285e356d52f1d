//! The fields that the page shows of agents, usage and turns: each field with its value, and nothing of it to
//! another tenant.

use serde_json::{Value, json};

use crate::kit::{Plan, World, session};
use crate::leaving::{HANGING, hanging};

async fn get(world: &World, caller: &str, path: &str) -> Value {
    world.call_as(caller, "GET", path).send().await.is(200).json()
}

/// An agent that uses tokens.
const COUNTING: &str = "
transcript: 1
each_run: true
agents:
  - agent: teller
    turns:
      - say: Once.
        usage: {input: 100, output: 10}
";

#[tokio::test]
async fn usage_is_counted_apart_as_it_is_asked_for() {
    let world = World::with(Plan { transcript: COUNTING, ..Plan::default() }).await;
    let told = json!({ "agent": "teller", "text": "tell" });
    for _ in 0..2 {
        world.call_as("blue-member", "POST", "/v1/chat").json(&told).send().await.is(200);
    }
    let days = get(&world, "blue-read-only", "/v1/usage").await;
    assert_eq!(days.get("rows"), None, "nobody asked for them");
    let today = days["days"][0]["day"].clone();
    let usage = get(&world, "blue-read-only", "/v1/usage?by=agent").await;
    let row = |names: Value| {
        let mut row = json!({
            "turns": 2, "steps": 2, "input_tokens": 200, "cached_tokens": 0, "output_tokens": 20,
            "tool_calls": 0, "fuel": 0,
        });
        row.as_object_mut().unwrap().extend(names.as_object().unwrap().clone());
        row
    };
    assert_eq!(usage["rows"], json!([row(json!({ "agent": "home/teller" }))]));
    assert_eq!(usage["days"], days["days"]);
    let model =
        get(&world, "blue-read-only", "/v1/usage?by=model").await["rows"][0]["model"].clone();
    assert!(model.as_str().is_some_and(|model| !model.is_empty()), "{model}");
    let all = get(&world, "blue-read-only", "/v1/usage?by=model,day,agent").await;
    let names = json!({ "day": today, "agent": "home/teller", "model": model });
    assert_eq!(all["rows"], json!([row(names)]));
    for caller in ["red-admin", "local-admin"] {
        let others = get(&world, caller, "/v1/usage?by=agent").await;
        assert_eq!((&others["days"], &others["rows"]), (&json!([]), &json!([])), "{caller}");
    }
    for bad in ["by=", "by=day,day,x", "by=agent%20model"] {
        let path = format!("/v1/usage?{bad}");
        world.call_as("blue-admin", "GET", &path).send().await.is(400).problem("invalid-request");
    }
}

#[tokio::test]
async fn files_that_are_no_agents_are_listed_with_their_reasons() {
    let world = World::new().await;
    let home = world.dir.path().join("blue/home");
    std::fs::create_dir_all(home.join("drafts/agents")).unwrap();
    let text = |name: &str| crate::kit::agent(name);
    std::fs::write(home.join("agents/broken.md"), "---\nname: [\n---\nx\n").unwrap();
    std::fs::write(home.join("agents/twin.md"), text("teller")).unwrap();
    std::fs::write(home.join("drafts/agents/waiting.md"), text("waiting")).unwrap();
    std::fs::write(home.join("drafts/agents/teller.md"), text("teller")).unwrap();
    let list = get(&world, "blue-admin", "/v1/agents").await;
    let broken = list["broken"].as_array().unwrap();
    let of = |name: &str| broken.iter().find(|file| file["slug"] == name).unwrap();
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert_eq!(
        (&of("broken")["scope"], &of("broken")["file"]),
        (&json!("home"), &json!("broken.md"))
    );
    assert_eq!(of("broken")["diagnostics"][0]["line"], 2, "{broken:?}");
    let said = of("twin")["diagnostics"][0]["message"].as_str().unwrap();
    assert_eq!(said, "its name is taken by `teller.md`");
    let drafts = list["drafts"].as_array().unwrap();
    let names: Vec<_> = drafts.iter().map(|draft| draft["slug"].as_str().unwrap()).collect();
    assert_eq!(names, ["teller", "waiting"]);
    assert_eq!(drafts[0]["reasons"][0], "its name is taken by an agent that is in use");
    assert_eq!(drafts[0].get("command"), None, "{drafts:?}");
    assert_eq!(drafts[1]["status"], "ready to promote");
    let command = drafts[1]["command"].as_str().unwrap();
    assert!(command.starts_with("belljar drafts promote agents/waiting"), "{command}");
    // Whoever is no admin has no use for the operator's commands, and nobody sees the host's paths.
    let member = get(&world, "blue-member", "/v1/agents").await;
    assert_eq!(member["drafts"][1].get("command"), None);
    for answer in [&list, &member] {
        let place = world.dir.path().to_str().unwrap();
        assert!(!answer.to_string().contains(place), "{answer}");
    }
    for caller in ["red-admin", "local-admin"] {
        let others = get(&world, caller, "/v1/agents").await;
        assert_eq!((others.get("broken"), others.get("drafts")), (None, None), "{caller}");
    }
}

#[tokio::test]
async fn agents_are_listed_and_read_by_scope() {
    let world = World::new().await;
    let text = crate::kit::agent("teller").replace("Tells.", "Kept.");
    let home = world.dir.path().join("blue/home/agents/broken.md");
    std::fs::write(home, "---\nname: [\n---\nx\n").unwrap();
    world.store.for_tenant_name("blue").save_agent("teller", &text, 9, None).await.unwrap();
    let slugs = async |scope: &str| {
        let list = get(&world, "blue-read-only", &format!("/v1/agents?scope={scope}")).await;
        let all = list["agents"].as_array().unwrap().iter();
        let slugs: Vec<_> = all.map(|agent| agent["slug"].as_str().unwrap().to_owned()).collect();
        (slugs, list.get("broken").is_some())
    };
    assert!(slugs("home").await.0.contains(&"teller".to_owned()));
    assert!(slugs("home").await.1, "the broken one is there");
    assert_eq!(slugs("workspace").await, (Vec::new(), false));
    assert_eq!(slugs("library").await, (vec!["kept".to_owned(), "teller".to_owned()], false));
    assert_eq!(slugs("library/api").await, slugs("library").await);
    assert_eq!(slugs("library/other").await, (Vec::new(), false));
    let about = async |query: &str| {
        let path = format!("/v1/agents/teller{query}");
        get(&world, "blue-read-only", &path).await["definition"]["description"].clone()
    };
    assert_eq!(about("").await, "Kept.");
    assert_eq!(about("?scope=library/api").await, "Kept.");
    assert_eq!(about("?scope=home").await, "Tells.");
    for (path, status) in [
        ("/v1/agents?scope=drafts", 400),
        ("/v1/agents?scope=", 400),
        ("/v1/agents/teller?scope=workspace", 404),
        ("/v1/agents/teller?scope=../x", 400),
    ] {
        world.call_as("blue-admin", "GET", path).send().await.is(status);
    }
    // Another tenant's are not there by any scope.
    let red = get(&world, "red-admin", "/v1/agents?scope=library/api").await;
    assert!(!red.to_string().contains("teller"), "{red}");
}

#[tokio::test]
async fn the_models_that_may_be_named_are_told() {
    let world = World::new().await;
    let roles = get(&world, "blue-read-only", "/v1/roles").await;
    let names: Vec<_> =
        roles["roles"].as_array().unwrap().iter().map(|role| &role["role"]).collect();
    assert_eq!(names, ["main", "fast", "strong", "compaction", "fallback"]);
    // One scripted model answers here, whatever is named.
    assert_eq!(roles["models"], json!([]));
}

#[tokio::test]
async fn a_text_is_previewed_before_it_is_saved_and_kept_nowhere() {
    let world = World::new().await;
    let text = crate::kit::agent("unsaved").replace("Tell.", "Never seen before.");
    let asked = json!({ "definition": text, "text": "tell" });
    let before = world.state("blue").await;
    let preview = async |caller: &str, body: &Value| {
        world.call_as(caller, "POST", "/v1/preview").json(body).send().await
    };
    let shown = preview("blue-admin", &asked).await.is(200).json();
    let system = shown["request"]["system"][0].as_str().unwrap();
    assert!(system.contains("Never seen before."), "{system}");
    assert_eq!(shown["blocks"][0]["kind"], "system");
    // As for saving: admins alone, and a text that could be saved.
    for caller in ["blue-read-only", "blue-member"] {
        preview(caller, &asked).await.is(403).problem("scope");
    }
    preview("blue-admin", &json!({ "definition": "no agent", "text": "x" }))
        .await
        .is(422)
        .problem("agent");
    let long = format!("{text}{}", "x".repeat(1 << 20));
    preview("blue-admin", &json!({ "definition": long, "text": "x" }))
        .await
        .is(422)
        .problem("agent");
    for more in [json!({ "agent": "teller" }), json!({ "session": session("blue") })] {
        let mut both = asked.clone();
        both.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        preview("blue-admin", &both).await.is(400).problem("invalid-request");
    }
    assert_eq!(world.state("blue").await, before);
    world.call_as("blue-admin", "GET", "/v1/agents/unsaved").send().await.is(404);
    let saved = preview("blue-admin", &json!({ "agent": "unsaved", "text": "tell" })).await;
    saved.is(422);
    let neighbour = preview("red-admin", &json!({ "agent": "teller", "text": "tell" })).await;
    assert!(!neighbour.is(200).json().to_string().contains("Never seen before."));
}

#[tokio::test]
async fn a_cancelled_turn_says_who_did_it() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let (turn, id) = hanging(&world, "blue-member").await;
    let path = format!("/v1/sessions/{id}");
    let cancel = |caller| world.call_as(caller, "POST", &format!("{path}/cancel"));
    cancel("blue-read-only").send().await.is(403);
    cancel("red-admin").send().await.is(404);
    cancel("blue-admin").send().await.is(200);
    cancel("blue-member").send().await.is(200);
    let events = turn.all().await;
    assert_eq!(events.last().unwrap().data["status"], "cancelled");
    let messages = get(&world, "blue-read-only", &format!("{path}/messages")).await;
    let rows = messages["messages"].as_array().unwrap();
    let actor = format!("key:{}", &world.keys["blue-admin"][3..19]);
    assert_eq!(rows[1]["cancelled_by"], json!(actor), "whoever was first");
    assert_eq!(rows[0].get("cancelled_by"), None);
    let path = format!("/v1/sessions/{}/messages", session("blue"));
    let whole = get(&world, "blue-read-only", &path).await;
    assert!(!whole.to_string().contains("cancelled_by"), "nobody cancelled that");
}

#[tokio::test]
async fn an_answer_names_its_turn_before_it_is_there() {
    let world = World::new().await;
    let body = |stream: bool| json!({ "agent": "teller", "text": "tell", "stream": stream });
    let call = |stream| world.call_as("blue-member", "POST", "/v1/chat").json(&body(stream));
    let answer = call(false).send().await.is(200);
    let told = answer.json();
    let head = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
    assert_eq!(told["session"], head("belljar-session"));
    assert_eq!(told["message"], head("belljar-message"));
    let mut stream = call(true).open().await;
    let head = |name: &str| stream.headers[name].to_str().unwrap().to_owned();
    let (session, message) = (head("belljar-session"), head("belljar-message"));
    let first = stream.next().await.unwrap();
    assert_eq!(
        (&first.data["session"], &first.data["message"]),
        (&json!(session), &json!(message))
    );
}

#[tokio::test]
async fn whoever_was_told_of_the_end_of_a_turn_finds_its_session_free() {
    let world = World::with(Plan { transcript: COUNTING, ..Plan::default() }).await;
    let body = json!({ "agent": "teller", "text": "tell", "stream": true });
    let mut stream = world.call_as("blue-member", "POST", "/v1/chat").json(&body).open().await;
    let mut id = String::new();
    while let Some(event) = stream.next().await {
        if event.kind == "run_finished" {
            id = event.data["session"].as_str().unwrap().to_owned();
            break;
        }
    }
    let changes = format!("/v1/sessions/{id}/changes");
    // At the same time, too: a look waits for another one.
    let look = || world.call_as("blue-read-only", "GET", &changes).send();
    let (one, other) = tokio::join!(look(), look());
    assert_eq!(one.is(200).json()["places"], other.is(200).json()["places"]);
    let more = json!({ "session": id, "text": "more" });
    world.call_as("blue-member", "POST", "/v1/chat").json(&more).send().await.is(200);
}

#[tokio::test]
async fn nothing_is_decided_about_changes_that_a_later_turn_made() {
    let world = World::new().await;
    let path = format!("/v1/sessions/{}", session("blue"));
    let seen = get(&world, "blue-member", &format!("{path}/changes")).await["as_of"].clone();
    assert_eq!(seen, 5, "the last event of its only turn");
    let decide = async |what: &str, as_of: &Value| {
        let call = world.call_as("blue-member", "POST", &format!("{path}/{what}"));
        call.json(&json!({ "as_of": as_of })).send().await
    };
    for what in ["apply", "discard"] {
        decide(what, &seen).await.is(200);
    }
    let more = json!({ "session": session("blue"), "text": "more" });
    world.call_as("blue-admin", "POST", "/v1/chat").json(&more).send().await.is(200);
    for what in ["apply", "discard"] {
        decide(what, &seen).await.is(412).problem("changed");
    }
    let now = get(&world, "blue-member", &format!("{path}/changes")).await["as_of"].clone();
    for as_of in [now, Value::Null] {
        decide("apply", &as_of).await.is(200);
    }
    world
        .call_as("red-member", "POST", &format!("{path}/apply"))
        .json(&json!({}))
        .send()
        .await
        .is(404);
}
