//! The requests and hints of a tool, in a few words.

use belljar_policy::{PeersAsk, ToolAsk};
use belljar_sandbox::ToolInfo;

/// The requests of a manifest in one line, for example hosts and mounts.
pub(super) fn format_requests(ask: &ToolAsk) -> String {
    let mut words = Vec::new();
    if let Some(access) = ask.mounts {
        words.push(format!("mounts ({access})"));
    }
    if !ask.hosts.is_empty() {
        let rules: Vec<String> = ask.hosts.iter().map(ToString::to_string).collect();
        words.push(rules.join(" "));
    }
    words.extend(ask.secrets.iter().map(|secret| format!("secret {secret}")));
    match &ask.peers {
        PeersAsk::None => {}
        PeersAsk::All => words.push("to call other tools".to_owned()),
        PeersAsk::Only(names) => words.extend(names.iter().map(|name| format!("to call {name}"))),
    }
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

/// The hints of a tool about its calls, in one line.
pub(super) fn format_hints(info: &ToolInfo) -> String {
    let hints = [
        (info.hints.read_only, "read-only"),
        (info.hints.idempotent, "idempotent"),
        (info.hints.open_world, "open-world"),
    ];
    let hints: Vec<&str> = hints.iter().filter(|(set, _)| *set).map(|(_, word)| *word).collect();
    if hints.is_empty() { "no hints".to_owned() } else { hints.join(", ") }
}
