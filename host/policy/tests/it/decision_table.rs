//! Compares the decision for every agent, capability and target of a small world with a committed table. A
//! change of the table is a change of what somebody may do, and needs a review like code.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{
    AskedRights, CallPermission, Grants, GuestPath, Limits, Mount, MountAccess, MountAsk,
    RequestTarget, Rights, RightsQuestion, SecretName, ToolAsk, ToolName, explain_tool,
};

use crate::worlds::rule;

struct Agent {
    name: &'static str,
    asked: AskedRights,
    grants: Grants,
    parent: Option<Rights>,
}

fn tools(names: &[(&str, CallPermission)]) -> BTreeMap<ToolName, CallPermission> {
    names.iter().map(|(name, may)| (ToolName::new(name).unwrap(), *may)).collect()
}

fn names(names: &[&str]) -> Option<BTreeSet<ToolName>> {
    Some(names.iter().map(|name| ToolName::new(name).unwrap()).collect())
}

fn mount(guest: &str, host: &str, access: MountAccess) -> Mount {
    Mount { guest: GuestPath::new(guest).unwrap(), host: host.into(), access }
}

fn ask(guest: &str, access: MountAccess) -> MountAsk {
    MountAsk { guest: GuestPath::new(guest).unwrap(), access }
}

/// A small version of the default grants: files to read, and the network tools without a host.
fn default_grants() -> Grants {
    Grants {
        tools: tools(&[("file_read", CallPermission::Allow), ("web_fetch", CallPermission::Allow)]),
        mounts: vec![mount("/workspace", "/ws", MountAccess::Read)],
        hosts: vec![Vec::new()],
        ..Grants::none()
    }
}

fn wide_grants() -> Grants {
    Grants {
        tools: tools(&[
            ("file_read", CallPermission::Allow),
            ("file_write", CallPermission::Ask),
            ("web_fetch", CallPermission::Allow),
        ]),
        mounts: vec![
            mount("/workspace", "/ws", MountAccess::Read),
            mount("/workspace/out", "/ws/out", MountAccess::ReadWrite),
            mount("/data", "/srv/data", MountAccess::Read),
        ],
        hosts: vec![vec![rule("https://*"), rule("http://10.0.0.0/8")]],
        secrets: BTreeSet::from([SecretName::new("brave").unwrap()]),
        limits: Limits::default(),
    }
}

fn agents() -> Vec<Agent> {
    let agent = |name, asked, grants, parent| Agent { name, asked, grants, parent };
    let narrow = AskedRights {
        tools: names(&["file_read", "file_write"]),
        mounts: Some(vec![ask("/workspace", MountAccess::Read)]),
        hosts: Some(vec![rule("https://docs.example")]),
        ..AskedRights::default()
    };
    let gives_up = AskedRights {
        at_most: tools(&[("file_write", CallPermission::Deny), ("file_read", CallPermission::Ask)]),
        ..AskedRights::default()
    };
    let (scout, _) = Rights::intersect_rights(&AskedRights::default(), &default_grants(), None);
    let narrowed = Grants {
        hosts: vec![vec![rule("https://*")], vec![rule("https://docs.example")]],
        ..wide_grants()
    };
    vec![
        agent("nobody", AskedRights::default(), Grants::none(), None),
        agent("default", AskedRights::default(), default_grants(), None),
        agent("wide", AskedRights::default(), wide_grants(), None),
        agent("wide, workspace narrows hosts", AskedRights::default(), narrowed, None),
        agent("narrow definition", narrow, wide_grants(), None),
        agent("gives up tools", gives_up, wide_grants(), None),
        agent("wide child of default", AskedRights::default(), wide_grants(), Some(scout)),
    ]
}

fn manifest(tool: &str) -> ToolAsk {
    match tool {
        "file_read" => ToolAsk { mounts: Some(MountAccess::Read), ..ToolAsk::default() },
        "file_write" => ToolAsk { mounts: Some(MountAccess::ReadWrite), ..ToolAsk::default() },
        "web_fetch" => {
            ToolAsk { hosts: vec![rule("https://*"), rule("http://*")], ..ToolAsk::default() }
        }
        _ => ToolAsk::default(),
    }
}

fn questions() -> Vec<(&'static str, String, RightsQuestion)> {
    let path = |tool, path: &str, access| {
        (tool, format!("{access} {path}"), RightsQuestion::Path(path.to_owned(), access))
    };
    let url = |tool, url: &str| {
        (tool, url.to_owned(), RightsQuestion::Url(RequestTarget::parse(url).unwrap()))
    };
    let call = |tool| (tool, "call".to_owned(), RightsQuestion::Call);
    vec![
        call("file_read"),
        path("file_read", "/workspace/a", MountAccess::Read),
        path("file_read", "/workspace/a", MountAccess::ReadWrite),
        path("file_read", "/workspace/out/a", MountAccess::Read),
        path("file_read", "/data/a", MountAccess::Read),
        path("file_read", "/etc/passwd", MountAccess::Read),
        url("file_read", "https://docs.example/"),
        call("file_write"),
        path("file_write", "/workspace/a", MountAccess::ReadWrite),
        path("file_write", "/workspace/out/a", MountAccess::ReadWrite),
        path("file_write", "/data/a", MountAccess::ReadWrite),
        call("web_fetch"),
        path("web_fetch", "/workspace/a", MountAccess::Read),
        url("web_fetch", "https://docs.example/"),
        url("web_fetch", "https://docs.example:8443/"),
        url("web_fetch", "http://docs.example/"),
        url("web_fetch", "http://10.0.0.1/"),
        call("shell"),
        path("shell", "/workspace/a", MountAccess::Read),
    ]
}

#[test]
fn the_decision_table_is_as_committed() {
    let mut table = String::new();
    for agent in agents() {
        table += &format!("# {}\n", agent.name);
        for (tool, what, question) in questions() {
            let Agent { asked, grants, parent, .. } = &agent;
            let answer =
                explain_tool(tool, &question, asked, &manifest(tool), grants, parent.as_ref());
            let by = answer.decided_by.map_or_else(String::new, |by| format!("  {by}"));
            let may = format!("{:?}", answer.permission).to_lowercase();
            table += format!("{tool:<11}{what:<34}{may:<6}{by}").trim_end();
            table += "\n";
        }
        table += "\n";
    }
    insta::assert_snapshot!("decision_table", table);
}
