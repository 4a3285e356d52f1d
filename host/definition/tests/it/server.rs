//! `[server]` of `belljar.toml`: its keys and its mistakes.

use std::path::PathBuf;

use crate::show::{both, errors, home};

#[test]
fn every_key_of_the_server_is_read() {
    let settings = home(
        "[server]
listen = '127.0.0.1:7000'
data = '~/data'
host_names = ['jar.example.org']
origins = ['https://app.example.org']
jars = 8
queue = 0
tenant_turns = 4
tenant_queue = 2
requests_per_second = 10
connections_per_address = 20
failed_keys_per_minute = 30
audit_days = 40
finish_left_turns = true
otlp_endpoint = 'http://127.0.0.1:4318'",
    );
    let server = settings.unwrap().server;
    assert_eq!(server.listen.as_deref(), Some("127.0.0.1:7000"));
    assert_eq!(server.data, Some(PathBuf::from("/home/op/data")));
    assert_eq!((server.host_names.len(), server.origins.len()), (1, 1));
    let numbers = [
        server.jars,
        server.queue,
        server.tenant_turns,
        server.tenant_queue,
        server.requests_per_second,
        server.connections_per_address,
        server.failed_keys_per_minute,
        server.audit_days,
    ];
    assert_eq!(numbers, [8, 0, 4, 2, 10, 20, 30, 40].map(Some));
    assert!(server.finish_left_turns);
    assert_eq!(server.otlp_endpoint.as_deref(), Some("http://127.0.0.1:4318"));
    assert_eq!(home("").unwrap().server, Default::default());
}

#[test]
fn a_slip_in_server_is_one_clear_error() {
    for (toml, said) in [
        ("[server]\nlisen = 'x'", "did you mean `listen`?"),
        ("[server]\nlisten = 'localhost'", "an address with a port"),
        ("[server]\ndata = 'here'", "an absolute path"),
        ("[server]\njars = 0", "from 1 to 100000"),
        ("[server]\norigins = ['']", "blank entry"),
        ("server = 1", "not a table"),
    ] {
        let found = errors(toml);
        assert!(found.contains(said), "{toml}: {found}");
    }
}

#[test]
fn a_workspace_cannot_say_how_the_server_is_run() {
    let refused = both("", "[server]\njars = 1").unwrap_err();
    assert!(refused.contains("`server` has no place in a workspace's `belljar.toml`"), "{refused}");
}

const ISSUER: &str = "
[server.issuers.corp]
url = 'https://id.example.org/realms/corp'
audience = 'https://jar.example.org/mcp'
";

#[test]
fn an_issuer_is_read_with_its_rules_in_their_order() {
    let settings = home(&format!(
        "{ISSUER}algorithms = ['ES256', 'RS512']
[[server.issuers.corp.allow]]
subject = 'alice'
tenant = 'red'
scope = 'member'
[[server.issuers.corp.allow]]
claim = 'groups'
value = 'readers'
tenant = 'blue'
scope = 'read-only'"
    ));
    let [issuer] = &settings.unwrap().server.issuers[..] else { panic!("one issuer") };
    assert_eq!((issuer.name.as_str(), issuer.audience.len()), ("corp", 1));
    let algorithms: Vec<_> = issuer.algorithms.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(algorithms, ["ES256", "RS512"]);
    let rules: Vec<_> =
        issuer.allow.iter().map(|rule| (&*rule.tenant, rule.scope.as_str())).collect();
    assert_eq!(rules, [("red", "member"), ("blue", "read-only")]);
    let usual = home(ISSUER).unwrap().server.issuers.remove(0);
    assert!(usual.allow.is_empty(), "nobody is let in");
    assert_eq!(usual.algorithms.len(), 3);
    let here = home("[server.issuers.a]\nurl = 'http://127.0.0.1:9'\naudience = ['a', 'b']");
    assert_eq!(here.unwrap().server.issuers[0].audience, ["a", "b"]);
}

