//! The changes that an update of a plugin makes: rights first, then every text that reaches a model.

use std::collections::BTreeMap;
use std::fmt::Display;

use belljar_policy::ShownText;

use super::vetting::{PluginText, VettedPlugin};
use crate::commands::libraries::{agent_difference, line_difference};
use crate::libraries::LibrarySource;
use crate::term::out::{TerminalOutput, TextStyle};

/// How the line about another source begins.
const SOURCE: &str = "~ source: ";

/// The differences between two versions of a plugin, as lines: `+` for more, `-` for less, `~` for other.
pub(super) struct PluginDifference {
    pub(super) lines: Vec<String>,
}

impl PluginDifference {
    /// Compares an installed plugin with its source now.
    pub(super) fn compare(old: &VettedPlugin, new: &VettedPlugin) -> Self {
        let mut lines = Vec::new();
        compare_agents(old, new, &mut lines);
        let (before, after) = (&old.inventory, &new.inventory);
        compare_values("hook", &before.hooks, &after.hooks, &mut lines);
        compare_values("server", &before.servers, &after.servers, &mut lines);
        compare_texts("skill", &old.skills, &new.skills, &mut lines);
        compare_texts("command", &old.commands, &new.commands, &mut lines);
        compare_files(old, new, &mut lines);
        Self { lines }
    }

    /// Puts the change of the place that the plugin is taken from first.
    pub(super) fn note_source(&mut self, old: &LibrarySource, new: &LibrarySource) {
        if old.origin() != new.origin() {
            self.lines.insert(0, format!("{SOURCE}{old} -> {new}"));
        }
    }

    pub(super) fn print_to(&self, out: &TerminalOutput) {
        for line in &self.lines {
            let style = if line.starts_with('+') || line.starts_with(SOURCE) {
                TextStyle::Yellow
            } else if line.starts_with('-') {
                TextStyle::Green
            } else {
                TextStyle::Dim
            };
            out.print_line(out.paint(style, line));
        }
    }
}

