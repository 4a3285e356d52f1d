//! Settings that a running server cannot apply: they are named, and the earlier ones are kept until a
//! restart.

use std::path::{Path, PathBuf};

use belljar_definition::{HookAction, HookSetting, ModelKind, ServerSetting, Settings};
use belljar_os_sandbox::WallReach;
use belljar_policy::{Mount, MountAccess, ShownPath as _};

use crate::setup::home::HomePaths;
use crate::setup::secrets;

/// Changes new settings of the operator to what this process can apply: a part that needs a restart stays as
/// it was, or becomes narrower. Returns a line for each such part. `began` = the settings at the start; `now`
/// = the settings in force; `reach` = the files that this process can open behind the OS sandbox, `None` =
/// any.
pub(crate) fn fit_settings(
    new: &mut Settings,
    began: &Settings,
    now: &Settings,
    places: &HomePaths,
    reach: Option<&WallReach>,
) -> Vec<String> {
    let mut late: Vec<String> = changed_server_keys(&new.server, &began.server);
    if new.require_os_sandbox != began.require_os_sandbox {
        late.push("`require_os_sandbox`".to_owned());
    }
    let reads = |path: &Path| reach.is_none_or(|reach| reach.can_read(path));
    if command_hooks(&new.hooks) != command_hooks(&began.hooks) {
        late.push("`[[hooks]]`, since one that is a command is another".to_owned());
        new.hooks = now.hooks.clone();
    } else if let Some(path) = hook_components(&new.hooks).into_iter().find(|path| !reads(path)) {
        late.push(format!("`[[hooks]]`, since `{}` {CLOSED}", path.to_shown()));
        new.hooks = now.hooks.clone();
    }
    for name in changed_programs(new, began) {
        late.push(format!(
            "`[mcp.{name}]`, a command that this process was not told of at its start"
        ));
        new.mcp_programs.remove(&name);
    }
    if let Some(path) = model_files(new, places).into_iter().find(|path| !reads(path)) {
        late.push(format!("`[models]` and `[roles]`, since `{}` {CLOSED}", path.to_shown()));
        new.models = now.models.clone();
        new.roles = now.roles.clone();
        new.small_models = now.small_models.clone();
    }
    for (name, secret) in &new.secrets {
        if let Some(path) = secrets::value_file(&secret.value, places).filter(|path| !reads(path)) {
            late.push(format!("`[secrets.{name}]`, since `{}` {CLOSED}", path.to_shown()));
        }
    }
    for path in [places.tools_directory(), places.mcp_directory(), places.libraries_directory()] {
        if path.is_dir() && !reads(&path) {
            late.push(format!("`{}`, which {CLOSED}", path.to_shown()));
        }
    }
    late.extend(narrow_mounts(new, &places.workspace, |mount| possible_access(mount, reach)));
    late
}

/// The end of a message about a file that the OS sandbox hides.
const CLOSED: &str = "is not what the OS sandbox let this process read when it started";

/// Reduces the access of each mount to `most`; returns a line for each changed mount.
pub(crate) fn narrow_mounts(
    settings: &mut Settings,
    workspace: &Path,
    most: impl Fn(&Mount) -> Option<MountAccess>,
) -> Vec<String> {
    let narrowed = settings.narrow_mounts(workspace, most);
    let line = |(section, Mount { guest, host, access }): (String, Mount)| {
        let host = host.to_shown();
        format!(
            "`{access}` of `{host}` at `{guest}` in `{section}`, which the OS sandbox does not let through"
        )
    };
    narrowed.into_iter().map(line).collect()
}

/// The most access of a tenant's mount: a server can read all of the tenant's own files.
pub(crate) fn most_of_tenant(mount: &Mount, reach: Option<&WallReach>) -> Option<MountAccess> {
    let writes = reach.is_none_or(|reach| reach.can_write(&mount.host));
    Some(if writes { MountAccess::ReadWrite } else { unwritable_access(mount) })
}

/// The access that is left of a mount that cannot be written; an overlay stays, because it does not write its
/// directory.
fn unwritable_access(mount: &Mount) -> MountAccess {
    if mount.access == MountAccess::Overlay { MountAccess::Overlay } else { MountAccess::Read }
}

