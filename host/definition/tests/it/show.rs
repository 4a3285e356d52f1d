//! The one way in which tests look at a result.

use std::path::Path;

use belljar_definition::{
    AgentDefinition, CatalogItem, Diagnostic, FileRead, KnownTools, ParsedAgentFile, Settings,
    SkillDefinition, TeamDefinition, ToolManifest, parse_agent,
};
use belljar_policy::{Grants, ToolName, WriteScope};

/// The names that exist in these tests.
pub(crate) fn known() -> KnownTools {
    let names = [
        "file_read",
        "file_list",
        "file_find",
        "file_search",
        "file_write",
        "file_edit",
        "notebook_edit",
        "attach_file",
        "web_fetch",
        "web_search",
        "spawn_agent",
    ];
    names.into_iter().map(|name| ToolName::new(name).unwrap()).collect()
}

/// An agent file, read.
pub(crate) fn agent(text: impl AsRef<[u8]>) -> String {
    agent_at("agents/scout.md", text)
}

/// An agent file with a path of its own, read.
pub(crate) fn agent_at(path: &str, text: impl AsRef<[u8]>) -> String {
    match parse_agent(Path::new(path), text.as_ref(), &known()) {
        ParsedAgentFile::Agent { definition, diagnostics } => {
            format!("{}{}", fields(&definition), list(&diagnostics))
        }
        ParsedAgentFile::Invalid { diagnostics } => format!("invalid\n{}", list(&diagnostics)),
        ParsedAgentFile::NotAnAgent { reason } => format!("{reason:?}: {}", reason.as_str()),
    }
}

/// A team file, read.
pub(crate) fn team(text: impl AsRef<[u8]>) -> String {
    read::<TeamDefinition>("teams/t.yaml", text.as_ref(), |team| {
        let mut out = format!("{} ({}): {}\n", team.name, team.slug, team.description);
        for stage in &team.stages {
            let how = if stage.parallel { stage.join.as_str() } else { "one" };
            out += &format!("stage, {how}\n");
            for member in &stage.members {
                let task = member.task.as_ref().map(|task| task.fill("<INPUT>", "<TASK>"));
                let (agent, line) = (&member.agent, member.line);
                out += &format!("  {agent} on line {line}, {:?}, {task:?}\n", member.context);
            }
        }
        out + &format!("{:?}\n", team.budget)
    })
}

/// An agent with this field beside its name, read.
pub(crate) fn of_field(field: &str) -> String {
    agent(format!("---\nname: s\ndescription: d\n{field}\n---\nbody"))
}

/// A skill file, read.
pub(crate) fn skill(text: impl AsRef<[u8]>) -> String {
    skill_at("skills/s/SKILL.md", text)
}

/// A skill file with a path of its own, read.
pub(crate) fn skill_at(path: &str, text: impl AsRef<[u8]>) -> String {
    read::<SkillDefinition>(path, text.as_ref(), |skill| {
        let SkillDefinition { name, slug, description, triggers, body, .. } = skill;
        format!("{name} ({slug}): {description}\n{triggers:?} {body:?}\n")
    })
}

/// Parses a file of any kind and shows the result with all findings.
fn read<D: CatalogItem<Context = ()>>(
    path: &str,
    text: &[u8],
    show: impl Fn(&D) -> String,
) -> String {
    match D::read_file(Path::new(path), text, &()) {
        FileRead::Item { item, diagnostics } => format!("{}{}", show(&item), list(&diagnostics)),
        FileRead::Invalid { diagnostics } => format!("invalid\n{}", list(&diagnostics)),
        FileRead::Other { reason } => format!("{reason:?}: {}", reason.as_str()),
    }
}

/// The definition, where there is one.
pub(crate) fn definition(text: impl AsRef<[u8]>) -> AgentDefinition {
    match parse_agent(Path::new("agents/scout.md"), text.as_ref(), &known()) {
        ParsedAgentFile::Agent { definition, .. } => *definition,
        other => panic!("{other:?}"),
    }
}

/// A home `belljar.toml`, read.
pub(crate) fn home(text: &str) -> Result<Settings, String> {
    let home_dir = Some(Path::new("/home/op"));
    Settings::parse(Some((Path::new("belljar.toml"), text)), None, home_dir)
        .map_err(|problems| list(&problems))
}

/// Home and workspace, read.
pub(crate) fn both(home: &str, workspace: &str) -> Result<Settings, String> {
    Settings::parse(
        Some((Path::new("home.toml"), home)),
        Some((Path::new("workspace.toml"), workspace)),
        Some(Path::new("/home/op")),
    )
    .map_err(|problems| list(&problems))
}

/// The errors of a home file.
pub(crate) fn errors(text: &str) -> String {
    home(text).map_or_else(|errors| errors, |_| "fine".to_owned())
}

/// A `tool.toml`, read.
pub(crate) fn manifest(text: &str) -> String {
    match ToolManifest::parse(Path::new("tool.toml"), text) {
        Ok(manifest) => format!("{manifest:?}"),
        Err(problems) => list(&problems),
    }
}

/// Grants on a few lines.
pub(crate) fn grants(grants: &Grants) -> String {
    let tools: Vec<_> =
        grants.tools.iter().map(|(name, may)| format!("{name}:{may:?}").to_lowercase()).collect();
    let mounts: Vec<_> = grants
        .mounts
        .iter()
        .map(|mount| format!("{}={} ({})", mount.guest, mount.host.display(), mount.access))
        .collect();
    let hosts: Vec<Vec<_>> =
        grants.hosts.iter().map(|list| list.iter().map(ToString::to_string).collect()).collect();
    let secrets: Vec<_> = grants.secrets.iter().map(ToString::to_string).collect();
    format!(
        "tools {}\nmounts {}\nhosts {hosts:?}\nsecrets {secrets:?}\nsteps {}",
        tools.join(" "),
        mounts.join(" "),
        grants.limits.steps
    )
}

pub(crate) fn list(diagnostics: &[Diagnostic]) -> String {
    let lines: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// An agent's fields on a few lines.
fn fields(agent: &AgentDefinition) -> String {
    let mut out =
        format!("{} ({}), {}, {}\n", agent.name, agent.slug, agent.dialect, agent.visibility);
    let tools = match &agent.asked.tools {
        None => "all that is granted".to_owned(),
        Some(tools) => format!("{tools:?}"),
    };
    out += &format!("tools: {tools}\n");
    if !agent.asked.at_most.is_empty() {
        out += &format!("at most: {:?}\n", agent.asked.at_most);
    }
    if let Some(others) = agent.asked.others {
        out += &format!("others: {others:?}\n");
    }
    if agent.asked.writes != WriteScope::Anywhere {
        out += &format!("writes: {:?}\n", agent.asked.writes);
    }
    if let Some(mounts) = &agent.asked.mounts {
        let mounts: Vec<_> = mounts.iter().map(|m| format!("{} ({})", m.guest, m.access)).collect();
        out += &format!("mounts: {mounts:?}\n");
    }
    if let Some(hosts) = &agent.asked.hosts {
        let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
        out += &format!("hosts: {hosts:?}\n");
    }
    let limits = &agent.asked.limits;
    let stated = belljar_policy::LIMITS
        .iter()
        .filter_map(|row| limits.get(row.key).map(|value| format!("{} = {value}", row.key)));
    let stated: Vec<_> = stated.collect();
    if !stated.is_empty() {
        out += &format!("limits: {}\n", stated.join(", "));
    }
    if let Some(model) = &agent.model {
        out += &format!("model: {model}\n");
    }
    if let Some(children) = &agent.subagents {
        out += &format!("{children:?}\n");
    }
    out
}
