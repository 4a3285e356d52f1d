//! Every agent x capability x target of a small world, as a committed table. A change here is
//! a change of what somebody may do: review it like code.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{
    Access, Asked, Grants, GuestPath, Limits, Mount, MountAsk, Permission, Rights, RightsQuestion,
    SecretName, Target, ToolAsk, ToolName, explain,
};

use crate::worlds::rule;

struct Agent {
    name: &'static str,
    asked: Asked,
    grants: Grants,
    parent: Option<Rights>,
}

fn tools(names: &[(&str, Permission)]) -> BTreeMap<ToolName, Permission> {
    names.iter().map(|(name, may)| (ToolName::new(name).unwrap(), *may)).collect()
}

fn names(names: &[&str]) -> Option<BTreeSet<ToolName>> {
    Some(names.iter().map(|name| ToolName::new(name).unwrap()).collect())
}

fn mount(guest: &str, host: &str, access: Access) -> Mount {
    Mount { guest: GuestPath::new(guest).unwrap(), host: host.into(), access }
}

fn ask(guest: &str, access: Access) -> MountAsk {
    MountAsk { guest: GuestPath::new(guest).unwrap(), access }
}

/// The defaults in small: files to read, and the tools for the network without a host.
fn default_grants() -> Grants {
    Grants {
        tools: tools(&[("file_read", Permission::Allow), ("web_fetch", Permission::Allow)]),
        mounts: vec![mount("/workspace", "/ws", Access::Read)],
        hosts: vec![Vec::new()],
        ..Grants::none()
    }
}

fn wide_grants() -> Grants {
    Grants {
        tools: tools(&[
            ("file_read", Permission::Allow),
            ("file_write", Permission::Ask),
            ("web_fetch", Permission::Allow),
        ]),
        mounts: vec![
            mount("/workspace", "/ws", Access::Read),
            mount("/workspace/out", "/ws/out", Access::ReadWrite),
            mount("/data", "/srv/data", Access::Read),
        ],
        hosts: vec![vec![rule("https://*"), rule("http://10.0.0.0/8")]],
        secrets: BTreeSet::from([SecretName::new("brave").unwrap()]),
        limits: Limits::default(),
    }
}

fn agents() -> Vec<Agent> {
    let agent = |name, asked, grants, parent| Agent { name, asked, grants, parent };
    let narrow = Asked {
        tools: names(&["file_read", "file_write"]),
        mounts: Some(vec![ask("/workspace", Access::Read)]),
        hosts: Some(vec![rule("https://docs.example")]),
        ..Asked::default()
    };
    let gives_up = Asked {
        at_most: tools(&[("file_write", Permission::Deny), ("file_read", Permission::Ask)]),
        ..Asked::default()
    };
    let (scout, _) = Rights::effective(&Asked::default(), &default_grants(), None);
    let narrowed = Grants {
        hosts: vec![vec![rule("https://*")], vec![rule("https://docs.example")]],
        ..wide_grants()
    };
    vec![
        agent("nobody", Asked::default(), Grants::none(), None),
        agent("default", Asked::default(), default_grants(), None),
        agent("wide", Asked::default(), wide_grants(), None),
        agent("wide, workspace narrows hosts", Asked::default(), narrowed, None),
        agent("narrow definition", narrow, wide_grants(), None),
        agent("gives up tools", gives_up, wide_grants(), None),
        agent("wide child of default", Asked::default(), wide_grants(), Some(scout)),
    ]
}

fn manifest(tool: &str) -> ToolAsk {
    match tool {
        "file_read" => ToolAsk { mounts: Some(Access::Read), ..ToolAsk::default() },
        "file_write" => ToolAsk { mounts: Some(Access::ReadWrite), ..ToolAsk::default() },
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
    let url =
        |tool, url: &str| (tool, url.to_owned(), RightsQuestion::Url(Target::parse(url).unwrap()));
    let call = |tool| (tool, "call".to_owned(), RightsQuestion::Call);
    vec![
        call("file_read"),
        path("file_read", "/workspace/a", Access::Read),
        path("file_read", "/workspace/a", Access::ReadWrite),
        path("file_read", "/workspace/out/a", Access::Read),
        path("file_read", "/data/a", Access::Read),
        path("file_read", "/etc/passwd", Access::Read),
        url("file_read", "https://docs.example/"),
        call("file_write"),
        path("file_write", "/workspace/a", Access::ReadWrite),
        path("file_write", "/workspace/out/a", Access::ReadWrite),
        path("file_write", "/data/a", Access::ReadWrite),
        call("web_fetch"),
        path("web_fetch", "/workspace/a", Access::Read),
        url("web_fetch", "https://docs.example/"),
        url("web_fetch", "https://docs.example:8443/"),
        url("web_fetch", "http://docs.example/"),
        url("web_fetch", "http://10.0.0.1/"),
        call("shell"),
        path("shell", "/workspace/a", Access::Read),
    ]
}

#[test]
fn the_decision_table_is_as_committed() {
    let mut table = String::new();
    for agent in agents() {
        table += &format!("# {}\n", agent.name);
        for (tool, what, question) in questions() {
            let Agent { asked, grants, parent, .. } = &agent;
            let answer = explain(tool, &question, asked, &manifest(tool), grants, parent.as_ref());
            let by = answer.decided_by.map_or_else(String::new, |by| format!("  {by}"));
            let may = format!("{:?}", answer.permission).to_lowercase();
            table += format!("{tool:<11}{what:<34}{may:<6}{by}").trim_end();
            table += "\n";
        }
        table += "\n";
    }
    insta::assert_snapshot!("decision_table", table);
}
