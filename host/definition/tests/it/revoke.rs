//! Taking from a grant in place: what was given goes, and nothing else changes.

use std::path::Path;

use belljar_definition::{
    AgentId, GrantChange, GrantRemoval, MountRemoval, MountSpec, NotRevoked, Visibility,
    apply_grant, revoke_grants,
};
use belljar_policy::{CallPermission, GuestPath, MountAccess, SecretName, ToolName};

const FILE: &str = r#"# My rules.
[secrets.brave]
host = "https://api.example"
header = "X-Key"
env = "KEY"

# The scout.
[grants.scout]
tools = [
    "file_read", # always
    # It searches.
    "file_list", # and this
    "shell",
]
hosts = ["https://a.example", "https://b.example"] # two
secrets = ["brave"]
limits = { steps = 50, tokens = 9 }
subagents = { enabled = false }

[grants.critic]
tools = { file_read = "ask", shell = "allow" }
mounts = [
    { path = "/workspace", access = "read-write" },
    { path = "/data", host = "~/data", access = "read" }, # the data
]
"#;

fn id(text: &str) -> AgentId {
    text.parse().unwrap()
}

fn tool(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

/// The home file after a removal from the agent's grant, or the rights missing in the grant.
fn revoke(text: &str, agent: &str, removal: &GrantRemoval) -> Result<String, Vec<String>> {
    let (path, home) = (Path::new("belljar.toml"), Some(Path::new("/home/op")));
    let ids = [(agent.parse().unwrap(), Visibility::UserFacing)];
    match revoke_grants(path, text, home, &ids, removal) {
        Ok(edited) => Ok(edited),
        Err(NotRevoked::NotGranted(missing)) => Err(missing),
        Err(NotRevoked::Invalid(found)) => panic!("{found:?}"),
    }
}

fn tools(names: &[&str]) -> GrantRemoval {
    let tools = names.iter().map(|name| (tool(name), None)).collect();
    GrantRemoval { tools, ..GrantRemoval::default() }
}

fn mount(guest: &str) -> GrantRemoval {
    let guest = GuestPath::new(guest).unwrap();
    let mounts = vec![MountRemoval { guest, host: None, access: None }];
    GrantRemoval { mounts, ..GrantRemoval::default() }
}

#[test]
fn an_entry_goes_with_its_comments_and_the_others_keep_theirs() {
    let edited = revoke(FILE, "scout", &tools(&["file_list"])).unwrap();
    let expected = FILE.replace("    # It searches.\n    \"file_list\", # and this\n", "");
    assert_eq!(edited, expected);
    let edited = revoke(FILE, "critic", &tools(&["shell"])).unwrap();
    assert_eq!(edited, FILE.replace(", shell = \"allow\"", ""));
    let edited = revoke(FILE, "critic", &mount("/data")).unwrap();
    let line = "    { path = \"/data\", host = \"~/data\", access = \"read\" }, # the data\n";
    assert_eq!(edited, FILE.replace(line, ""));
}

#[test]
fn hosts_secrets_and_limits_are_taken_one_by_one() {
    let removal = GrantRemoval {
        hosts: vec!["https://a.example".parse().unwrap()],
        secrets: vec![SecretName::new("brave").unwrap()],
        limits: vec![("steps".to_owned(), Some(50))],
        ..GrantRemoval::default()
    };
    let edited = revoke(FILE, "scout", &removal).unwrap();
    let expected = FILE
        .replace("[\"https://a.example\", \"https://b.example\"]", "[\"https://b.example\"]")
        .replace("secrets = [\"brave\"]\n", "")
        .replace("{ steps = 50, tokens = 9 }", "{ tokens = 9 }");
    assert_eq!(edited, expected);
}

#[test]
fn what_a_grant_does_not_give_is_named_and_nothing_is_taken() {
    let missing = revoke(FILE, "scout", &tools(&["shell", "file_write"])).unwrap_err();
    assert_eq!(missing, ["tool `file_write`"]);
    let ask = GrantRemoval {
        tools: vec![(tool("file_read"), Some(CallPermission::Ask))],
        limits: vec![("steps".to_owned(), Some(9))],
        ..mount("/workspace")
    };
    let missing = revoke(FILE, "scout", &ask).unwrap_err();
    assert_eq!(missing, ["tool `file_read` (ask)", "mount `/workspace`", "limit `steps` (9)"]);
    assert_eq!(revoke(FILE, "nobody", &tools(&["shell"])).unwrap_err(), ["tool `shell`"]);
    let all = GrantRemoval { all: true, ..GrantRemoval::default() };
    assert_eq!(revoke(FILE, "nobody", &all).unwrap_err(), ["anything"]);
}

#[test]
fn all_goes_but_whom_it_may_delegate_to_and_a_section_without_a_key_goes_too() {
    let all = GrantRemoval { all: true, ..GrantRemoval::default() };
    let edited = revoke(FILE, "scout", &all).unwrap();
    assert!(edited.contains("# The scout.\n[grants.scout]\nsubagents"), "{edited}");
    assert_eq!(revoke(&edited, "scout", &all).unwrap_err(), ["anything"]);
    let edited = revoke(FILE, "critic", &all).unwrap();
    assert!(!edited.contains("critic") && edited.contains("[grants.scout]"), "{edited}");
}

#[test]
fn a_workspace_that_was_made_writable_is_what_it_is_without_a_grant() {
    let edited = revoke(FILE, "critic", &mount("/workspace")).unwrap();
    let expected = FILE
        .replace("\"/workspace\", access = \"read-write\"", "\"/workspace\", access = \"overlay\"");
    assert_eq!(edited, expected);
}

#[test]
fn whatever_was_granted_is_undone_to_the_byte() {
    let home = Some(Path::new("/home/op"));
    let path = Path::new("belljar.toml");
    let guest = GuestPath::new("/workspace").unwrap();
    for asked_tools in [None, Some([tool("file_read")].into())] {
        let mut change = GrantChange {
            tools: vec![(tool("shell"), CallPermission::Ask)],
            mounts: vec![MountSpec {
                guest: guest.clone(),
                host: None,
                access: MountAccess::ReadWrite,
            }],
            hosts: vec!["https://c.example".parse().unwrap()],
            asked_tools,
            ..GrantChange::default()
        };
        change.limits.set("steps", 7);
        for (agent, before) in [("newcomer", FILE), ("newcomer", ""), ("scout", FILE)] {
            let visibility = Visibility::UserFacing;
            let given = apply_grant(path, before, home, id(agent), visibility, &change).unwrap();
            let all = GrantRemoval { all: true, ..GrantRemoval::default() };
            let removal = GrantRemoval {
                tools: vec![(tool("shell"), Some(CallPermission::Ask))],
                hosts: change.hosts.clone(),
                limits: vec![("steps".to_owned(), Some(7))],
                ..mount("/workspace")
            };
            if agent == "newcomer" {
                assert_eq!(revoke(&given, agent, &all).unwrap().trim(), before.trim());
                let left = revoke(&given, agent, &removal).unwrap();
                let tools_stay = change.asked_tools.is_some();
                assert_eq!(left.contains("[grants.newcomer]"), tools_stay, "{left}");
            } else {
                let left = revoke(&given, agent, &removal).unwrap();
                assert!(!left.contains("shell = \"ask\"") && !left.contains("c.example"), "{left}");
                assert!(left.contains("\"file_list\"") || left.contains("file_list ="), "{left}");
            }
        }
    }
}

#[test]
fn a_whole_librarys_section_goes_and_those_of_its_agents_stay() {
    let all = GrantRemoval { all: true, ..GrantRemoval::default() };
    let own = "[grants.\"library/pub/a\"]\ntools = [\"file_read\"]\n";
    let text = format!("{own}\n[grants.\"library/pub/*\"]\nadd_tools = [\"shell\"]\n");
    assert_eq!(revoke(&text, "library/pub/*", &tools(&["shell"])).unwrap().trim(), own.trim());
    assert_eq!(revoke(&text, "library/pub/*", &all).unwrap().trim(), own.trim());
    assert!(revoke(&text, "library/pub/*", &tools(&["file_read"])).is_err());
    assert!(revoke(&text, "library/pub/a", &tools(&["shell"])).is_err(), "not by its own section");
}