fn compare_agents(old: &VettedPlugin, new: &VettedPlugin, lines: &mut Vec<String>) {
    let index = |vetted: &VettedPlugin| -> BTreeMap<String, usize> {
        let slugs = vetted.agents.iter().map(|agent| agent.resolved.id.slug.to_string());
        slugs.enumerate().map(|(at, slug)| (slug, at)).collect()
    };
    let (before, after) = (index(old), index(new));
    for (name, at) in &after {
        let Some(agent) = new.agents.get(*at) else { continue };
        match before.get(name).and_then(|at| old.agents.get(*at)) {
            None => {
                let asks = agent.resolved.list_requests().join(", ");
                let gets = agent.resolved.list_rights().join(", ");
                let [asks, gets] = [&asks, &gets].map(|rights| ShownText::clip_line(rights, 160));
                lines.push(format!(
                    "+ agent {name}: asks for {asks}; under the present grants: {gets}"
                ));
            }
            Some(was) if was.file.bytes != agent.file.bytes => {
                let own = agent_difference(was, agent);
                lines.extend(own.into_iter().map(|line| match line.split_at_checked(2) {
                    Some(("+ ", rest)) => format!("+ agent {name}: {rest}"),
                    Some(("- ", rest)) => format!("- agent {name}: {rest}"),
                    _ => format!("~ agent {name}: {line}"),
                }));
            }
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    lines.extend(gone.map(|name| format!("- agent {name}")));
}

/// Compares whole values: their texts are cut, and have neither environments nor headers.
fn compare_values<T: PartialEq + Display>(
    what: &str,
    old: &[T],
    new: &[T],
    lines: &mut Vec<String>,
) {
    let added = new.iter().filter(|it| !old.contains(it)).map(ToString::to_string);
    let gone = old.iter().filter(|it| !new.contains(it)).map(ToString::to_string);
    let (added, mut gone): (Vec<String>, Vec<String>) = (added.collect(), gone.collect());
    for text in added {
        match gone.iter().position(|was| *was == text) {
            Some(at) => {
                gone.remove(at);
                lines.push(format!("~ {what} {text}: differs in parts that this line has not"));
            }
            None => lines.push(format!("+ {what} {text}")),
        }
    }
    lines.extend(gone.iter().map(|text| format!("- {what} {text}")));
}

fn compare_texts(what: &str, old: &[PluginText], new: &[PluginText], lines: &mut Vec<String>) {
    for text in new {
        let name = ShownText::clip_line(&text.name, 80);
        match old.iter().find(|was| was.path == text.path) {
            None => {
                let description = ShownText::clip_line(&text.description, 120);
                lines.push(format!("+ {what} {name}: {description}"));
            }
            Some(was) if was.text != text.text => {
                if was.description != text.description {
                    let description = ShownText::clip_line(&text.description, 120);
                    lines.push(format!("~ {what} {name}: description: {description}"));
                }
                lines.push(format!("~ {what} {name}: {}", line_difference(&was.text, &text.text)));
            }
            Some(_) => {}
        }
    }
    let gone = old.iter().filter(|was| !new.iter().any(|text| text.path == was.path));
    lines.extend(gone.map(|was| format!("- {what} {}", ShownText::clip_line(&was.name, 80))));
}

/// The other files: a skill's scripts and documents are read by the agent that loads it.
fn compare_files(old: &VettedPlugin, new: &VettedPlugin, lines: &mut Vec<String>) {
    let index = |vetted: &VettedPlugin| -> BTreeMap<String, Vec<u8>> {
        let [agents, skills, commands] = vetted.part_paths();
        let is_part = |path: &str| {
            agents.iter().chain(&skills).chain(&commands).any(|part| part.as_os_str() == path)
        };
        let others = vetted.files.iter().filter(|file| !is_part(&file.path));
        others.map(|file| (file.path.clone(), file.bytes.clone())).collect()
    };
    let (before, after) = (index(old), index(new));
    let added = after.keys().filter(|path| !before.contains_key(*path));
    let changed =
        after.iter().filter(|(path, bytes)| before.get(*path).is_some_and(|was| was != *bytes));
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let mut push = |sign: char, paths: Vec<&String>| {
        if !paths.is_empty() {
            let names = paths.iter().map(|path| path.as_str()).collect::<Vec<_>>().join(", ");
            let names = ShownText::clip_line(&names, 200);
            lines.push(format!("{sign} {} other files: {names}", paths.len()));
        }
    };
    push('+', added.collect());
    push('~', changed.map(|(path, _)| path).collect());
    push('-', gone.collect());
}

#[cfg(test)]
mod tests {
    use belljar_definition::plugin::{PluginServer, ServerTransport};

    use super::*;

    fn server(name: &str, value: &str) -> PluginServer {
        let (command, args) = ("buoy".to_owned(), Vec::new());
        let env = vec![("KEY".to_owned(), value.to_owned())];
        let transport = ServerTransport::Program { command, args, env };
        PluginServer { name: name.to_owned(), transport }
    }

    #[test]
    fn a_server_with_another_environment_is_another_one() {
        let compare = |old: &[PluginServer], new: &[PluginServer]| {
            let mut lines = Vec::new();
            compare_values("server", old, new, &mut lines);
            lines.iter().filter_map(|line| line.split(':').next().map(str::to_owned)).collect()
        };
        let (old, other) = ([server("a", "1"), server("b", "1")], [server("a", "2")]);
        let lines: Vec<String> = compare(&old, &old);
        assert!(lines.is_empty(), "{lines:?}");
        let lines: Vec<String> = compare(&old, &other);
        assert_eq!(lines, ["~ server a", "- server b"]);
        let lines: Vec<String> = compare(&other, &[server("c", "2")]);
        assert_eq!(lines, ["+ server c", "- server a"]);
    }
}
