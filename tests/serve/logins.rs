//! Logins of browsers: what lets them in, what they may, and what ends them.

use belljar_server::{HttpVerb, ROUTES};
use belljar_store::KeyScope;
use serde_json::{Value, json};

use crate::client::{Answer, PATIENCE};
use crate::kit::{Plan, World, make_keys, session};

/// The actions of a tenant's audit log with their actors, the oldest first.
async fn audited(world: &World, admin: &str) -> Vec<(String, String)> {
    let log = world.call_as(admin, "GET", "/v1/audit?limit=200").send().await.is(200).json();
    let word = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let lines = log["entries"].as_array().unwrap().iter().rev();
    let lines = lines.map(|line| (word(line, "action"), word(line, "actor")));
    lines.filter(|(action, _)| action != "strangers").collect()
}

fn id_of(cookie: &str) -> String {
    cookie.split_once("=bl_").unwrap().1[..16].to_owned()
}

#[tokio::test]
async fn a_login_is_its_key_and_no_more() {
    let world = World::new().await;
    let me = async |cookie: &str| {
        let answer = world.call_with(cookie, "GET", "/v1/me").send().await.is(200);
        answer.json()
    };
    for (caller, scope, operator) in [
        ("blue-read-only", "read-only", false),
        ("blue-member", "member", false),
        ("blue-admin", "admin", false),
        ("local-admin", "admin", true),
    ] {
        let cookie = world.log_in_as(caller).await;
        let told = me(&cookie).await;
        assert_eq!(told["scope"], scope);
        assert_eq!(told["operator"], operator);
        assert_eq!(told["tenant"], caller.split('-').next().unwrap());
        assert_eq!(told["actor"], format!("key:{}", &world.keys[caller][3..19]));
        assert_eq!((&told["keys"], told["login_ends"].is_i64()), (&json!(true), true));
    }
    let member = world.log_in_as("blue-member").await;
    let own = format!("/v1/sessions/{}", session("blue"));
    let other = format!("/v1/sessions/{}", session("red"));
    world.call_with(&member, "GET", &own).send().await.is(200);
    world.call_with(&member, "GET", &other).send().await.is(404);
    world.call_with(&member, "GET", "/v1/audit").send().await.is(403).problem("scope");
    let before = world.state("red").await;
    world.call_with(&member, "DELETE", &other).send().await.is(404);
    assert_eq!(world.state("red").await, before);
    world.call_with(&member, "DELETE", &own).send().await.is(200);
    let lines = audited(&world, "blue-admin").await;
    let actor = format!("key:{}", &world.keys["blue-member"][3..19]);
    assert!(lines.contains(&("login".to_owned(), actor.clone())), "{lines:?}");
    assert!(lines.contains(&("delete_session".to_owned(), actor)), "{lines:?}");
}

