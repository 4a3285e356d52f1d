//! Adding to a grant in place: exactly what was asked for, and nothing else, changes.

use std::path::Path;

use belljar_definition::{
    AgentId, GrantChange, Grantee, MountSpec, Settings, Visibility, apply_grant, apply_grants,
    grant_lines,
};
use belljar_policy::{
    AskedRights, CallPermission, GuestPath, MountAccess, Rights, SecretName, ToolName,
};

use crate::show::{definition, grants, home};

const FILE: &str = r#"# My rules.
[models.main] # local
kind = "openai"
model = "qwen"

[secrets.brave]
host = "https://api.example"
header = "X-Key"
env = "KEY"

[grants.scout]   # the scout
tools = [
    "file_read", # always
    "file_list", # and this
]
hosts = ["https://a.example"] # one

# Careful with this one.
[grants.critic]
tools = { file_read = "ask" }
mounts = [{ path = "/data", host = "~/data", access = "read" }]
"#;

fn id(text: &str) -> AgentId {
    text.parse().unwrap()
}

fn tool(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

/// A change that adds these tools.
fn tools(names: &[(&str, CallPermission)]) -> GrantChange {
    GrantChange {
        tools: names.iter().map(|(name, may)| (tool(name), *may)).collect(),
        ..GrantChange::default()
    }
}

fn mount(guest: &str, host: Option<&str>, access: MountAccess) -> GrantChange {
    let guest = GuestPath::new(guest).unwrap();
    let mounts = vec![MountSpec { guest, host: host.map(Into::into), access }];
    GrantChange { mounts, ..GrantChange::default() }
}

/// The home file after a change to the agent's grant.
fn apply(text: &str, agent: &str, change: &GrantChange) -> String {
    let home_dir = Some(Path::new("/home/op"));
    let path = Path::new("belljar.toml");
    let edited = apply_grant(path, text, home_dir, id(agent), Visibility::UserFacing, change);
    let edited = edited.unwrap();
    let again = apply_grant(path, &edited, home_dir, id(agent), Visibility::UserFacing, change);
    assert_eq!(again.unwrap(), edited, "applying twice changes nothing more");
    edited
}

/// The lines that differ.
fn difference(before: &str, after: &str) -> String {
    let diff = similar_lines(before, after);
    diff.join("\n")
}

fn similar_lines(before: &str, after: &str) -> Vec<String> {
    let gone = before.lines().filter(|line| !after.lines().any(|other| other == *line));
    let new = after.lines().filter(|line| !before.lines().any(|other| other == *line));
    gone.map(|line| format!("-{line}")).chain(new.map(|line| format!("+{line}"))).collect()
}

/// The difference that changing the agent's grant makes to the file.
fn shown(agent: &str, change: &GrantChange) -> String {
    difference(FILE, &apply(FILE, agent, change))
}

#[test]
fn a_tool_joins_the_list_that_is_there() {
    check!("scout", &tools(&[("file_write", CallPermission::Allow)]), @r#"+    "file_write","#);
    check!("home/scout", &tools(&[("file_write", CallPermission::Ask)]), @r#"
    -tools = [
    -    "file_read", # always
    -    "file_list", # and this
    -]
    +tools = { file_list = "allow", file_read = "allow", file_write = "ask" }
    "#);
    check!("critic", &tools(&[("file_write", CallPermission::Allow), ("file_read", CallPermission::Allow)]), @r#"
    -tools = { file_read = "ask" }
    +tools = { file_read = "allow", file_write = "allow" }
    "#);
}

#[test]
fn a_first_tool_of_an_agent_that_names_none_is_added_to_the_defaults() {
    check!("newcomer", &tools(&[("db_write", CallPermission::Allow)]), @r#"
    +[grants.newcomer]
    +add_tools = ["db_write"]
    "#);
    check!("library/x/scout", &tools(&[("db_write", CallPermission::Ask)]), @r#"
    +[grants."library/x/scout"]
    +add_tools = { db_write = "ask" }
    "#);
    let one = apply("", "newcomer", &tools(&[("notes", CallPermission::Allow)]));
    let two = apply(&one, "newcomer", &tools(&[("db_write", CallPermission::Allow)]));
    assert_eq!(two, "[grants.newcomer]\nadd_tools = [\"notes\", \"db_write\"]\n");
    // Whatever its file says by then: what was added stays beside the defaults.
    let asked_tools = Some([tool("db_edit")].into());
    let more = GrantChange { asked_tools, ..tools(&[("db_edit", CallPermission::Ask)]) };
    let three = apply(&two, "newcomer", &more);
    assert!(three.contains("add_tools = { db_edit = \"ask\", db_write = "), "{three}");
    let settings = home(&three).unwrap();
    let given = settings.agent_grants(&id("newcomer"), Visibility::UserFacing, Path::new("/ws"));
    for name in ["file_read", "spawn_agent", "notes", "db_write"] {
        assert_eq!(given.tool_permission(name), CallPermission::Allow, "{name}");
    }
    assert_eq!(given.tool_permission("db_edit"), CallPermission::Ask);
}

#[test]
fn tools_are_added_by_a_grant_at_home_and_nowhere_else() {
    let two = "[grants.scout]\ntools = []\nadd_tools = [\"shell\"]\n";
    assert!(home(two).is_err_and(|found| found.contains("`add_tools` stands beside")), "{two}");
    assert!(home("[defaults.internal]\nadd_tools = [\"shell\"]\n").is_err());
    let text = "[grants.scout]\nadd_tools = [\"shell\"]\n";
    assert!(Settings::parse(Some((Path::new("a"), text)), None, None).is_ok());
    assert!(Settings::parse(None, Some((Path::new("a"), text)), None).is_err());
}

#[test]
fn mounts_hosts_secrets_and_limits_join_what_is_there() {
    check!("scout", &mount("/workspace", None, MountAccess::ReadWrite), @r#"+mounts = [{ path = "/workspace", access = "read-write" }]"#);
    check!("critic", &mount("/data", Some("/home/op/data"), MountAccess::ReadWrite), @r#"
    -mounts = [{ path = "/data", host = "~/data", access = "read" }]
    +mounts = [{ path = "/data", host = "~/data", access = "read-write" }]
    "#);
    check!("critic", &mount("/more", Some("/srv/more"), MountAccess::Read), @r#"
    -mounts = [{ path = "/data", host = "~/data", access = "read" }]
    +mounts = [{ path = "/data", host = "~/data", access = "read" }, { path = "/more", host = "/srv/more", access = "read" }]
    "#);
    let hosts = vec!["https://b.example".parse().unwrap()];
    check!("scout", &GrantChange { hosts, ..GrantChange::default() }, @r#"
    -hosts = ["https://a.example"] # one
    +hosts = ["https://a.example", "https://b.example"] # one
    "#);
    let secrets = vec![SecretName::new("brave").unwrap()];
    check!("scout", &GrantChange { secrets, ..GrantChange::default() }, @r#"+secrets = ["brave"]"#);
    let mut change = GrantChange::default();
    change.limits.set("steps", 50);
    check!("scout", &change, @"+limits = { steps = 50 }");
}

#[test]
fn what_is_granted_already_changes_no_byte() {
    let change = tools(&[("file_read", CallPermission::Allow)]);
    assert_eq!(apply(FILE, "scout", &change), FILE);
    let change = mount("/workspace", None, MountAccess::Read);
    assert_eq!(apply(FILE, "scout", &change), FILE);
}

#[test]
fn other_ways_to_write_a_section_are_understood() {
    let change = tools(&[("file_write", CallPermission::Allow)]);
    for text in [
        "",
        "\r\n[grants]\r\n",
        "[grants]\nscout = { tools = [\"file_read\"] } # inline\n",
        "grants.scout.tools = [\"file_read\"]\n",
        "grants = { scout = { tools = { file_read = \"allow\" } } }\n",
        "[grants.\"home/scout\".tools]\nfile_read = \"allow\"\n",
        "[[grants.scout.mounts]]\npath = \"/workspace\"\naccess = \"read\"\n",
    ] {
        let edited = apply(text, "scout", &change);
        let settings = home(&edited).unwrap();
        let given = settings.agent_grants(&id("scout"), Visibility::UserFacing, Path::new("/ws"));
        assert_eq!(given.tool_permission("file_write"), CallPermission::Allow, "{edited}");
        assert_eq!(given.tool_permission("file_read"), CallPermission::Allow, "{edited}");
    }
    let tables = "[[grants.scout.mounts]]\npath = \"/workspace\"\naccess = \"read\"\n";
    let edited = apply(tables, "scout", &mount("/data", Some("/srv"), MountAccess::Read));
    assert_eq!(edited.matches("[[grants.scout.mounts]]").count(), 2, "{edited}");
}

#[test]
fn a_file_with_an_error_is_not_edited() {
    let change = tools(&[("file_write", CallPermission::Allow)]);
    for text in ["[grants.scout", "[grants.scout]\ntool = []", "grants = 3"] {
        let path = Path::new("belljar.toml");
        let edited = apply_grant(path, text, None, id("scout"), Visibility::UserFacing, &change);
        assert!(edited.is_err(), "{text}");
    }
}

/// The settings under which an agent has no overlay to write in.
const NO_OVERLAY: &str = "[agents]\noverlay = 'never'\n";

#[test]
fn the_lines_of_a_refusal_would_allow_exactly_what_was_missing() {
    let agent = definition(
        "---
name: scout
description: d
tools: [file_read, file_write]
mounts: [{ path: /workspace, access: read-write }]
hosts: [\"https://api.example\"]
---
b",
    );
    let settings = home(NO_OVERLAY).unwrap();
    let give = |settings: &Settings| {
        settings.agent_grants(&id("scout"), Visibility::UserFacing, Path::new("/ws"))
    };
    let (_, notes) = Rights::intersect_rights(&agent.asked, &give(&settings), None);
    let change = GrantChange::for_missing(&notes);
    let lines = grant_lines(&settings, &id("scout"), Visibility::UserFacing, &change);
    insta::assert_snapshot!(lines, @r#"
    [grants.scout]
    add_tools = ["file_write"]
    mounts = [{ path = "/workspace", access = "read-write" }]
    hosts = ["https://api.example"]
    "#);
    let settings = home(&format!("{NO_OVERLAY}{lines}")).unwrap();
    let (_, notes) = Rights::intersect_rights(&agent.asked, &give(&settings), None);
    assert_eq!(notes, []);
    insta::assert_snapshot!(grants(&give(&settings)), @r#"
    tools agent_cancel:allow agent_result:allow agent_status:allow attach_file:allow clarify:allow delegate_parallel:allow file_find:allow file_list:allow file_read:allow file_search:allow file_write:allow spawn_agent:allow todo_write:allow use_skill:allow web_fetch:allow web_search:allow worktree:allow
    mounts /workspace=/ws (read-write)
    hosts [["https://api.example"]]
    secrets []
    steps 30
    "#);
    let (_, notes) = Rights::intersect_rights(&AskedRights::default(), &give(&settings), None);
    assert_eq!(notes, []);
}

/// The tools that an agent is given by this home file, those that are denied left out.
fn given(text: &str, agent: &str) -> Vec<String> {
    let settings = Settings::parse(Some((Path::new("belljar.toml"), text)), None, None).unwrap();
    let grants = settings.agent_grants(&id(agent), Visibility::Internal, Path::new("/w"));
    let tools = grants.tools.into_iter().filter(|(_, may)| *may != CallPermission::Deny);
    tools.map(|(tool, _)| tool.to_string()).collect()
}

#[test]
fn a_section_for_a_whole_library_holds_for_its_agents_and_for_nobody_else() {
    let text = "[defaults.internal]\ntools = [\"file_list\"]\n\
                [grants.\"library/pub/*\"]\nadd_tools = [\"shell\"]\nlimits = { steps = 7 }\n\
                [grants.\"library/pub/own\"]\ntools = [\"file_read\"]\n\
                [grants.\"library/pub/less\"]\nadd_tools = { shell = \"deny\" }\n";
    for any in ["library/pub/a", "library/pub/comes-with-an-update"] {
        assert_eq!(given(text, any), ["file_list", "shell"], "{any}");
    }
    assert_eq!(given(text, "library/pub/own"), ["file_read"], "its own section's keys win");
    assert_eq!(given(text, "library/pub/less"), ["file_list"]);
    let settings = Settings::parse(Some((Path::new("h"), text)), None, None).unwrap();
    let own = settings.agent_grants(&id("library/pub/own"), Visibility::Internal, Path::new("/w"));
    assert_eq!(own.limits.steps, 7, "key by key");
    for other in ["library/pub2/a", "library/publish/a", "pub", "workspace:/library/pub/a"] {
        assert_eq!(given(text, other), ["file_list"], "{other}");
    }
    // A workspace's file narrows a whole library too, and gives nothing.
    let narrow = "[grants.\"library/pub/*\"]\ntools = [\"file_list\", \"file_write\"]\n";
    let both = Settings::parse(Some((Path::new("h"), text)), Some((Path::new("w"), narrow)), None);
    let grants =
        both.unwrap().agent_grants(&id("library/pub/a"), Visibility::Internal, Path::new("/w"));
    assert_eq!(grants.tools.keys().map(ToolName::as_str).collect::<Vec<_>>(), ["file_list"]);
}

#[test]
fn a_whole_library_is_granted_by_one_section() {
    let whole: Grantee = "library/pub/*".parse().unwrap();
    let path = Path::new("belljar.toml");
    let grant = |text: &str, change: &GrantChange| {
        let changes = [(whole.clone(), Visibility::Internal, change.clone())];
        apply_grants(path, text, Some(Path::new("/home/op")), &changes).unwrap()
    };
    let mut change = tools(&[("web_fetch", CallPermission::Allow)]);
    change.alone = true;
    let first = grant(FILE, &change);
    insta::assert_snapshot!(difference(FILE, &first), @r#"
    +[grants."library/pub/*"]
    +add_tools = ["web_fetch"]
    "#);
    assert_eq!(grant(&first, &change), first, "applying twice changes nothing more");
    let second = grant(&first, &tools(&[("file_write", CallPermission::Ask)]));
    insta::assert_snapshot!(difference(&first, &second), @r#"
    -add_tools = ["web_fetch"]
    +add_tools = { file_write = "ask", web_fetch = "allow" }
    "#);
}
