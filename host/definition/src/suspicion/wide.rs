//! Finds requests that are far wider than the description suggests.

use belljar_policy::Access;

use crate::AgentDefinition;
use crate::agent::{TOOL_ALIASES, Written};

/// Beginnings of words for work that only reads.
const READING: &[&str] = &[
    "analy",
    "answer",
    "assess",
    "audit",
    "check",
    "compar",
    "critiqu",
    "evaluat",
    "examin",
    "explain",
    "find",
    "inspect",
    "locat",
    "look",
    "read",
    "report",
    "review",
    "search",
    "summar",
    "understand",
];

/// Beginnings of words for work that changes, runs or fetches something. A description with one of them is
/// not only about reading.
const ACTING: &[&str] = &[
    "add",
    "apply",
    "automat",
    "build",
    "chang",
    "clean",
    "cod",
    "configur",
    "coordinat",
    "craft",
    "creat",
    "debug",
    "deliver",
    "deploy",
    "design",
    "develop",
    "download",
    "draft",
    "edit",
    "engineer",
    "enhanc",
    "execut",
    "fetch",
    "fix",
    "format",
    "generat",
    "implement",
    "improv",
    "install",
    "integrat",
    "maintain",
    "manag",
    "migrat",
    "moderniz",
    "modif",
    "optimi",
    "orchestrat",
    "patch",
    "prepar",
    "produc",
    "prototyp",
    "publish",
    "refactor",
    "remediat",
    "remov",
    "renam",
    "repair",
    "replac",
    "resolv",
    "restructur",
    "run",
    "scaffold",
    "script",
    "setup",
    "solv",
    "test",
    "transform",
    "troubleshoot",
    "updat",
    "writ",
];

/// The requests beyond reading.
#[derive(Debug, Default)]
struct Asks {
    everything: bool,
    write: bool,
    shell: bool,
    network: bool,
}

/// Describes the requests of an agent whose description is only about reading. A reviewer may need a shell
/// for a repository's history, or the network for look-ups, so either alone is not reported; changing files
/// is, and so are both together, or all tools.
pub(super) fn look(definition: &AgentDefinition) -> Option<String> {
    let asks = Asks::of(definition);
    let wide = asks.everything || asks.write || asks.shell && asks.network;
    if !wide || !only_reads(&definition.description) {
        return None;
    }
    let mut what = Vec::new();
    for (is, words) in [
        (asks.everything, "every tool that there is"),
        (asks.write, "writing files"),
        (asks.shell, "a shell"),
        (asks.network, "the network"),
    ] {
        if is {
            what.push(words);
        }
    }
    Some(format!("asks for {}", what.join(", ")))
}

fn only_reads(description: &str) -> bool {
    let text = description.to_lowercase();
    let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let begins = |list: &[&str]| words().any(|word| list.iter().any(|stem| word.starts_with(stem)));
    begins(READING) && !begins(ACTING)
}

impl Asks {
    fn of(definition: &AgentDefinition) -> Self {
        let mut asks = Self::default();
        let asked = &definition.asked;
        let written = definition.tools_as_written.iter().flatten();
        for name in written {
            let name = Written::of(name).name;
            // A file without a statement about tools asks for no tool in particular.
            asks.everything |= name == "*" && asked.tools.is_none();
            asks.tool(name);
            let aliases = TOOL_ALIASES.iter().filter(|alias| alias.name == name);
            aliases.flat_map(|alias| alias.canonical).for_each(|name| asks.tool(name));
        }
        asks.network |= asked.hosts.as_ref().is_some_and(|hosts| !hosts.is_empty());
        let mut mounts = asked.mounts.iter().flatten();
        asks.write |= mounts.any(|mount| mount.access == Access::ReadWrite);
        asks
    }

    fn tool(&mut self, name: &str) {
        match name {
            "file_write" | "file_edit" => self.write = true,
            "shell" => self.shell = true,
            "web_fetch" | "web_search" => self.network = true,
            _ => {}
        }
    }
}
