//! `belljar grant`: writes rights into the operator's own `belljar.toml`, after showing what
//! changes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use belljar_definition::{AgentId, GrantChange, MountSpec, Visibility, apply_grant};
use belljar_policy::{
    Access, GuestPath, HostRule, LIMITS, LimitsRequest, Permission, SecretName, Shown, ToolName,
};
use belljar_sandbox::Digest;
use belljar_session::Host;
use similar::TextDiff;
use toml_edit::{DocumentMut, Item, Table, Value};

use super::granted;
use crate::args::GrantArgs;
use crate::embedded::STOCK_TOOLS;
use crate::exit::{Exit, Failure};
use crate::home::{MAX_COMPONENT_BYTES, Places, create_private, read_bounded, read_config};
use crate::host::Assembly;
use crate::out::{Out, Style};

pub(super) fn run(args: &GrantArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let change = change(args)?;
    if change.is_empty() {
        return Err(Failure::usage("nothing to grant")
            .hint("name a right: `--tool`, `--host`, `--mount`, `--secret` or `--limit`"));
    }
    let operator = places;
    let places = &granted::places(args, operator)?;
    granted::check(args, &change, places)?;
    let host = Assembly::new(places, out)?.host()?;
    let (id, visibility) = agent(&args.agent, &host, out)?;
    check_names(&change, &host)?;
    warn_of_no_effect(&id, &change, &host, out);

    let path = places.config();
    let old = read_config(&path)?.unwrap_or_default();
    let pinned = pin(&old, &change.tools, places)?;
    let user_home = places.user_home.clone();
    let new = apply_grant(&path, &pinned, user_home.as_deref(), &id, visibility, &change).map_err(
        |mut diagnostics| {
            // Their places are those of the changed text, which nobody can look at.
            diagnostics.iter_mut().for_each(|found| (found.line, found.column) = (0, 0));
            Failure::diagnostics("the grant cannot be added", diagnostics)
        },
    )?;
    if new == old {
        out.line(format_args!("nothing to change: `{id}` has all of that"));
        return Ok(Exit::Completed);
    }
    show(&path, &old, &new, out);
    if !args.yes {
        match out.ask("write this?") {
            Some(true) => {}
            Some(false) => {
                out.note("nothing is written");
                return Ok(Exit::Cancelled);
            }
            None => {
                return Err(Failure::usage("there is nobody to ask, so nothing is written")
                    .hint("look at the difference and repeat the command with `--yes`"));
            }
        }
    }
    replace(&path, &new)?;
    out.note(format_args!("wrote {}", path.display()));
    granted::record(args, operator, &id, &change)?;
    Ok(Exit::Completed)
}