#[tokio::test]
async fn a_cookie_is_out_of_reach_and_its_secret_is_not_kept() {
    let world = World::new().await;
    let call = world.call("POST", "/v1/login").header("origin", &world.origin());
    let answer = call.json(&json!({ "key": world.keys["red-admin"] })).send().await.is(204);
    let line = answer.headers["set-cookie"].to_str().unwrap().to_owned();
    let port = world.address.port();
    assert!(line.starts_with(&format!("belljar-{port}=bl_")), "{line}");
    assert!(line.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"), "{line}");
    // Behind a proxy with TLS.
    let secure = format!("https://{}", world.address);
    let call = world.call("POST", "/v1/login").header("origin", &secure);
    let answer = call.json(&json!({ "key": world.keys["red-admin"] })).send().await.is(204);
    assert!(answer.headers["set-cookie"].to_str().unwrap().ends_with("; Secure"));
    let cookie = line.split(';').next().unwrap();
    let secret = &cookie[cookie.len() - 43..];
    for entry in std::fs::read_dir(world.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn what_opens_nothing_logs_nobody_in_and_all_of_it_is_told_the_same() {
    let world = World::new().await;
    let mut told = Vec::new();
    for caller in ["unknown", "mixed", "revoked", "closed-admin"] {
        let call = world.call("POST", "/v1/login").header("origin", &world.origin());
        let answer = call.json(&json!({ "key": world.keys[caller] })).send().await.is(401);
        assert!(!answer.headers.contains_key("set-cookie"));
        told.push(answer.problem("no-key"));
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(world.store.tenant_registry().list_logins(0).await.unwrap(), []);
    for body in [json!({}), json!({ "key": "x", "once": "y" }), json!({ "kay": "x" }), json!([])] {
        world.call("POST", "/v1/login").json(&body).send().await.is(400);
    }
    world.call("POST", "/v1/login").send().await.is(415);
    let long = json!({ "key": "x".repeat(2_000) });
    world.call("POST", "/v1/login").json(&long).send().await.is(413);
    world.call_as("blue-admin", "GET", "/v1/me").send().await.is(200);
}

#[tokio::test]
async fn an_address_that_tries_many_waits_and_its_neighbour_does_not() {
    let world = World::with(Plan { failures: 3, ..Plan::default() }).await;
    let wrong = || world.call("POST", "/v1/login").json(&json!({ "key": world.keys["mixed"] }));
    for _ in 0..3 {
        wrong().send().await.is(401);
    }
    wrong().send().await.is(429).problem("too-many");
    let right = || world.call("POST", "/v1/login").json(&json!({ "key": world.keys["red-admin"] }));
    right().send().await.is(429);
    right().from([127, 0, 0, 7].into()).send().await.is(204);
    // A link that opens nothing is a try too, and so is a cookie that never was one.
    let from = [127, 0, 0, 8].into();
    for _ in 0..2 {
        let link = world.call("POST", "/v1/login").json(&json!({ "once": "bo_x" }));
        link.from(from).send().await.is(401);
    }
    let cookie = format!("belljar-{}=bl_x", world.address.port());
    world.call_with(&cookie, "GET", "/v1/me").from(from).send().await.is(401);
    right().from(from).send().await.is(429);
}

#[tokio::test]
async fn nothing_is_changed_by_a_cookie_from_anywhere_but_a_page_of_this_server() {
    let app = "https://app.example.org";
    let world = World::with(Plan { origins: &[app], ..Plan::default() }).await;
    let cookie = world.log_in_as("blue-admin").await;
    let before = world.state("blue").await;
    let path = |path: &str| {
        let path = path.replace("{id}", &session("blue")).replace("{slug}", "kept");
        path.replace("{question}", "1").replace("{attachment}", "1")
    };
    let unsafe_routes = || ROUTES.iter().filter(|route| route.verb != HttpVerb::Get);
    for route in unsafe_routes().filter(|route| route.path != "/v1/login") {
        let call = || {
            let call = world.call(route.verb.as_str(), &path(route.path));
            call.header("cookie", &cookie).json(&json!({}))
        };
        let port = world.address.port();
        let near = format!("http://localhost:{}", if port == 1 { 2 } else { port - 1 });
        // OpenAI's wires say it in a shape of their own.
        let shaped = ["/v1/chat/completions", "/v1/responses"];
        let refused = |answer: Answer| match shaped.iter().any(|it| route.path.starts_with(it)) {
            true => drop(answer.is(403)),
            false => drop(answer.is(403).problem("origin")),
        };
        refused(call().send().await);
        for origin in [app, &near, "null", "https://evil.test"] {
            refused(call().header("origin", origin).send().await);
        }
        let same_site = call().header("origin", &world.origin());
        refused(same_site.header("sec-fetch-site", "same-site").send().await);
    }
    // A page on another port may not even look.
    let look = world.call("GET", "/v1/sessions").header("cookie", &cookie);
    look.header("sec-fetch-site", "same-site").send().await.is(403).problem("origin");
    // Nor log somebody in as somebody else.
    let login = world.call("POST", "/v1/login").header("origin", app);
    let login = login.json(&json!({ "key": world.keys["blue-admin"] })).send().await.is(403);
    assert!(!login.headers.contains_key("set-cookie"));
    assert_eq!(world.state("blue").await, before);
    let lines = audited(&world, "blue-admin").await;
    assert!(lines.iter().any(|(action, _)| action == "refused"), "{lines:?}");
    // The login is as good as before, and a listed page may call with a key.
    world.call_with(&cookie, "GET", "/v1/me").send().await.is(200);
    world.call_as("blue-admin", "GET", "/v1/me").header("origin", app).send().await.is(200);
}

#[tokio::test]
async fn a_login_ends_with_its_key_its_tenant_and_by_logging_out() {
    let world = World::new().await;
    let registry = world.store.tenant_registry();
    let status = async |cookie: &str| world.call_with(cookie, "GET", "/v1/me").send().await.status;
    let out = world.log_in_as("blue-member").await;
    let kept = world.log_in_as("blue-member").await;
    let answer = world.call_with(&out, "POST", "/v1/logout").send().await.is(204);
    let line = answer.headers["set-cookie"].to_str().unwrap();
    assert!(line.contains("=; Path=/; Max-Age=0; HttpOnly"), "{line}");
    assert_eq!((status(&out).await, status(&kept).await), (401, 200), "its neighbour stays");
    let answer = world.call_with(&out, "GET", "/v1/me").send().await.is(401);
    assert!(answer.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));

    let key = world.new_key("blue", KeyScope::Admin).await;
    let revoked = world.log_in(&json!({ "key": key })).await;
    assert_eq!(status(&revoked).await, 200);
    registry.revoke_key(&key[3..19], 9).await.unwrap();
    assert_eq!((status(&revoked).await, status(&kept).await), (401, 200));
    let red = world.log_in_as("red-admin").await;
    registry.set_tenant_disabled("red", true).await.unwrap();
    assert_eq!((status(&red).await, status(&kept).await), (401, 200));
    registry.set_tenant_disabled("red", false).await.unwrap();
    assert_eq!(status(&red).await, 200);
    registry.delete_tenant("red").await.unwrap();
    assert_eq!((status(&red).await, status(&kept).await), (401, 200));
    registry.end_login(&id_of(&kept)).await.unwrap();
    assert_eq!(status(&kept).await, 401);
    world.call_as("blue-member", "GET", "/v1/me").send().await.is(200);
}

#[tokio::test]
async fn a_stream_of_a_login_ends_with_it_and_its_neighbour_goes_on() {
    let world = World::new().await;
    let path = format!("/v1/sessions/{}/events", session("blue"));
    let (one, other) = (world.log_in_as("blue-admin").await, world.log_in_as("blue-admin").await);
    let mut ending = world.call_with(&one, "GET", &path).open().await;
    let mut staying = world.call_with(&other, "GET", &path).open().await;
    for id in 1..=5 {
        assert_eq!(ending.next().await.unwrap().id, Some(id));
        assert_eq!(staying.next().await.unwrap().id, Some(id));
    }
    world.call_with(&one, "POST", "/v1/logout").send().await.is(204);
    assert_eq!(ending.next().await, None, "it ends");
    // What happens from now on is heard by whoever is still there.
    let more = json!({ "session": session("blue"), "text": "tell" });
    world.call_as("blue-member", "POST", "/v1/chat").json(&more).send().await.is(200);
    assert_eq!(staying.next().await.unwrap().id, Some(6), "the other one goes on");
}

#[tokio::test]
async fn a_link_opens_once_as_the_operator_and_is_listed_and_revoked() {
    let world = World::new().await;
    let token = world.app.offer_link().unwrap();
    let cookie = world.log_in(&json!({ "once": token })).await;
    let again = world.call("POST", "/v1/login").json(&json!({ "once": token }));
    let told = again.send().await.is(401).problem("no-key");
    assert!(!told.to_string().contains(&token[20..]), "{told}");
    let me = world.call_with(&cookie, "GET", "/v1/me").send().await.is(200).json();
    assert_eq!((&me["operator"], &me["tenant"]), (&json!(true), &json!("local")));
    assert_eq!(me["actor"], format!("login:{}", id_of(&cookie)));
    world.call_with(&cookie, "GET", "/metrics").send().await.is(200);
    let registry = world.store.tenant_registry();
    let logins = registry.list_logins(0).await.unwrap();
    assert_eq!((logins.len(), &logins[0].key, &logins[0].id), (1, &None, &id_of(&cookie)));
    let lines = audited(&world, "local-admin").await;
    assert!(lines.contains(&("login".to_owned(), format!("login:{}", id_of(&cookie)))));
    registry.end_login(&id_of(&cookie)).await.unwrap();
    world.call_with(&cookie, "GET", "/v1/me").send().await.is(401);
}

#[tokio::test]
async fn a_server_without_keys_takes_no_notice_of_an_old_cookie_until_it_has_one() {
    let world = World::with(Plan { keys: false, ..Plan::default() }).await;
    let cookie = format!("belljar-{}=bl_0000000000000000_{}", world.address.port(), "x".repeat(43));
    let me = world.call_with(&cookie, "GET", "/v1/me").send().await.is(200).json();
    assert_eq!((&me["keys"], &me["actor"]), (&json!(false), &json!("local")));
    make_keys(&world.store).await;
    let shut =
        async { while world.call_with(&cookie, "GET", "/v1/me").send().await.status != 401 {} };
    tokio::time::timeout(PATIENCE, shut).await.expect("it is still open");
}

#[tokio::test]
async fn logins_of_one_key_are_bounded_and_its_neighbour_logs_in() {
    let world = World::new().await;
    let log_in = |caller: &str| {
        let call = world.call("POST", "/v1/login").header("origin", &world.origin());
        call.json(&json!({ "key": world.keys[caller] })).send()
    };
    for _ in 0..60 {
        log_in("blue-read-only").await.is(204);
    }
    let refused = log_in("blue-read-only").await.is(429);
    refused.problem("too-many");
    assert!(
        refused.headers.contains_key("retry-after") && !refused.headers.contains_key("set-cookie")
    );
    log_in("blue-member").await.is(204);
    // Who is not logged in ends nothing, and writes nothing.
    let before = audited(&world, "blue-admin").await.len();
    world.call_as("blue-read-only", "POST", "/v1/logout").send().await.is(204);
    assert_eq!(audited(&world, "blue-admin").await.len(), before);
    world.call_as("blue-read-only", "GET", "/v1/me").send().await.is(200);
}

#[tokio::test]
async fn a_cookie_that_comes_twice_is_no_login_and_no_try() {
    let world = World::with(Plan { failures: 3, ..Plan::default() }).await;
    let own = world.log_in_as("blue-member").await;
    let name = own.split_once('=').unwrap().0.to_owned();
    let planted = format!("{name}=bl_theirs; {own}");
    for _ in 0..5 {
        let answer = world.call_with(&planted, "GET", "/v1/me").send().await.is(401);
        let gone: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
        assert!(gone.iter().any(|line| line.to_str().unwrap().contains("Path=/v1;")), "{gone:?}");
    }
    // It cost its address nothing, and the login is as good as before.
    world.call_as("red-admin", "GET", "/v1/me").send().await.is(200);
    world.call_with(&own, "GET", "/v1/me").send().await.is(200);
    // One that no neighbour can plant counts before one that it can.
    let red = world.log_in_as("red-admin").await;
    let both = format!("{red}; __Host-{own}");
    let me = world.call_with(&both, "GET", "/v1/me").send().await.is(200).json();
    assert_eq!(me["tenant"], "blue");
}

#[tokio::test]
async fn where_there_are_no_keys_a_page_of_another_site_is_refused_all_the_same() {
    let app = "https://app.example.org";
    let world = World::with(Plan { keys: false, origins: &[app], ..Plan::default() }).await;
    let call = |site: &str| world.call("GET", "/v1/sessions").header("sec-fetch-site", site);
    for site in ["cross-site", "same-site", "x"] {
        call(site).send().await.is(403).problem("origin");
    }
    for site in ["same-origin", "none"] {
        call(site).send().await.is(200);
    }
    // Programs say nothing of a site, and a listed page is let in by its origin.
    world.call("GET", "/v1/sessions").send().await.is(200);
    call("cross-site").header("origin", app).send().await.is(200);
    call("cross-site").header("origin", "https://evil.test").send().await.is(403);
}
