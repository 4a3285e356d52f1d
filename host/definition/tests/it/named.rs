//! Names of agents in `belljar.toml` that nothing has.

use std::path::Path;

use belljar_definition::{
    AgentContext, AgentScope, Catalog, Diagnostic, ScannedContent, Settings, SourceFile,
    TeamDefinition,
};

use crate::show::{known, list};

fn file(scope: AgentScope, path: &str, text: &str) -> SourceFile {
    let content = ScannedContent::Bytes(text.as_bytes().to_vec());
    SourceFile { scope, root: "/".into(), path: path.into(), content }
}

fn agent(scope: AgentScope, path: &str) -> SourceFile {
    let name = Path::new(path).file_stem().unwrap().to_str().unwrap();
    file(scope, path, &format!("---\nname: {name}\ndescription: d\ntools: []\n---\nbody\n"))
}

/// Findings about these two files where there are `scout` and a broken `cracked` at home, a draft,
/// `own` in the workspace, `adder` in a library, and a team at home.
fn said(home: &str, workspace: &str) -> Vec<Diagnostic> {
    let own = AgentScope::Workspace("/ws".into());
    let files = vec![
        agent(AgentScope::Home, "/h/scout.md"),
        file(AgentScope::Home, "/h/cracked.md", "---\nname: [\n---\nx\n"),
        agent(AgentScope::Home, "/h/drafts/later.md"),
        agent(own, "/ws/own.md"),
        agent(AgentScope::Library("zoo".to_owned()), "/l/adder.md"),
    ];
    let agents = Catalog::from_agent_files(files, AgentContext::from(known()), false);
    let team = "name: crew\ndescription: d\nstages:\n  - agent: scout\n";
    let teams = Catalog::<TeamDefinition>::from_files(
        vec![file(AgentScope::Home, "/t/crew.yaml", team)],
        &(),
        false,
    );
    assert_eq!((agents.agents().len(), teams.entries().len()), (3, 1));
    let (home_path, workspace_path) = (Path::new("h.toml"), Path::new("w.toml"));
    let settings =
        Settings::parse(Some((home_path, home)), Some((workspace_path, workspace)), None).unwrap();
    settings.check_agents(&agents, &teams, Path::new("/ws"))
}

#[test]
fn a_misspelt_agent_is_named_with_its_place_and_the_likely_name() {
    let home = "[subagents]\nblocked_agents = [\"scuot\"]\n[grants.adder]\ntools = []\n\
                [grants.scout]\nsubagents = { allowed_agents = [\"scout\", \"sout\"] }\n\
                [grants.kubernetes]\ntools = []\n";
    insta::assert_snapshot!(list(&said(home, "")), @r"
    h.toml:2:19: warning: `blocked_agents` names `scuot`, and there is no such agent
      hint: did you mean `scout`?
    h.toml:3:1: warning: `[grants]` names `home/adder`, and there is no such agent
      hint: did you mean `library/zoo/adder`?
    h.toml:7:1: warning: `[grants]` names `home/kubernetes`, and there is no such agent
      hint: `belljar agents list` shows all
    h.toml:6:42: warning: `allowed_agents` names `sout`, and there is no such agent
      hint: did you mean `scout`?
    ");
}

#[test]
fn what_is_there_elsewhere_or_not_in_use_is_no_slip() {
    let home = "[subagents]\nblocked_agents = [\"Scout\", \"adder\", \"workspace:/ws/own\"]\n\
                [grants.crew]\ntools = []\n[grants.cracked]\ntools = []\n\
                [grants.later]\ntools = []\n[grants.\"library/zoo/adder\"]\ntools = []\n\
                [grants.\"workspace:/other/x\"]\ntools = []\n";
    let workspace = "[grants.own]\ntools = []\n[grants.\"workspace/own\"]\ntools = []\n";
    assert_eq!(said(home, workspace), []);
}

#[test]
fn each_way_of_naming_has_its_own_meaning() {
    // At home a bare name is an agent at home; only a workspace's own file means its own.
    assert_eq!(said("[grants.own]\ntools = []\n", "").len(), 1);
    assert_eq!(said("[subagents]\nblocked_agents = [\"library/x/scout\"]\n", "").len(), 1);
    assert_eq!(said("", "[grants.\"workspace/scout\"]\ntools = []\n").len(), 1);
    assert_eq!(said("", "[subagents]\nblocked_agents = [\"a\\u202eb\"]\n").len(), 1);
}

#[test]
fn a_library_that_is_not_there_is_named_with_the_likely_one() {
    let home = "[grants.\"library/zoo/*\"]\ntools = []\n[grants.\"library/aquarium/*\"]\ntools = []\n\
                [grants.\"library/zooo/*\"]\ntools = []\n";
    insta::assert_snapshot!(list(&said(home, "")), @r"
    h.toml:3:1: warning: `[grants]` names `library/aquarium/*`, and there is no such library
      hint: `belljar agents list` shows all
    h.toml:5:1: warning: `[grants]` names `library/zooo/*`, and there is no such library
      hint: did you mean `library/zoo/*`?
    ");
}