fn change(args: &GrantArgs) -> Result<GrantChange, Failure> {
    let mut change = GrantChange::default();
    for text in &args.tool {
        change.tools.push(tool(text)?);
    }
    for text in &args.host {
        change.hosts.push(text.parse::<HostRule>().map_err(usage)?);
    }
    for text in &args.mount {
        change.mounts.push(mount(text)?);
    }
    for text in &args.secret {
        change.secrets.push(SecretName::new(text).map_err(usage)?);
    }
    for text in &args.limit {
        limit(text, &mut change.limits)?;
    }
    Ok(change)
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

/// `name`, `name=allow`, `name=ask` or `name=deny`.
fn tool(text: &str) -> Result<(ToolName, Permission), Failure> {
    let (name, word) = text.split_once('=').unwrap_or((text, "allow"));
    let permission = match word {
        "allow" => Permission::Allow,
        "ask" => Permission::Ask,
        "deny" => Permission::Deny,
        other => {
            return Err(Failure::usage(format!(
                "`{}` is not a permission",
                Shown::clipped(other, 80)
            ))
            .hint("write `allow`, `ask` or `deny`"));
        }
    };
    Ok((ToolName::new(name).map_err(usage)?, permission))
}

/// `/guest:access` or `/guest:/host:access`.
fn mount(text: &str) -> Result<MountSpec, Failure> {
    let wrong = || {
        Failure::usage(format!("`{}` is not a mount", Shown::clipped(text, 200)))
            .hint("write `/workspace:read-write` or `/data:/srv/data:read`")
    };
    let (rest, access) = text.rsplit_once(':').ok_or_else(wrong)?;
    let access = match access {
        "read" => Access::Read,
        "read-write" => Access::ReadWrite,
        _ => return Err(wrong()),
    };
    let (guest, host) = match rest.split_once(':') {
        Some((guest, host)) => {
            let host = std::path::absolute(host).map_err(|_| wrong())?;
            (guest, Some(host))
        }
        None => (rest, None),
    };
    let guest = GuestPath::new(guest).map_err(usage)?;
    if host.is_none() && guest != GuestPath::workspace() {
        return Err(Failure::usage(format!("mount `{guest}` names no directory of this machine"))
            .hint(format!("write `{guest}:/path/to/directory:{access}`")));
    }
    Ok(MountSpec { guest, host, access })
}

/// `key=N`, digits with `_` between them.
fn limit(text: &str, limits: &mut LimitsRequest) -> Result<(), Failure> {
    let shown = Shown::clipped(text, 80).to_string();
    let (key, number) = text.split_once('=').ok_or_else(|| {
        Failure::usage(format!("`{shown}` is not a limit")).hint("write `steps=50`")
    })?;
    let number: u64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| Failure::usage(format!("`{shown}`: the value is not a whole number")))?;
    if number == 0 && NEEDED.contains(&key) {
        return Err(Failure::usage(format!("`{shown}`: no agent can run with that"))
            .hint("to take an agent its tools, use `--tool NAME=deny`"));
    }
    if limits.set(key, number) {
        return Ok(());
    }
    let keys: Vec<&str> = LIMITS.iter().map(|row| row.key).collect();
    Err(Failure::usage(format!("there is no limit `{}`", Shown::clipped(key, 80)))
        .hint(format!("the limits are {}", keys.join(", "))))
}

/// Who gets the rights. A bare name means the home agent, so that a repository's namesake gets
/// nothing by accident.
fn agent(name: &str, host: &Host, out: &Out) -> Result<(AgentId, Visibility), Failure> {
    let id: AgentId = name.parse().map_err(usage)?;
    let catalog = host.library.catalog();
    if let Some(entry) = catalog.get(&id) {
        return Ok((id, entry.definition.visibility));
    }
    if let Ok(other) = catalog.find(name) {
        return Err(Failure::usage(format!("there is no agent `{id}`"))
            .hint(format!("`{name}` is found as `{}`; grant to that identity", other.id)));
    }
    out.warning(format_args!("there is no agent `{id}` yet"));
    Ok((id, Visibility::default()))
}

/// Limits without which an agent cannot even begin.
const NEEDED: &[&str] = &["steps", "tokens", "timeout_seconds", "prefill_timeout_seconds"];

/// Names that a grant refers to have to exist: a misspelt one would grant nothing.
fn check_names(change: &GrantChange, host: &Host) -> Result<(), Failure> {
    let known = host.tools.known();
    if let Some((tool, _)) = change.tools.iter().find(|(tool, _)| !known.contains(tool.as_str())) {
        return Err(super::tools::no_tool(host, tool.as_str()));
    }
    if let Some(secret) =
        change.secrets.iter().find(|secret| !host.settings.secrets.contains_key(*secret))
    {
        return Err(Failure::usage(format!("there is no secret `{secret}`"))
            .hint(format!("set it up under `[secrets.{secret}]` first")));
    }
    Ok(())
}

/// Says what stands in the way of a grant that is written all the same.
fn warn_of_no_effect(id: &AgentId, change: &GrantChange, host: &Host, out: &Out) {
    let catalog = host.library.catalog();
    let entry = catalog.get(id);
    let listed = entry.and_then(|entry| entry.definition.asked.tools.as_ref());
    for (tool, permission) in &change.tools {
        if *permission != Permission::Deny && listed.is_some_and(|listed| !listed.contains(tool)) {
            out.warning(format_args!(
                "`{id}` does not get `{tool}`: the agent's own list of tools leaves it out"
            ));
        }
    }
    for mount in &change.mounts {
        if let Some(directory) = mount.host.as_ref().filter(|directory| !directory.is_dir()) {
            out.warning(format_args!(
                "there is no directory `{}`; the agent does not start without it",
                directory.display()
            ));
        }
    }
}