#[test]
fn a_slip_in_an_issuer_is_one_clear_error() {
    let rule = |lines: &str| format!("{ISSUER}[[server.issuers.corp.allow]]\n{lines}");
    for (toml, said) in [
        ("[server.issuers.a]\naudience = 'a'".to_owned(), "`url` is missing"),
        ("[server.issuers.a]\nurl = 'https://a.test'".to_owned(), "`audience` is missing"),
        (
            "[server.issuers.a]\nurl = 'http://a.test'\naudience = 'a'".to_owned(),
            "this machine alone",
        ),
        ("[server.issuers.a]\nurl = 'https://a.test/#b'\naudience = 'a'".to_owned(), "a fragment"),
        ("[server.issuers.a]\nurl = 'https://a.test'\naudience = []".to_owned(), "a text without"),
        (
            format!("{ISSUER}algorithms = ['RS256', 'HS256']"),
            "`HS256` is not taken: whoever could check one with a shared secret could make it, known \
             are `RS256`, ",
        ),
        (format!("{ISSUER}algorithms = ['none']"), "`none` is not taken: a token without"),
        (format!("{ISSUER}algorithms = ['RS1']"), "`RS1` is not taken: known are `RS256`, "),
        (format!("{ISSUER}algorithms = []"), "`algorithms` must be some of `RS256`, "),
        (format!("{ISSUER}algorithms = 'RS256'"), "write it in brackets"),
        (format!("{ISSUER}algorithms = [5]"), "`algorithms` is an integer, not a text"),
        (ISSUER.replace("[server.issuers.corp]", "[[server.issuers]]"), "`[server.issuers.NAME]`"),
        (format!("{ISSUER}scopes = []"), "not a key of an issuer"),
        (format!("{ISSUER}{}", ISSUER.replace(".corp", ".two")), "written twice"),
        (rule("tenant = 'red'\nscope = 'admin'"), "`subject` is missing"),
        (rule("subject = 'a'\nscope = 'admin'"), "`tenant` is missing"),
        (rule("subject = 'a'\ntenant = 'red'"), "`scope` is missing"),
        (rule("subject = 'a'\ntenant = 'red'\nscope = 'all'"), "`scope` is `all`, which"),
        (
            rule("subject = 'a'\ntenant = 'red'\nscope = 'superuser'"),
            "belljar.toml:8:9: error: `scope` is `superuser`, which is none of `read-only`, `member`, `admin`",
        ),
        (rule("subject = 'a'\ntenant = 'red'\nscope = 'readonly'"), "did you mean `read-only`?"),
        (rule("subject = 'a'\ntenant = 'red'\nscope = 5"), "`scope` is an integer, not a text"),
        (
            rule("subject = 'a'\ntenant = 'my tenant'\nscope = 'admin'"),
            "`tenant` is `my tenant`, which is not 1 to 40 of `a` to `z`",
        ),
        (rule("subject = 'a'\ntenant = 'Red'\nscope = 'admin'"), "`tenant` is `Red`, which"),
        (rule("subject = 'a'\ntenant = ''\nscope = 'admin'"), "`tenant` is blank"),
        (rule("subject = ''\ntenant = 'red'\nscope = 'admin'"), "`subject` is blank"),
        (rule("subject = 5\ntenant = 'red'\nscope = 'admin'"), "`subject` is an integer"),
        (rule("claim = 'a'\nvalue = ''\ntenant = 'red'\nscope = 'admin'"), "`value` is blank"),
        (rule("claim = 'a'\ntenant = 'red'\nscope = 'admin'"), "`value` is missing"),
        (rule("value = 'a'\ntenant = 'red'\nscope = 'admin'"), "`claim` is missing"),
    ] {
        let found = errors(&toml);
        assert!(found.contains(said), "{toml}: {found}");
        assert_eq!(found.matches(": error: ").count(), 1, "{toml}: {found}");
    }
}