/// The most access of the operator's mount that the OS sandbox allows. `reach` = the files that this process
/// can open, `None` = any.
pub(crate) fn possible_access(mount: &Mount, reach: Option<&WallReach>) -> Option<MountAccess> {
    match reach {
        None => Some(MountAccess::ReadWrite),
        Some(reach) if reach.can_write(&mount.host) => Some(MountAccess::ReadWrite),
        Some(reach) if reach.can_read(&mount.host) => Some(unwritable_access(mount)),
        Some(_) => None,
    }
}

/// The changed keys of `[server]` that are read only at the start. Limits of tenants are applied at once.
fn changed_server_keys(new: &ServerSetting, began: &ServerSetting) -> Vec<String> {
    let ServerSetting {
        listen,
        data,
        host_names,
        origins,
        jars,
        queue,
        tenant_turns: _,
        tenant_queue: _,
        tenant_tokens_per_day: _,
        tenant_fuel_per_day: _,
        tenant_storage_mib: _,
        requests_per_second,
        connections_per_address,
        failed_keys_per_minute,
        audit_days,
        finish_left_turns,
        otlp_endpoint,
        // Read again for each token.
        issuers: _,
    } = new;
    let keys = [
        ("listen", *listen == began.listen),
        ("data", *data == began.data),
        ("host_names", *host_names == began.host_names),
        ("origins", *origins == began.origins),
        ("jars", *jars == began.jars),
        ("queue", *queue == began.queue),
        ("requests_per_second", *requests_per_second == began.requests_per_second),
        ("connections_per_address", *connections_per_address == began.connections_per_address),
        ("failed_keys_per_minute", *failed_keys_per_minute == began.failed_keys_per_minute),
        ("audit_days", *audit_days == began.audit_days),
        ("finish_left_turns", *finish_left_turns == began.finish_left_turns),
        ("otlp_endpoint", *otlp_endpoint == began.otlp_endpoint),
    ];
    let other = keys.into_iter().filter(|(_, same)| !same);
    other.map(|(key, _)| format!("`{key}` of `[server]`")).collect()
}

/// The hooks that are commands; the broker got their list at the start.
fn command_hooks(hooks: &[HookSetting]) -> Vec<&HookSetting> {
    hooks.iter().filter(|hook| matches!(hook.action, HookAction::Command(_))).collect()
}

/// The MCP servers whose program differs from the broker's list.
fn changed_programs(new: &Settings, began: &Settings) -> Vec<String> {
    let others = new.mcp_programs.iter();
    let others = others.filter(|(name, program)| began.mcp_programs.get(*name) != Some(program));
    others.map(|(name, _)| name.clone()).collect()
}

/// The component files of hooks.
fn hook_components(hooks: &[HookSetting]) -> Vec<PathBuf> {
    let path = |hook: &HookSetting| match &hook.action {
        HookAction::Component { path, .. } => Some(path.clone()),
        HookAction::Command(_) => None,
    };
    hooks.iter().filter_map(path).collect()
}