/// Pins the component of each tool of the operator's own, so that another component in its
/// place is noticed.
fn pin(text: &str, tools: &[(ToolName, Permission)], places: &Places) -> Result<String, Failure> {
    let mut text = text.to_owned();
    for (tool, permission) in tools {
        let path = places.tools().join(tool.as_str()).join("tool.wasm");
        let stock = STOCK_TOOLS.iter().any(|stock| stock.name == tool.as_str());
        if stock || *permission == Permission::Deny || !path.is_file() {
            continue;
        }
        let wasm = read_bounded(&path, MAX_COMPONENT_BYTES).map_err(|error| {
            Failure::new(format!("failed to read `{}`: {error}", path.display()))
        })?;
        let digest = format!("sha256:{}", Digest::of(&wasm));
        // A text that does not parse is reported, with its place, by `apply_grant`.
        if let Some(pinned) = with_digest(&text, tool, &digest) {
            text = pinned;
        }
    }
    Ok(text)
}

fn with_digest(text: &str, tool: &ToolName, digest: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let tools = document.entry("tools").or_insert(Item::Table(implicit)).as_table_like_mut()?;
    if !tools.contains_key(tool.as_str()) {
        tools.insert(tool.as_str(), Item::Table(Table::new()));
    }
    let section = tools.get_mut(tool.as_str())?.as_table_like_mut()?;
    if section.get("digest").and_then(Item::as_str) != Some(digest) {
        section.insert("digest", Item::Value(Value::from(digest)));
    }
    Some(document.to_string())
}

fn show(path: &Path, old: &str, new: &str, out: &Out) {
    let name = path.display().to_string();
    let diff = TextDiff::from_lines(old, new);
    let diff = diff.unified_diff().context_radius(3).header(&name, &name).to_string();
    for line in diff.lines() {
        let style = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") => Some(Style::Bold),
            Some(b'+') => Some(Style::Green),
            Some(b'-') => Some(Style::Red),
            Some(b'@') => Some(Style::Cyan),
            _ => None,
        };
        let line = Shown::multiline(line).to_string();
        match style {
            Some(style) => out.line(out.paint(style, line)),
            None => out.line(line),
        }
    }
}

/// Puts the new text in place at once: a reader sees the old file or the new one.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    // Through a link, so that a linked file stays linked.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let write = || -> std::io::Result<()> {
        let directory = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        create_private(&directory)?;
        let mut file = tempfile::NamedTempFile::new_in(&directory)?;
        file.write_all(text.as_bytes())?;
        if let Ok(metadata) = fs::metadata(&path) {
            file.as_file().set_permissions(metadata.permissions())?;
        }
        file.as_file().sync_all()?;
        file.persist(&path).map(drop).map_err(|error| error.error)
    };
    write().map_err(|error| Failure::new(format!("failed to write `{}`: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_from_their_short_form() {
        let workspace = mount("/workspace:read-write").unwrap();
        assert_eq!((workspace.host, workspace.access), (None, Access::ReadWrite));
        let data = mount("/data:/srv/data:read").unwrap();
        assert_eq!(data.guest.as_str(), "/data");
        assert_eq!(data.host.as_deref(), Some(Path::new("/srv/data")));
        for bad in ["/data:read", "workspace:read", "/workspace", "/workspace:rw", ":read"] {
            assert!(mount(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tools_and_limits_are_read_from_their_short_form() {
        assert_eq!(tool("file_write=ask").unwrap().1, Permission::Ask);
        assert_eq!(tool("file_write").unwrap().1, Permission::Allow);
        assert!(tool("file_write=yes").is_err());
        let mut limits = LimitsRequest::default();
        limit("steps=5_0", &mut limits).unwrap();
        assert_eq!(limits.steps, Some(50));
        for bad in ["steps", "steps=-1", "steps=0", "step=4", "=4"] {
            assert!(limit(bad, &mut limits).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pin_is_added_once_and_keeps_the_rest() {
        let tool = ToolName::new("word_count").unwrap();
        let text = "# mine\n[tools.word_count] # note\nconfig = { a = \"b\" }\n";
        let once = with_digest(text, &tool, "sha256:00").unwrap();
        assert!(once.contains("# mine") && once.contains("# note") && once.contains("a = \"b\""));
        assert!(once.contains("digest = \"sha256:00\""));
        assert_eq!(with_digest(&once, &tool, "sha256:00").unwrap(), once);
    }
}
