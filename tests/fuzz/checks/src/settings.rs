//! `belljar.toml` at home and in a workspace, and tool manifests.
//!
//! A line `%% workspace` parts the home file from the workspace's. The whole input is also read
//! as a tool manifest.

use std::path::{Path, PathBuf};

use belljar_definition::{
    AgentId, AgentScope, Diagnostic, GrantChange, Grantee, Settings, Severity, Slug, SubagentsAsk,
    ToolManifest, Visibility, apply_grant,
};
use belljar_policy::{AskedRights, CallPermission, Grants, Rights, ToolAsk, ToolName};

use crate::is_safe_to_show;

const HOME: &str = "/home/o/.belljar/belljar.toml";
const WORKSPACE: &str = "/w/.belljar/belljar.toml";

/// Checks that what is read is used as it stands, and that a workspace only takes away.
pub fn settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    manifest(text);
    let (home, workspace) = text.split_once("%% workspace\n").unwrap_or((text, ""));
    let with_home = parse(Some(home), None);
    let alone = parse(None, Some(workspace));
    let both = parse(Some(home), Some(workspace));
    assert_eq!(both, parse(Some(home), Some(workspace)), "two readings of the same text");
    assert_eq!(both.is_ok(), with_home.is_ok() && alone.is_ok(), "half of a policy is none");
    if let (Ok(settings), Ok(nothing)) = (&alone, parse(None, None)) {
        narrows(settings, &nothing);
    }
    let Ok(with_home) = with_home else { return };
    if let Ok(both) = &both {
        narrows(both, &with_home);
    }
    edit(home, &with_home);
}

fn parse(home: Option<&str>, workspace: Option<&str>) -> Result<Settings, ()> {
    let home = home.map(|text| (Path::new(HOME), text));
    let workspace = workspace.map(|text| (Path::new(WORKSPACE), text));
    match Settings::parse(home, workspace, Some(Path::new("/home/o"))) {
        Ok(settings) => {
            assert!(settings.warnings().iter().all(|found| found.severity < Severity::Error));
            refusals(settings.warnings());
            Ok(settings)
        }
        Err(problems) => {
            assert!(problems.iter().any(|found| found.severity == Severity::Error));
            refusals(&problems);
            Err(())
        }
    }
}

fn refusals(found: &[Diagnostic]) {
    for found in found {
        assert!(is_safe_to_show(&found.to_string()), "{found:?}");
    }
}

/// The first gives no agent anything that the second does not give.
fn narrows(narrow: &Settings, wide: &Settings) {
    assert_eq!(narrow.project_override, wide.project_override);
    assert_eq!(narrow.keep_runs, wide.keep_runs);
    assert_eq!(narrow.compact_at, wide.compact_at);
    assert_eq!(narrow.server, wide.server);
    assert_eq!(narrow.models, wide.models);
    assert_eq!(narrow.roles, wide.roles);
    assert_eq!(narrow.secrets, wide.secrets);
    assert_eq!(narrow.tools, wide.tools);
    assert_eq!(narrow.hooks, wide.hooks);
    let (own, above) = (&narrow.subagents, &wide.subagents);
    assert!(own.max_depth <= above.max_depth);
    assert!(above.blocked_agents.iter().all(|agent| own.blocked_agents.contains(agent)));
    assert!(above.blocked_tools.iter().all(|tool| own.blocked_tools.contains(tool)));
    for id in agents(wide) {
        for visibility in Visibility::ALL {
            let grants = |of: &Settings| of.agent_grants(&id, visibility, Path::new("/w"));
            let (own, above) = (grants(narrow), grants(wide));
            assert!(rights(&own).is_within(&rights(&above)), "{id}: {own:?}\nnot in {above:?}");
            delegates_less(&narrow.delegation(&id, visibility), &wide.delegation(&id, visibility));
        }
    }
}

fn rights(grants: &Grants) -> Rights {
    Rights::intersect_rights(&AskedRights::default(), grants, None).0
}

/// All of a list have to agree, so one more line takes away.
fn delegates_less(narrow: &[SubagentsAsk], wide: &[SubagentsAsk]) {
    let allowed = |asks: &[SubagentsAsk]| asks.iter().all(|ask| ask.enabled != Some(false));
    assert!(allowed(wide) || !allowed(narrow));
    let most = |asks: &[SubagentsAsk]| asks.iter().filter_map(|ask| ask.max_concurrent).min();
    assert!(most(wide).is_none_or(|wide| most(narrow).is_some_and(|narrow| narrow <= wide)));
    let lists = |asks: &[SubagentsAsk]| -> Vec<_> {
        asks.iter().filter_map(|ask| ask.allowed_tools.clone()).collect()
    };
    assert!(lists(wide).iter().all(|list| lists(narrow).contains(list)));
}

/// Those that the file names, and a namesake of each scope.
fn agents(settings: &Settings) -> Vec<AgentId> {
    let named = settings.grantees().filter_map(|grantee| match grantee {
        Grantee::Agent(id) => Some(id.clone()),
        Grantee::Library(_) => None,
    });
    let mut agents: Vec<_> = named.take(8).collect();
    if let Some(slug) = Slug::from_name("scout") {
        agents.push(AgentId::in_home(slug.clone()));
        let scopes =
            [AgentScope::Library("lib".to_owned()), AgentScope::Workspace(PathBuf::from("/w"))];
        agents.extend(scopes.map(|scope| AgentId { scope, slug: slug.clone() }));
    }
    agents
}

/// A grant that is added is there afterwards, and the rest of the file is read as before.
fn edit(text: &str, before: &Settings) {
    let (Some(slug), Ok(tool)) = (Slug::from_name("scout"), ToolName::new("file_write")) else {
        return;
    };
    let id = AgentId::in_home(slug);
    let change = GrantChange { tools: vec![(tool, CallPermission::Ask)], ..GrantChange::default() };
    let home = Path::new("/home/o");
    let edited =
        apply_grant(Path::new(HOME), text, Some(home), &id, Visibility::UserFacing, &change);
    let after = edited.map(|text| parse(Some(&text), None));
    let Ok(Ok(after)) = after else {
        return assert!(after.is_err(), "an edit that cannot be read");
    };
    let grants = |of: &Settings| of.agent_grants(&id, Visibility::UserFacing, Path::new("/w"));
    let (mut was, mut is) = (grants(before), grants(&after));
    was.tools.remove("file_write");
    assert_eq!(is.tools.remove("file_write"), Some(CallPermission::Ask));
    assert_eq!(is, was, "and nothing else");
    assert_eq!((&before.models, &before.secrets), (&after.models, &after.secrets));
}

fn manifest(text: &str) {
    let read = || ToolManifest::parse(Path::new("tools/t/tool.toml"), text);
    let parsed = read();
    assert_eq!(parsed, read(), "two readings of the same text");
    match parsed {
        Ok(manifest) => asks_for_what_stands_there(&manifest.ask, text),
        Err(problems) => {
            assert!(problems.iter().any(|found| found.severity == Severity::Error));
            refusals(&problems);
        }
    }
}

/// A key that is not there asks for nothing.
fn asks_for_what_stands_there(ask: &ToolAsk, text: &str) {
    // Keys of TOML can be spelt with escapes; then the text says nothing.
    if text.contains('\\') {
        return;
    }
    assert!(ask.mounts.is_none() || text.contains("mounts"));
    assert!(ask.hosts.is_empty() || text.contains("hosts"));
    assert!(ask.secrets.is_empty() || text.contains("secrets"));
}