/// Files of models that are read at their first use, for example keys.
fn model_files(settings: &Settings, places: &HomePaths) -> Vec<PathBuf> {
    let models = settings.models.values();
    let scripted = models.filter(|model| model.kind == ModelKind::Scripted);
    let scripts = scripted.map(|model| places.home.join(&model.model));
    secrets::key_files(settings, places).into_iter().chain(scripts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_os_sandbox::Wall;

    fn settings(text: &str) -> Settings {
        Settings::parse(Some((Path::new("belljar.toml"), text)), None, None).unwrap()
    }

    /// Makes the directories of a home, a cache and a workspace below `root`.
    fn places(root: &Path) -> HomePaths {
        let [home, cache, workspace] = ["home", "cache", "work"].map(|name| root.join(name));
        for made in [&home, &cache, &workspace] {
            std::fs::create_dir_all(made).unwrap();
        }
        HomePaths { home, cache, workspace, user_home: None }
    }

    const BEGAN: &str = "[server]\njars = 4\ntenant_turns = 2\n\
        [[hooks]]\nevent = 'PreToolUse'\ncommand = 'exit 0'\n\
        [models.main]\nkind = 'openai'\nmodel = 'a'\nbase_url = 'http://127.0.0.1:1/v1'\n";

    #[test]
    fn what_counts_at_a_start_alone_is_named_and_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        let began = settings(BEGAN);
        let fitted = |text: &str| {
            let mut new = settings(text);
            let late = fit_settings(&mut new, &began, &began, &places, None);
            (new, late)
        };
        assert_eq!(fitted(BEGAN), (began.clone(), Vec::new()));
        // What tenants may use, and models, are applied at once.
        let (new, late) = fitted(&BEGAN.replace("turns = 2", "turns = 9").replace("'a'", "'b'"));
        assert!(late.is_empty(), "{late:?}");
        assert_eq!((new.server.tenant_turns, new.models["main"].model.as_str()), (Some(9), "b"));
        let (new, late) =
            fitted(&BEGAN.replace("jars = 4", "jars = 5").replace("exit 0", "exit 1"));
        assert_eq!(late.len(), 2, "{late:?}");
        assert!(late[0].contains("jars") && late[1].contains("hooks"), "{late:?}");
        assert_eq!(new.hooks, began.hooks);
    }

    #[test]
    fn a_program_that_the_broker_was_not_told_of_is_no_server_until_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        let section =
            |name: &str, more: &str| format!("[mcp.{name}]\ncommand = '/bin/cat'\n{more}");
        let began = settings(&[section("a", ""), section("b", "")].concat());
        let fitted = |text: &str| {
            let mut new = settings(text);
            let late = fit_settings(&mut new, &began, &began, &places, None);
            (new.mcp_programs.into_keys().collect::<Vec<_>>(), late)
        };
        let both = ["a".to_owned(), "b".to_owned()];
        let (kept, late) = fitted(&[section("a", ""), section("b", "")].concat());
        assert_eq!((kept, late.len()), (both.to_vec(), 0));
        assert_eq!(fitted(&section("b", "")), (vec!["b".to_owned()], Vec::new()), "one is gone");
        for more in ["network = true\n", "args = ['x']\n", "env = { A = 'x' }\n"] {
            let (kept, late) = fitted(&[section("a", more), section("b", "")].concat());
            assert_eq!((kept, late.len()), (vec!["b".to_owned()], 1), "{more}");
            assert!(late[0].contains("[mcp.a]"), "{late:?}");
        }
        let (kept, _) = fitted(&[section("a", ""), section("new", "")].concat());
        assert_eq!(kept, ["a"]);
    }

    #[test]
    fn what_the_os_sandbox_does_not_let_through_is_taken_out_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let places = places(&root);
        for made in ["granted", "later"] {
            std::fs::create_dir(root.join(made)).unwrap();
        }
        let mut wall = Wall::default();
        wall.allow_read(&places.home);
        wall.allow_read(&places.workspace);
        wall.allow_write(&root.join("granted"));
        let reach = wall.present_reach();
        let mount = |at: &str, host: &str| {
            let host = root.join(host);
            format!("{{ path = '/{at}', host = '{}', access = 'read-write' }}", host.to_shown())
        };
        let text = format!(
            "[grants.scout]\ntools = ['file_read']\nmounts = [{}, {}, {}]\n\
             [models.main]\nkind = 'openai'\nmodel = 'a'\nkey_file = '/elsewhere/key'\n",
            mount("granted", "granted"),
            mount("later", "later"),
            mount("workspace", "work"),
        );
        let (mut new, began) = (settings(&text), Settings::default());
        let late = fit_settings(&mut new, &began, &began, &places, Some(&reach));
        assert_eq!(late.len(), 3, "{late:?}");
        assert!(late[0].contains("[models]") && new.models.is_empty(), "{late:?}");
        let mounts = new.possible_mounts(&places.workspace);
        let access = |path: &str| {
            let of = mounts.iter().filter(|mount| mount.guest.as_str() == path);
            of.map(|mount| mount.access).max()
        };
        assert_eq!(access("/granted"), Some(MountAccess::ReadWrite));
        assert_eq!((access("/later"), access("/workspace")), (None, Some(MountAccess::Overlay)));
        assert!(late[1].contains("[grants.\"home/scout\"]"), "{late:?}");
    }
}
