//! Parses the rights that the options of `grant` name.

use belljar_definition::{GrantChange, MountSpec};
use belljar_policy::{
    CallPermission, GuestPath, HostRule, LIMITS, LimitsRequest, MountAccess, SecretName, ShownText,
    ToolName,
};

use crate::args::grants::GrantArgs;
use crate::setup::exit::Failure;

/// The limits without which an agent cannot even begin, so that they may not be 0.
const NEEDED: &[&str] = &["steps", "tokens", "timeout_seconds", "prefill_timeout_seconds"];

/// The change of a grant that the options describe.
pub(super) fn parse_change(args: &GrantArgs) -> Result<GrantChange, Failure> {
    let mut change = GrantChange::default();
    for text in &args.tool {
        change.tools.push(parse_tool(text)?);
    }
    for text in &args.host {
        change.hosts.push(text.parse::<HostRule>().map_err(usage_failure)?);
    }
    for text in &args.mount {
        change.mounts.push(parse_mount(text)?);
    }
    for text in &args.secret {
        change.secrets.push(SecretName::new(text).map_err(usage_failure)?);
    }
    for text in &args.limit {
        parse_limit(text, &mut change.limits)?;
    }
    Ok(change)
}

pub(super) fn usage_failure(error: impl std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

/// Parses `name`, `name=allow`, `name=ask` or `name=deny`.
pub(super) fn parse_tool(text: &str) -> Result<(ToolName, CallPermission), Failure> {
    let (name, word) = text.split_once('=').unwrap_or((text, "allow"));
    let permission = match word {
        "allow" => CallPermission::Allow,
        "ask" => CallPermission::Ask,
        "deny" => CallPermission::Deny,
        other => {
            return Err(Failure::usage(format!(
                "`{}` is not a permission",
                ShownText::clip_line(other, 80)
            ))
            .with_hint("write `allow`, `ask` or `deny`"));
        }
    };
    Ok((ToolName::new(name).map_err(usage_failure)?, permission))
}

/// Parses `/guest:access` or `/guest:/host:access`.
pub(super) fn parse_mount(text: &str) -> Result<MountSpec, Failure> {
    let wrong = || {
        Failure::usage(format!("`{}` is not a mount", ShownText::clip_line(text, 200)))
            .with_hint("write `/workspace:ACCESS` or `/data:/srv/data:ACCESS`")
            .with_hint("ACCESS is `read`, `overlay` or `read-write`")
    };
    let (rest, access) = text.rsplit_once(':').ok_or_else(wrong)?;
    let access = match access {
        "read" => MountAccess::Read,
        "overlay" => MountAccess::Overlay,
        "read-write" => MountAccess::ReadWrite,
        _ => return Err(wrong()),
    };
    let (guest, host) = match rest.split_once(':') {
        Some((guest, host)) => {
            let host = std::path::absolute(host).map_err(|_| wrong())?;
            (guest, Some(host))
        }
        None => (rest, None),
    };
    let guest = GuestPath::new(guest).map_err(usage_failure)?;
    if host.is_none() && guest != GuestPath::workspace() {
        return Err(Failure::usage(format!("mount `{guest}` names no directory of this machine"))
            .with_hint(format!("write `{guest}:/path/to/directory:{access}`")));
    }
    Ok(MountSpec { guest, host, access })
}

/// Parses `key=N`; the digits may have `_` between them.
fn parse_limit(text: &str, limits: &mut LimitsRequest) -> Result<(), Failure> {
    let shown = ShownText::clip_line(text, 80).to_string();
    let (key, number) = text.split_once('=').ok_or_else(|| {
        Failure::usage(format!("`{shown}` is not a limit")).with_hint("write `steps=50`")
    })?;
    let number: u64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| Failure::usage(format!("`{shown}`: the value is not a whole number")))?;
    if number == 0 && NEEDED.contains(&key) {
        return Err(Failure::usage(format!("`{shown}`: no agent can run with that"))
            .with_hint("to take an agent its tools, use `--tool NAME=deny`"));
    }
    if limits.set(key, number) {
        return Ok(());
    }
    let keys: Vec<&str> = LIMITS.iter().map(|row| row.key).collect();
    Err(Failure::usage(format!("there is no limit `{}`", ShownText::clip_line(key, 80)))
        .with_hint(format!("the limits are {}", keys.join(", "))))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn mounts_are_read_from_their_short_form() {
        let workspace = parse_mount("/workspace:read-write").unwrap();
        assert_eq!((workspace.host, workspace.access), (None, MountAccess::ReadWrite));
        let data = parse_mount("/data:/srv/data:read").unwrap();
        assert_eq!(data.guest.as_str(), "/data");
        assert_eq!(data.host.as_deref(), Some(Path::new("/srv/data")));
        let bad = ["/data:read", "workspace:read", "/workspace", "/workspace:rw", ":read"];
        assert!(bad.iter().all(|bad| parse_mount(bad).is_err()));
        assert_eq!(parse_mount("/workspace:overlay").unwrap().access, MountAccess::Overlay);
    }

    #[test]
    fn tools_and_limits_are_read_from_their_short_form() {
        assert_eq!(parse_tool("file_write=ask").unwrap().1, CallPermission::Ask);
        assert_eq!(parse_tool("file_write").unwrap().1, CallPermission::Allow);
        assert!(parse_tool("file_write=yes").is_err());
        let mut limits = LimitsRequest::default();
        parse_limit("steps=5_0", &mut limits).unwrap();
        assert_eq!(limits.steps, Some(50));
        for bad in ["steps", "steps=-1", "steps=0", "step=4", "=4"] {
            assert!(parse_limit(bad, &mut limits).is_err(), "{bad}");
        }
    }
}
