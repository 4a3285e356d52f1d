//! The `belljar grant` command that would grant the missing rights, as a person types it.

use std::fmt::Write as _;
use std::path::Path;

use belljar_policy::CallPermission;

use super::{GrantChange, HOST_PLACEHOLDER};
use crate::AgentId;

/// The command that grants `change` to `id`. With `asked`, belljar reads the requests from the agent's own
/// file, and the command names only directories that belljar cannot know; otherwise it names every right.
pub fn grant_command(id: &AgentId, change: &GrantChange, asked: bool) -> String {
    let mut command = format!("belljar grant {}", shell_word(&id.grant_key()));
    if asked {
        command.push_str(" --asked");
    }
    let mut option = |name: &str, value: &str| {
        // Writing to a `String` cannot fail.
        let _ = write!(command, " {name} {}", shell_word(value));
    };
    if !asked {
        for (tool, permission) in &change.tools {
            match permission {
                CallPermission::Allow => option("--tool", tool.as_str()),
                CallPermission::Ask => option("--tool", &format!("{tool}=ask")),
                CallPermission::Deny => option("--tool", &format!("{tool}=deny")),
            }
        }
        change.hosts.iter().for_each(|rule| option("--host", &rule.to_string()));
        change.secrets.iter().for_each(|secret| option("--secret", secret.as_str()));
    }
    for mount in &change.mounts {
        if !asked || is_unknown(mount.host.as_deref()) {
            let host = mount.host.as_ref().map(|host| format!(":{}", host.display()));
            let host = host.unwrap_or_default();
            option("--mount", &format!("{}{host}:{}", mount.guest, mount.access));
        }
    }
    command
}

/// A command for a tenant's home, if not the operator's own, below a data root, if not the configured one.
pub fn command_of(command: &str, tenant: Option<&str>, data: Option<&Path>) -> String {
    let mut command = command.to_owned();
    let data = data.map(Path::to_string_lossy);
    for (name, value) in [("--tenant", tenant), ("--data", data.as_deref())] {
        if let Some(value) = value {
            // Writing to a `String` cannot fail.
            let _ = write!(command, " {name} {}", shell_word(value));
        }
    }
    command
}

fn is_unknown(host: Option<&Path>) -> bool {
    host.is_some_and(|host| host == Path::new(HOST_PLACEHOLDER))
}

/// A word quoted for a shell: `a;b` becomes `'a;b'`.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.:=,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MountSpec;
    use belljar_policy::{GuestPath, MountAccess, ToolName};

    fn mount(guest: &str, host: Option<&str>) -> MountSpec {
        let guest = GuestPath::new(guest).unwrap();
        MountSpec { guest, host: host.map(Into::into), access: MountAccess::ReadWrite }
    }

    #[test]
    fn the_command_names_each_right_or_leaves_them_to_what_is_asked() {
        let change = GrantChange {
            tools: vec![(ToolName::new("shell").unwrap(), CallPermission::Allow)],
            mounts: vec![mount("/workspace", None), mount("/data", Some(HOST_PLACEHOLDER))],
            hosts: vec!["https://*.example".parse().unwrap()],
            ..GrantChange::default()
        };
        let scout: AgentId = "scout".parse().unwrap();
        assert_eq!(
            grant_command(&scout, &change, true),
            "belljar grant scout --asked --mount /data:/path/to/directory:read-write"
        );
        assert_eq!(
            grant_command(&scout, &change, false),
            "belljar grant scout --tool shell --host 'https://*.example' --mount \
             /workspace:read-write --mount /data:/path/to/directory:read-write"
        );
    }

    #[test]
    fn a_path_with_signs_of_the_shell_stays_one_shell_word() {
        let id: AgentId = "workspace:/a b/$(x)'s/scout".parse().unwrap();
        assert_eq!(
            grant_command(&id, &GrantChange::default(), true),
            r"belljar grant 'workspace:/a b/$(x)'\''s/scout' --asked"
        );
    }

    #[test]
    fn a_command_is_about_the_home_that_it_names() {
        let of = |tenant, data: Option<&str>| command_of("belljar x", tenant, data.map(Path::new));
        assert_eq!(of(None, None), "belljar x");
        assert_eq!(of(Some("red"), None), "belljar x --tenant red");
        assert_eq!(of(Some("red"), Some("/a b")), "belljar x --tenant red --data '/a b'");
    }
}
