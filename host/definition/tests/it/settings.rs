//! `belljar.toml`: its keys, its mistakes, and what its two files grant together.

use std::path::Path;

use belljar_definition::{
    AgentId, DEFAULTS, FrontmatterShapes, HookAction, HookEvent, KeySetting, ModelKind, Settings,
    Visibility,
};
use belljar_policy::{CallPermission, DecisionSource, HostScope, RequestTarget};

use crate::show::{both, errors as shown, grants, home, known, list};

fn id(text: &str) -> AgentId {
    text.parse().unwrap()
}

fn granted(settings: &Settings, agent: &str) -> String {
    grants(&settings.agent_grants(&id(agent), Visibility::UserFacing, Path::new("/ws")))
}

const FULL: &str = r#"
project_override = true
keep_runs = 20
compact_at = 75
[models.local]
kind = "openai"
base_url = "http://127.0.0.1:8080/v1"
model = "qwen"
key_env = "LOCAL_KEY"
max_output_tokens = 8_192
context_tokens = 32_768
effort = "low"
temperature = 1
headers = { "X-Title" = "belljar" }
max_tokens_field = "max_completion_tokens"
extra_body = { top_k = 0x14, chat_template_kwargs = { enable_thinking = false, x = [1.5, "a"] } }
[models.big]
kind = "anthropic"
model = "claude"
key_file = "~/key"
allow_insecure = true
[models.demo]
kind = "scripted"
model = "demo.yaml"
[roles]
main = "local"
strong = "big"
[secrets.brave]
host = "https://api.search.example"
header = "X-Subscription-Token"
env = "BRAVE_API_KEY"
[tools.web_search]
config = { provider = "searxng", safe = true, pages = 3 }
[defaults.user-facing]
hosts = ["https://docs.example"]
[grants.scout]
tools = { file_read = "allow", file_write = "ask", web_fetch = "deny" }
mounts = [
  { path = "/workspace", access = "read-write" },
  { path = "/data", host = "~/data", access = "read" },
]
secrets = ["brave"]
limits = { steps = 50 }
[grants."library/wshobson/critic"]
tools = []
"#;

#[test]
fn every_key_is_read() {
    let settings = home(FULL).unwrap();
    assert!(settings.project_override);
    assert_eq!(settings.models["local"].kind, ModelKind::OpenAi);
    assert_eq!(settings.models["local"].temperature, Some(1.0));
    let local = &settings.models["local"];
    assert_eq!(local.headers["X-Title"], "belljar");
    assert_eq!(local.max_tokens_field.as_deref(), Some("max_completion_tokens"));
    let extra = serde_json::to_string(&local.extra_body).unwrap();
    let expected = r#"{"chat_template_kwargs":{"enable_thinking":false,"x":[1.5,"a"]},"top_k":20}"#;
    assert_eq!(extra, expected);
    assert_eq!(settings.keep_runs, Some(20));
    assert_eq!(settings.compact_at, Some(75));
    assert_eq!(local.context_tokens, Some(32_768));
    assert_eq!(settings.models["big"].key, KeySetting::File("/home/op/key".into()));
    assert_eq!(settings.roles["strong"], "big");
    assert_eq!(settings.secrets["brave"].prefix, "");
    assert_eq!(settings.tools["web_search"].config["pages"], "3");
    assert_eq!(list(settings.warnings()), "");
    insta::assert_snapshot!(granted(&settings, "scout"), @r#"
    tools file_read:allow file_write:ask web_fetch:deny
    mounts /workspace=/ws (read-write) /data=/home/op/data (read)
    hosts [["https://docs.example"]]
    secrets ["brave"]
    steps 50
    "#);
    insta::assert_snapshot!(granted(&settings, "library/wshobson/critic"), @r#"
    tools 
    mounts /workspace=/ws (overlay)
    hosts [["https://docs.example"]]
    secrets []
    steps 30
    "#);
}

#[test]
fn without_a_file_the_one_table_of_defaults_holds() {
    let settings = Settings::parse(None, None, None).unwrap();
    insta::assert_snapshot!(granted(&settings, "scout"), @r#"
    tools agent_cancel:allow agent_result:allow agent_status:allow attach_file:allow clarify:allow delegate_parallel:allow file_edit:allow file_find:allow file_list:allow file_read:allow file_search:allow file_write:allow notebook_edit:allow run_javascript:allow run_python:allow shell:allow spawn_agent:allow todo_write:allow use_skill:allow web_fetch:allow web_search:allow worktree:allow
    mounts /workspace=/ws (overlay)
    hosts [[]]
    secrets []
    steps 30
    "#);
    for row in DEFAULTS {
        let given = settings.agent_grants(&id("x"), row.visibility, Path::new("/ws"));
        let names: Vec<_> = given.tools.keys().map(|name| name.as_str().to_owned()).collect();
        let mut table = [row.tools, row.overlay_tools, row.builtin_tools].concat();
        table.sort_unstable();
        assert_eq!(names, table);
        assert!(row.tools.iter().all(|name| known().contains(name)));
    }
}

#[test]
fn an_internal_agent_does_not_delegate_by_default() {
    let settings = Settings::default();
    let may = |visibility| {
        settings
            .agent_grants(&id("x"), visibility, Path::new("/ws"))
            .tools
            .contains_key("spawn_agent")
    };
    assert!(may(Visibility::UserFacing) && !may(Visibility::Internal));
}

#[test]
fn a_namesake_of_another_scope_inherits_nothing() {
    let settings = home("[grants.scout]\ntools = ['db_write']").unwrap();
    assert!(granted(&settings, "home/scout").starts_with("tools db_write:allow\n"));
    for other in ["workspace:/ws/scout", "library/x/scout", "critic"] {
        assert!(!granted(&settings, other).contains("db_write"), "{other}");
    }
}

#[test]
fn unknown_keys_are_named_and_the_right_one_is_suggested() {
    check!("project_overide = true\n[model.x]\n[grnats.scout]", @r#"
    belljar.toml:1:1: error: `project_overide` is not a key of `belljar.toml`
      hint: did you mean `project_override`?
    belljar.toml:2:2: error: `model` is not a key of `belljar.toml`
      hint: did you mean `models`?
    belljar.toml:3:2: error: `grnats` is not a key of `belljar.toml`
      hint: did you mean `grants`?
    "#);
    check!("[models.main]\nkind = 'openai'\nmodel = 'x'\nbaseurl = 'y'", @r#"
    belljar.toml:4:1: error: `baseurl` is not a key of a model
      hint: did you mean `base_url`?
    "#);
    check!("[grants.scout]\ntool = []\n[grants.critic]\nlimits = { step = 1 }", @r#"
    belljar.toml:2:1: error: `tool` is not a key of a grant
      hint: did you mean `tools`?
    belljar.toml:4:12: error: `step` is not a key of `limits`
      hint: did you mean `steps`?
    "#);
    check!("[defaults.user_facing]\n[defaults.internal]\nmount = []", @r#"
    belljar.toml:1:1: error: `user_facing` is not a visibility
      hint: write `[defaults.user-facing]` or `[defaults.internal]`
    belljar.toml:3:1: error: `mount` is not a key of a grant
      hint: did you mean `mounts`?
    "#);
    check!("[roles]\nmian = 'x'", @r#"
    belljar.toml:2:1: error: `mian` is not a key of `roles`
      hint: did you mean `main`?
    "#);
    check!("[secrets.a]\nhost = 'https://x.example'\nheaders = 'X'\nenv = 'E'", @r#"
    belljar.toml:1:1: error: `header` is missing
      hint: name the header that carries it
    belljar.toml:3:1: error: `headers` is not a key of a secret
      hint: did you mean `header`?
    "#);
    check!("[tools.web_search]\nconf = {}", @r#"
    belljar.toml:2:1: error: `conf` is not a key of a tool
      hint: did you mean `config`?
    "#);
    check!("[grants.scout]\nmounts = [{ path = '/workspace', acess = 'read' }]", @r#"
    belljar.toml:2:11: error: `access` is missing
      hint: write `access = "read"`, `"overlay"` or `"read-write"`
    belljar.toml:2:34: error: `acess` is not a key of a mount
      hint: did you mean `access`?
    "#);
}

#[test]
fn a_header_that_carries_a_key_has_no_place_in_the_file() {
    for name in ["Authorization", "x-api-key", "X-Auth", "Cookie", "my-token", "client-secret"] {
        let model = "[models.m]\nkind = 'openai'\nmodel = 'x'\n";
        let said = shown(&format!("{model}headers = {{ '{name}' = 'sk-very-hidden' }}"));
        assert!(said.contains("carries a key") && said.contains("key_env"), "{said}");
        assert!(!said.contains("hidden"), "{said}");
    }
}

#[test]
fn bad_values_are_named_with_their_line() {
    check!("project_override = 'yes'\nmodels = 3\n[grants]\nscout = 1", @r#"
    belljar.toml:1:20: error: `project_override` is a string, not `true` or `false`
    belljar.toml:2:10: error: `models` is an integer, not a table
    belljar.toml:4:9: error: `scout` is an integer, not a table
    "#);
    check!("[models.a]\nkind = 'opanai'\nmodel = 'x'\n[models.b]\nkind = 'openai'\n[models.c]\nkind = 'openai'\nmodel = 'm'\nkey_env = 'A'\nkey_file = 'b'\ntemperature = 9\neffort = 'huge'", @r#"
    belljar.toml:2:8: error: `kind` is `opanai`
      hint: write `kind = "openai"`, `"anthropic"` or `"scripted"`
    belljar.toml:4:1: error: `model` is missing
      hint: write `model = "..."`, the provider's name of it
    belljar.toml:6:1: error: both `key_env` and `key_file` are there
      hint: keep one
    belljar.toml:11:15: error: `temperature` must be from 0 to 2
    belljar.toml:12:10: error: `effort` must be one of `low`, `medium`, `high`, `max`
    "#);
    check!("[grants.a]\nmounts = ['/workspace']", @r#"
    belljar.toml:2:11: error: a mount is a table
      hint: write `{ path = "/workspace", access = "read" }`
    "#);
    check!("[models.a]\nkind = 'openai'\nmodel = 'x'\nbase_url = 'localhost:8080'\n[models.b]\nkind = 'anthropic'\nmodel = 'x'\nbase_url = 'ftp://x.example'\n[models.c]\nkind = 'openai'\nmodel = 'x'\nbase_url = 'HTTP://x.example/v1'", @r#"
    belljar.toml:4:12: error: `base_url` does not begin with `http://` or `https://`
      hint: write the whole address, as `base_url = "http://127.0.0.1:8080/v1"`
    belljar.toml:8:12: error: `base_url` does not begin with `http://` or `https://`
      hint: write the whole address, as `base_url = "http://127.0.0.1:8080/v1"`
    "#);
    check!("[roles]\nmain = 'qwen'\n[models.qwem]\nkind = 'openai'\nmodel = 'q'", @r#"
    belljar.toml:2:8: error: role `main` names model `qwen`, which is not configured
      hint: did you mean `qwem`?
    "#);
    check!("[secrets.a]\nhost = 'x.example'\nheader = 'X Y'\nprefix = \"a\\nb\"", @r#"
    belljar.toml:1:1: error: `env` or `file` is missing
      hint: name where the value comes from
    belljar.toml:2:8: error: `x.example` is not a host rule: the scheme is missing; write `https://example.org`, `https://*.example.org`, `https://*`, `http://10.0.0.0/8:8080`
    belljar.toml:3:10: error: `header` must be the name of a header
    belljar.toml:4:10: error: `prefix` must be free of control characters
    "#);
    check!("[tools.web_search]\ndigest = 'sha256:1234'\nconfig = { a = [] }", @r#"
    belljar.toml:2:10: error: `digest` must be `sha256:` and 64 lower-case hex digits
    belljar.toml:3:16: error: `a` is an array, not a text, number or boolean
    "#);
    check!("compact_at = 101", @"belljar.toml:1:14: error: `compact_at` must be a share in percent, 0 to 100; 0 = never");
    check!("[grants.scout]\ntools = { file_read = 'yes' }\nhosts = ['example.org']\nsecrets = ['a b']\nlimits = { steps = -1 }", @r#"
    belljar.toml:2:23: error: `file_read` must be one of `allow`, `ask`, `deny`
    belljar.toml:3:10: error: `example.org` is not a host rule: the scheme is missing; write `https://example.org`, `https://*.example.org`, `https://*`, `http://10.0.0.0/8:8080`
    belljar.toml:4:12: error: `a b` is not a secret name: use a letter, then letters, digits, `_` or `-`, at most 64 in all
    belljar.toml:5:20: error: `steps` must be a whole number, 0 or more
    "#);
    check!("[grants.-scout]\n[grants.\"a/b\"]\n[grants.scout]\n[grants.\"home/scout\"]", @r#"
    belljar.toml:1:1: error: `-scout` is not an agent identity: names are letters and digits joined by `-`, or as their files write them; write `scout`, `home/scout`, `library/NAME/scout` or `workspace:/PATH/scout`
    belljar.toml:2:1: error: `a/b` is not an agent identity: no scope is written like that; write `scout`, `home/scout`, `library/NAME/scout` or `workspace:/PATH/scout`
    belljar.toml:3:1: error: `home/scout` has two sections
      hint: a bare name means `home/`; keep one of them
    "#);
}

#[test]
fn bad_mounts_are_named_with_their_line() {
    check!("[grants.scout]
mounts = [
  { path = '/workspace', access = 'read' },
  { path = '/workspace/', access = 'read-write' },
  { path = '/data', access = 'read' },
  { path = '/data', host = 'data', access = 'read' },
  { path = '/up', host = '../up', access = 'read' },
  { path = 'rel', access = 'read' },
  { path = '/x', host = '/x', access = 'write' },
  { path = '/y', host = '/y', access = 'append' },
  { host = '/x' },
]", @r#"
belljar.toml:4:3: error: `/workspace` is mounted twice
  hint: keep one of them
belljar.toml:5:3: error: `host` is missing
  hint: write the directory: `host = "/srv/data"`; only `/workspace` has one by itself
belljar.toml:6:28: error: `host` is `data`, not an absolute path
  hint: write an absolute path, `~/...`, or for `/workspace` a directory in it
belljar.toml:7:26: error: `host` is `../up`, not an absolute path
  hint: write an absolute path, `~/...`, or for `/workspace` a directory in it
belljar.toml:8:12: error: `rel` is not a guest path: write an absolute path such as `/workspace`, without `.` and `..`
belljar.toml:9:40: error: `access` must be `read`, `overlay` or `read-write`
belljar.toml:10:40: error: `access` must be `read`, `overlay` or `read-write`
belljar.toml:11:3: error: `path` is missing
  hint: write where the guest sees it: `path = "/workspace"`
"#);
}

#[test]
fn a_mount_inside_a_wider_one_would_withhold_nothing() {
    check!("[grants.scout]
mounts = [
  { path = '/workspace', access = 'read-write' },
  { path = '/workspace/vendor', host = '/v', access = 'read' },
]
[grants.critic]
mounts = [
  { path = '/workspace', access = 'read' },
  { path = '/workspace/out', host = '/o', access = 'read-write' },
]", @r#"
belljar.toml:4:3: error: `/workspace/vendor` gives less than `/workspace`, in which it lies
  hint: what `/workspace` gives holds below it too: give `/workspace` `read`, and what may be written a mount of its own
"#);
}

#[test]
fn a_key_in_the_file_is_refused_and_never_repeated() {
    let text = shown(
        "[models.main]\nkind = 'openai'\nmodel = 'x'\napi_key = 'sk-very-secret'\nkey_env = 5",
    );
    insta::assert_snapshot!(text, @r#"
    belljar.toml:4:1: error: `api_key` is not a key of a model
      hint: keys do not stand in this file: name an environment variable with `key_env`, or a file with `key_file`
    belljar.toml:5:11: error: `key_env` is an integer, not a text
    "#);
    let syntax = shown("[models.main]\napi_key = 'sk-very-secret\n");
    assert!(!text.contains("very-secret") && !syntax.contains("very-secret"), "{syntax}");
}

#[test]
fn bad_syntax_is_placed() {
    check!("[grants.scout]\ntools = [\n'a'\n[b]\n", @r#"
    belljar.toml:4:1: error: not valid TOML: missing comma between array elements, expected `,`
    belljar.toml:4:2: error: not valid TOML: string values must be quoted, expected literal string
    belljar.toml:4:4: error: not valid TOML: unclosed array, expected `]`
    "#);
    check!("a = 1\na = 2", @"belljar.toml:2:1: error: not valid TOML: duplicate key");
}

#[test]
fn a_workspace_cannot_have_unusual_shapes_read() {
    let lenient = "[agents]\nlenient = true\n";
    assert_eq!(home(lenient).unwrap().shapes, FrontmatterShapes::Lenient);
    assert_eq!(home("").unwrap().shapes, FrontmatterShapes::Ordinary);
    let refused = both("", lenient).unwrap_err();
    assert!(refused.contains("`agents` has no place in a workspace's `belljar.toml`"), "{refused}");
    assert!(shown("[agents]\nlenient = 'yes'").contains("not `true` or `false`"));
    assert!(shown("[agents]\nlenent = true").contains("did you mean `lenient`?"));
}

#[test]
fn a_workspace_file_cannot_hold_what_is_the_operators() {
    let text = both(
        "",
        "project_override = true
[models.x]
[roles]
[secrets.x]
[tools.x]
[hooks]
[grants.scout]
mounts = [{ path = '/workspace', host = '/etc', access = 'read' }]",
    );
    insta::assert_snapshot!(text.unwrap_err(), @r#"
    workspace.toml:1:1: error: `project_override` has no place in a workspace's `belljar.toml`
      hint: a workspace can only narrow: move it to `belljar.toml` at home
    workspace.toml:2:2: error: `models` has no place in a workspace's `belljar.toml`
      hint: a workspace can only narrow: move it to `belljar.toml` at home
    workspace.toml:3:2: error: `roles` has no place in a workspace's `belljar.toml`
      hint: a workspace can only narrow: move it to `belljar.toml` at home
    workspace.toml:4:2: error: `secrets` has no place in a workspace's `belljar.toml`
      hint: a workspace can only narrow: move it to `belljar.toml` at home
    workspace.toml:5:2: error: `tools` has no place in a workspace's `belljar.toml`
      hint: a workspace can only narrow: move it to `belljar.toml` at home
    workspace.toml:6:2: error: `hooks` has no place in a workspace's `belljar.toml`
      hint: a workspace can only narrow: move it to `belljar.toml` at home
    workspace.toml:8:41: error: `host` has no place in a workspace's `belljar.toml`
      hint: remove it: the home file says which directory is mounted
    "#);
}

#[test]
fn a_workspace_file_narrows_key_by_key() {
    let workspace = "[grants.scout]
tools = { file_read = 'ask', file_write = 'allow', web_search = 'allow' }
mounts = [{ path = '/workspace', access = 'read' }]
hosts = ['https://*']
secrets = []
limits = { steps = 5, tokens = 999_999_999 }";
    let settings = both(FULL, workspace).unwrap();
    insta::assert_snapshot!(granted(&settings, "scout"), @r#"
    tools file_read:ask file_write:ask
    mounts /workspace=/ws (read)
    hosts [["https://docs.example"], ["https://*"]]
    secrets []
    steps 5
    "#);
    let given = settings.agent_grants(&id("scout"), Visibility::UserFacing, Path::new("/ws"));
    assert_eq!(given.limits.tokens, belljar_policy::Limits::default().tokens);
}

#[test]
fn every_directory_that_anybody_may_mount_is_listed() {
    let listed = |settings: &Settings| {
        let mounts = settings.possible_mounts(Path::new("/ws"));
        let mut lines: Vec<_> = mounts
            .iter()
            .map(|mount| format!("{} {}", mount.host.display(), mount.access))
            .collect();
        lines.sort();
        lines.dedup();
        lines
    };
    assert_eq!(listed(&Settings::default()), ["/ws overlay"]);
    let grants = r#"
[defaults.internal]
mounts = [{ path = "/shared", host = "/srv/shared", access = "read" }]
[grants.scout]
mounts = [{ path = "/data", host = "/srv/data", access = "read-write" }]
[grants."library/x/scout"]
mounts = [{ path = "/workspace", access = "read-write" }]
"#;
    let all = ["/srv/data read-write", "/srv/shared read", "/ws overlay", "/ws read-write"];
    assert_eq!(listed(&home(grants).unwrap()), all);
}

#[test]
fn a_list_of_the_workspace_never_stands_alone() {
    let settings = both("", "[defaults.user-facing]\nhosts = ['https://evil.example']").unwrap();
    let given = settings.agent_grants(&id("scout"), Visibility::UserFacing, Path::new("/ws"));
    let target = RequestTarget::parse("https://evil.example/").unwrap();
    assert!(given.host_scope().check_target(&target).is_err());
    let alone = HostScope::from_rules(
        DecisionSource::Grants,
        vec!["https://evil.example".parse().unwrap()],
    );
    assert!(alone.check_target(&target).is_ok(), "the rule itself fits");
}

#[test]
fn a_bare_name_in_a_workspace_file_narrows_the_workspaces_own_agent_too() {
    let settings = both("", "[grants.scout]\ntools = ['file_read']").unwrap();
    for agent in ["scout", "workspace:/ws/scout"] {
        assert!(granted(&settings, agent).starts_with("tools file_read:allow\n"), "{agent}");
    }
    let settings = both("", "[grants.\"workspace/scout\"]\ntools = []").unwrap();
    assert!(granted(&settings, "workspace:/ws/scout").starts_with("tools \n"));
    assert!(granted(&settings, "scout").contains("file_read"));
    let at_home = shown("[grants.\"workspace/scout\"]\ntools = ['file_write']");
    assert!(at_home.contains("is not an agent identity"), "{at_home}");
}

#[test]
fn a_granted_name_that_does_not_exist_is_a_warning() {
    let settings = home("[grants.scout]\ntools = ['file_raed', 'file_read']\nsecrets = ['brav']\n[secrets.brave]\nhost = 'https://x.example'\nheader = 'X'\nenv = 'E'").unwrap();
    insta::assert_snapshot!(list(&settings.check_tools(&known())), @r#"
    belljar.toml:2:10: warning: tool `file_raed` does not exist
      hint: did you mean `file_read`?
    "#);
    insta::assert_snapshot!(list(settings.warnings()), @r#"
    belljar.toml: warning: secret `brav` is granted and not defined
      hint: did you mean `brave`?
    "#);
}

#[test]
fn a_writable_mount_that_takes_tools_away_says_so_unless_tools_are_named() {
    let warned = |text: &str| list(home(text).unwrap().warnings());
    let mounts = "mounts = [{ path = '/workspace', access = 'read-write' }]\n";
    let told = warned(&format!("[grants.scout]\n{mounts}"));
    for part in ["belljar.toml:2", "[grants.scout]", "`file_write`", "`shell`", "add_tools"] {
        assert!(told.contains(part), "no {part}: {told}");
    }
    for quiet in [
        format!("[grants.scout]\ntools = ['file_read']\n{mounts}"),
        format!("[grants.scout]\nadd_tools = ['file_write']\n{mounts}"),
        format!("[defaults.user-facing]\ntools = ['file_read']\n[grants.scout]\n{mounts}"),
        format!(
            "[grants.\"library/x/*\"]\nadd_tools = ['shell']\n[grants.\"library/x/scout\"]\n{mounts}"
        ),
        format!("[agents]\noverlay = 'never'\n[grants.scout]\n{mounts}"),
        format!("[grants.scout]\n{}", mounts.replace("read-write", "read")),
    ] {
        assert_eq!(warned(&quiet), "", "{quiet}");
    }
}

#[test]
fn a_list_of_default_tools_keeps_belljars_own_unless_it_names_one_or_is_empty() {
    let tools = |text: &str, visibility| {
        let settings = home(text).unwrap();
        assert_eq!(settings.warnings(), [], "{text}");
        let id = "scout".parse().unwrap();
        let tools = settings.agent_grants(&id, visibility, Path::new("/w")).tools;
        let given = tools.into_iter().filter(|(_, may)| *may == CallPermission::Allow);
        given.map(|(tool, _)| tool.to_string()).collect::<Vec<_>>()
    };
    let people = |tools_line: &str| {
        tools(&format!("[defaults.user-facing]\ntools = {tools_line}"), Visibility::UserFacing)
    };
    let kept = people("['file_read']");
    assert!(kept.len() == 10 && kept.contains(&"spawn_agent".to_owned()), "{kept:?}");
    assert!(!kept.contains(&"file_list".to_owned()), "of all other tools it is the whole list");
    assert_eq!(people("['file_read', 'use_skill']"), ["file_read", "use_skill"]);
    assert_eq!(people("{ file_read = 'allow', spawn_agent = 'deny' }"), ["file_read"]);
    assert_eq!(people("[]"), [""; 0]);
    let internal = tools("[defaults.internal]\ntools = ['file_read']", Visibility::Internal);
    assert_eq!(internal, ["file_read"], "which have none by default");
    // A grant of one agent is the whole of what it has, as before.
    let own = tools("[grants.scout]\ntools = ['file_read']", Visibility::UserFacing);
    assert_eq!(own, ["file_read"]);
}

#[test]
fn hooks_are_read_with_their_defaults() {
    let settings = home(
        "[[hooks]]
event = 'PreToolUse'
matcher = 'Write|file_edit'
command = 'jq -e .tool_input'
[[hooks]]
event = 'Stop'
component = 'guards/stop.wasm'
timeout_seconds = 5",
    )
    .unwrap();
    let [first, second] = settings.hooks.as_slice() else { panic!("{:?}", settings.hooks) };
    assert_eq!(first.action, HookAction::Command("jq -e .tool_input".into()));
    assert_eq!((first.event, first.timeout.as_secs()), (HookEvent::PreToolUse, 60));
    assert!(
        first.matcher.matches_any(&["file_write"]) && !first.matcher.matches_any(&["file_read"])
    );
    let path = "guards/stop.wasm".into();
    assert_eq!(second.action, HookAction::Component { path, digest: None });
    assert!(second.matcher.is_all());
    assert_eq!(second.timeout.as_secs(), 5);
    assert_eq!(settings.check_tools(&known()), []);
}

#[test]
fn each_slip_in_a_hook_is_an_error() {
    for (text, part) in [
        ("[hooks]", "write `[[hooks]]`"),
        ("[[hooks]]\ncommand = 'x'", "`event` is missing"),
        ("[[hooks]]\nevent = 'PreTooluse'\ncommand = 'x'", "did you mean `PreToolUse`"),
        ("[[hooks]]\nevent = 'Notification'\ncommand = 'x'", "the events are"),
        ("[[hooks]]\nevent = 'Stop'", "`command` or `component` is missing"),
        ("[[hooks]]\nevent = 'Stop'\ncommand = ' '", "`command` must be"),
        ("[[hooks]]\nevent = 'Stop'\ncommand = 'x'\ncomponent = 'y'", "keep one"),
        ("[[hooks]]\nevent = 'Stop'\ncommand = 'x'\nmatcher = 'a'", "nothing to match"),
        ("[[hooks]]\nevent = 'Stop'\ncommand = 'x'\ndigest = 'a'", "`digest` must be"),
        ("[[hooks]]\nevent = 'Stop'\ncommand = 'x'\ntimeout = 5", "`timeout_seconds`"),
        ("[[hooks]]\nevent = 'Stop'\ncommand = 'x'\ntimeout_seconds = 0", "from 1 to 600"),
        ("[[hooks]]\nevent = 'Stop'\ncomponent = 'x'\ntimeout_seconds = 31", "from 1 to 30"),
        ("[[hooks]]\nevent = 'PreToolUse'\ncommand = 'x'\nmatcher = '('", "regular expression"),
    ] {
        let found = shown(text);
        assert!(found.contains(part), "{text}: {found}");
    }
}

#[test]
fn a_matcher_that_never_matches_is_a_warning() {
    let text = "[[hooks]]\nevent = 'PreToolUse'\ncommand = 'x'\n";
    let searching = home(&format!("{text}matcher = '^file_'")).unwrap();
    assert!(list(searching.warnings()).contains("write `^file_.*`"));
    let misspelt = home(&format!("{text}matcher = 'file_raed'")).unwrap();
    assert!(list(&misspelt.check_tools(&known())).contains("did you mean `file_read`"));
}
