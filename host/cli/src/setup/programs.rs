//! MCP servers that are commands: the broker's list, and the rules for its entries.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use belljar_definition::{KeySetting, McpProgram, McpValue, Settings};
use belljar_os_sandbox::{KnownProgram, Program, ProgramEnvironment};
use belljar_policy::{MountAccess, ShownPath as _};
use belljar_sandbox::Digest;
use secrecy::{ExposeSecret as _, SecretString};

use crate::setup::bound::bind_secret;
use crate::setup::command_files::{CODE_VARIABLES, FileRole, NamedFile, find_named_files};
use crate::setup::home::HomePaths;

/// A function that reads the value of a secret; its error says why the value is unavailable.
pub(crate) type Values<'a> = dyn Fn(&KeySetting) -> Result<SecretString, String> + 'a;

/// Most bytes of a file whose digest is computed: some interpreters have over a hundred MiB.
const MAX_FILE: u64 = 1 << 30;

/// Seconds after which a second change of a file gets another time, in the time unit of any file system.
const SETTLED_SECONDS: i64 = 3;

/// Most digests in the cache: two files for each of many servers.
const MAX_KEPT: usize = 256;

/// Most links on the path to one file; the kernel follows as many.
const MAX_LINKS: usize = 40;

/// Directories of the system's own programs and libraries, which only an administrator writes.
const SYSTEM: &[&str] = &["/bin", "/gnu/store", "/lib", "/lib64", "/nix/store", "/sbin", "/usr"];

/// The programs of the settings. A program without a complete environment, with access to belljar's own
/// files, or writable by a program or an agent, has the reason in place of its environment, and is never
/// started. `data` is the command line's data root, if different from the settings; `written` are further
/// directories that this process may write for agents.
pub(crate) fn known_programs(
    settings: &Settings,
    places: &HomePaths,
    data: Option<&Path>,
    written: &[PathBuf],
    values: &Values<'_>,
) -> Vec<KnownProgram> {
    let own = [Some(&*places.home), Some(&*places.cache), settings.server.data.as_deref(), data];
    let own: Vec<PathBuf> = own.into_iter().flatten().map(resolve_links).collect();
    let installed = resolve_links(&places.libraries_directory());
    let written = WrittenDirectories::from_settings(settings, places, written);
    let known = |(name, setting): (&String, &McpProgram)| KnownProgram {
        program: belljar_catalogue::broker_program(name, setting),
        environment: outside_of_own(setting, &own, &installed)
            .and_then(|()| outside_of_written(name, setting, &written))
            .and_then(|()| make_environment(setting, settings, values)),
    };
    settings.mcp_programs.iter().map(known).collect()
}

/// Resolves links in a path; a missing path stays as it is.
fn resolve_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// INV-323: an error if the program may read or write belljar's own files: those that decide about agents,
/// sessions, or keys. The files of one installed plugin, a folder of `installed`, decide nothing and may be
/// read: `belljar plugins connect` names this folder for the plugin's server.
fn outside_of_own(setting: &McpProgram, own: &[PathBuf], installed: &Path) -> Result<(), String> {
    let read = setting.read.iter().filter(|directory| {
        let place = resolve_links(directory);
        place.parent() != Some(installed) || !place.is_dir()
    });
    for directory in read.chain(&setting.write) {
        let place = resolve_links(directory);
        if own.iter().any(|own| own.starts_with(&place) || place.starts_with(own)) {
            return Err(format!(
                "`{}` of its directories holds, or is in, what is belljar's own",
                directory.to_shown()
            ));
        }
    }
    Ok(())
}

/// Directories, with links resolved, that programs or agents may write while programs are started.
struct WrittenDirectories {
    by_programs: Vec<PathBuf>,
    by_agents: Vec<PathBuf>,
}

impl WrittenDirectories {
    /// Collects the directories that the settings let programs and agents write. `more` = further directories
    /// that agents may write.
    fn from_settings(settings: &Settings, places: &HomePaths, more: &[PathBuf]) -> Self {
        let programs = settings.mcp_programs.values().flat_map(|program| &program.write);
        let mounts = settings.possible_mounts(&places.workspace).into_iter();
        let mounts = mounts.filter(|mount| mount.access == MountAccess::ReadWrite);
        let mounts = mounts.map(|mount| mount.host);
        let agents = mounts.chain(more.iter().cloned());
        Self {
            by_programs: programs.map(|path| resolve_links(path)).collect(),
            by_agents: agents.map(|path| resolve_links(&path)).collect(),
        }
    }

    /// The writable directory that contains `place`, and a word for its writer.
    fn find_around(&self, place: &Path) -> Option<(&Path, &'static str)> {
        let holds = |directory: &&PathBuf| place.starts_with(directory);
        let program = self.by_programs.iter().find(holds).map(|it| (&**it, "an MCP server"));
        program.or_else(|| self.by_agents.iter().find(holds).map(|it| (&**it, "an agent")))
    }
}

/// INV-320, INV-431: an error if a program or an agent may write an accepted file of this program, because
/// there is a moment between the digest of a file and its start. A private copy would close that gap too, but
/// scripts that find their neighbours by their own path would break.
///
/// INV-493: the rule covers every executed or imported file, by place or content; an ambiguous file is
/// refused as well, until the operator declares it as data.
fn outside_of_written(
    name: &str,
    setting: &McpProgram,
    written: &WrittenDirectories,
) -> Result<(), String> {
    let command =
        NamedFile { path: setting.command.clone(), role: FileRole::Program, is_file: true };
    let of_args =
        find_named_files(&setting.command, &setting.args, &setting.data).into_iter().flatten();
    let of_args = of_args.filter(|named| named.role != FileRole::Data);
    for NamedFile { path, role, .. } in std::iter::once(command).chain(of_args) {
        // A person who can write the link's directory could redirect the link.
        let places = lookup_places(&Path::new("/").join(&path));
        if let Some((directory, who)) = places.iter().find_map(|place| written.find_around(place)) {
            let (file, directory) = (path.to_shown(), directory.to_shown());
            let lies = format!(
                "`{file}` of its command line lies in `{directory}`, which {who} may write"
            );
            return Err(match role {
                FileRole::Unsure => format!(
                    "{lies}, and may be code: if it is never executed, say so by `data = [\"{file}\"]` \
                     under `[mcp.{name}]`, else keep it where none may"
                ),
                FileRole::Program | FileRole::Data => format!("{lies}: keep it where none may"),
            });
        }
    }
    for (variable, path) in code_of_variables(setting) {
        let places = lookup_places(&path);
        if let Some((directory, who)) = places.iter().find_map(|place| written.find_around(place)) {
            return Err(format!(
                "`{}` of its variable `{variable}` lies in `{}`, which {who} may write, and code is loaded \
                 from there: keep it where none may",
                path.to_shown(),
                directory.to_shown()
            ));
        }
    }
    Ok(())
}

/// The files and directories from which the program's runtime loads code, by the program's environment
/// variables.
fn code_of_variables(setting: &McpProgram) -> Vec<(&str, PathBuf)> {
    let of_code = setting.environment.iter().filter_map(|(name, value)| match value {
        McpValue::Text(text) if CODE_VARIABLES.contains(&name.as_str()) => {
            Some((name.as_str(), text.as_str()))
        }
        McpValue::Text(_) | McpValue::Secret(_) => None,
    });
    let paths = of_code.flat_map(|(name, text)| {
        let pieces = text.split([':', '=', ' ', ',', ';']);
        pieces.filter(|piece| piece.starts_with('/')).map(move |piece| (name, PathBuf::from(piece)))
    });
    paths.collect()
}

/// Each path at which the kernel looks up a name on the way to this file, and the file itself. Whoever can
/// write one of them decides which file is found.
fn lookup_places(path: &Path) -> Vec<PathBuf> {
    let mut rest: VecDeque<OsString> = path.components().filter_map(component_name).collect();
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    let mut places = Vec::new();
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        places.push(next.clone());
        match next.read_link() {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                let parts: Vec<OsString> = target.components().filter_map(component_name).collect();
                parts.into_iter().rev().for_each(|part| rest.push_front(part));
            }
            Ok(_) | Err(_) => at = next,
        }
    }
    places
}

/// The name in a part of a path; `None` for the root and for `.`.
fn component_name(part: Component<'_>) -> Option<OsString> {
    match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    }
}

/// Makes the environment of a program from its setting, with the values of its secrets.
fn make_environment(
    setting: &McpProgram,
    settings: &Settings,
    values: &Values<'_>,
) -> Result<ProgramEnvironment, String> {
    let mut environment = BTreeMap::new();
    for (name, value) in &setting.environment {
        let value = match value {
            McpValue::Text(text) => text.clone(),
            McpValue::Secret(secret) => {
                let setting = settings.secrets.get(secret);
                let setting = setting.ok_or_else(|| format!("secret `{secret}` is not defined"))?;
                // INV-325: a value that could not be found in outputs is not given to any program.
                let value = values(&setting.value).and_then(|value| {
                    bind_secret(setting, &value)?;
                    Ok(value)
                });
                let value = value.map_err(|why| format!("secret `{secret}`: {why}"))?;
                value.expose_secret().to_owned()
            }
        };
        if value.contains('\0') {
            return Err(format!("the value of `{name}` has a null character"));
        }
        environment.insert(name.clone(), value);
    }
    Ok(ProgramEnvironment(environment))
}

/// Cached digests of unchanged system files, because interpreters are large. All other files are read each
/// time, because a writer through a mapped page can leave a file's times unchanged.
#[derive(Default)]
pub(crate) struct FileDigests(Mutex<BTreeMap<FileIdentity, Digest>>);

/// What distinguishes a file from another version of it. A new version has another `changed`, a time that no
/// program can set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FileIdentity {
    file: (u64, u64),
    size: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl FileDigests {
    /// INV-320: a digest of the command line, the started file, and every file named in an argument, by a
    /// whole path or from `/` on, unless declared as data; for example the script of an interpreter.
    pub(crate) fn identify_program(&self, program: &Program) -> Result<String, String> {
        let file = self.digest_file(&program.path)?;
        let mut all = vec![program.path.to_string_lossy().into_owned(), file.to_string()];
        let files = find_named_files(&program.path, &program.args, &program.data);
        for (argument, named) in program.args.iter().zip(files) {
            all.push(argument.clone());
            if let Some(named) = named.filter(|named| named.is_file && named.role != FileRole::Data)
            {
                all.push(self.digest_file(&named.path)?.to_string());
            }
        }
        let all = serde_json::to_vec(&all).map_err(|error| error.to_string())?;
        Ok(Digest::hash_bytes(&all).to_string())
    }

    /// The digest of a file's content; a system file's comes from the cache if the file is unchanged.
    fn digest_file(&self, path: &Path) -> Result<Digest, String> {
        let failed =
            |error: std::io::Error| format!("failed to read `{}`: {error}", path.to_shown());
        // Opened by its resolved path, so that only system files are cached.
        let place = path.canonicalize().map_err(failed)?;
        let file = File::open(&place).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(format!("`{}` is no file", path.to_shown()));
        }
        let is_of_system = SYSTEM.iter().any(|system| place.starts_with(system));
        let stamp = FileIdentity::from_metadata(&about).filter(|_| is_of_system);
        let known = |stamp: &FileIdentity| self.lock_cache().get(stamp).copied();
        if let Some(digest) = stamp.as_ref().and_then(known) {
            return Ok(digest);
        }
        let digest = Digest::hash_file(file, MAX_FILE).map_err(failed)?;
        let mut kept = self.lock_cache();
        if let Some(stamp) = stamp.filter(|stamp| stamp.is_settled() && kept.len() < MAX_KEPT) {
            kept.insert(stamp, digest);
        }
        Ok(digest)
    }

    fn lock_cache(&self) -> MutexGuard<'_, BTreeMap<FileIdentity, Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileIdentity {
    /// The identity of the file, from its metadata.
    #[cfg(unix)]
    fn from_metadata(about: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        Some(Self {
            file: (about.dev(), about.ino()),
            size: about.size(),
            written: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }

    #[cfg(not(unix))]
    fn from_metadata(_about: &std::fs::Metadata) -> Option<Self> {
        None
    }

    /// Returns whether the last change is so long ago that a further change would get another time.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.ok().and_then(|now| i64::try_from(now.as_secs()).ok());
        now.is_some_and(|now| self.changed.0.saturating_add(SETTLED_SECONDS) < now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_program_is_bound_to_its_command_line_its_file_and_its_script() {
        let dir = tempfile::tempdir().unwrap();
        let [file, script] = ["program", "script"].map(|name| dir.path().join(name));
        let write = |path: &Path, text: &str| std::fs::write(path, text).unwrap();
        write(&file, "one");
        write(&script, "one");
        let of = |args: &[&str]| {
            FileDigests::default().identify_program(&Program {
                name: "s".to_owned(),
                path: file.clone(),
                args: args.iter().map(|arg| (*arg).to_owned()).collect(),
                data: BTreeSet::new(),
                read: BTreeSet::new(),
                write: BTreeSet::new(),
                network: false,
                only_port: None,
                memory: 0,
                processes: 0,
            })
        };
        let args = [script.to_str().unwrap(), "/nowhere", "-v"];
        let before = of(&args).unwrap();
        assert_eq!(of(&args).unwrap(), before);
        assert_ne!(of(&args[..2]).unwrap(), before);
        for path in [&script, &file] {
            write(path, "two");
            assert_ne!(of(&args).unwrap(), before, "{path:?}");
            write(path, "one");
        }
        assert_eq!(of(&args).unwrap(), before);
        let relative = [args[0].trim_start_matches('/')];
        let before = of(&relative).unwrap();
        write(&script, "two");
        assert_ne!(of(&relative).unwrap(), before, "it is started in `/`");
        let database = dir.path().join("t.db");
        let data = ["--db", database.to_str().unwrap()];
        write(&database, "one");
        let before = of(&data).unwrap();
        write(&database, "two");
        assert_eq!(of(&data).unwrap(), before, "data changes as it likes");
        std::fs::remove_file(&file).unwrap();
        assert!(of(&args).unwrap_err().contains("failed to read"));
    }

    #[cfg(unix)]
    #[test]
    fn digests_are_kept_of_the_systems_own_files_alone() {
        let digests = FileDigests::default();
        for (path, kept) in [("/etc/passwd", 0), ("/bin/sh", 1)] {
            digests.digest_file(Path::new(path)).unwrap();
            assert_eq!(digests.lock_cache().len(), kept, "{path}");
        }
    }

    /// Makes the directories of a home, a cache and a workspace below `dir`.
    fn places(dir: &Path) -> HomePaths {
        let [home, cache, workspace] = ["home", "cache", "work"].map(|name| dir.join(name));
        for made in [&home, &cache, &workspace] {
            std::fs::create_dir_all(made.join("deep")).unwrap();
        }
        HomePaths { home, cache, workspace, user_home: None }
    }

    /// The environments that the programs of a `belljar.toml` would get, by the programs' names.
    fn environments(
        text: &str,
        dir: &Path,
        data: Option<&Path>,
        value: &str,
    ) -> Vec<Result<ProgramEnvironment, String>> {
        let settings = Settings::parse(Some((Path::new("belljar.toml"), text)), None, None);
        let values = |_: &KeySetting| Ok::<_, String>(SecretString::from(value));
        let known = known_programs(&settings.unwrap(), &places(dir), data, &[], &values);
        known.into_iter().map(|known| known.environment).collect()
    }

    #[test]
    fn a_program_that_would_reach_what_is_belljars_own_is_never_started() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for root in ["set/tenants", "named/tenants", "home/libraries/one/deep"] {
            std::fs::create_dir_all(at(root)).unwrap();
        }
        let (set, named) = (at("set"), at("named"));
        let known = |directory: &Path, access: &str| {
            let text = format!(
                "[server]\ndata = '{}'\n[mcp.s]\ncommand = '/bin/true'\n\
                 directories = {{ '{}' = '{access}' }}\n",
                set.to_shown(),
                directory.to_shown()
            );
            environments(&text, dir.path(), Some(&named), "").remove(0)
        };
        for access in ["read", "read-write"] {
            let roots = ["set", "set/tenants", "named", "named/tenants"];
            for own in ["home", "cache", "home/deep"].into_iter().chain(roots) {
                let why = known(&at(own), access).unwrap_err();
                assert!(why.contains("belljar's own"), "{own}: {why}");
            }
            assert!(known(&at("home/libraries"), access).is_err(), "all plugins, and their list");
            assert!(known(&at("home/libraries/one/deep"), access).is_err(), "a part of one");
            assert!(known(dir.path(), access).is_err(), "what holds it");
            assert!(known(Path::new("/"), access).is_err());
            assert_eq!(
                known(&at("work"), access),
                Ok(ProgramEnvironment::default()),
                "the neighbour"
            );
        }
        let plugin = at("home/libraries/one");
        assert_eq!(known(&plugin, "read"), Ok(ProgramEnvironment::default()), "a plugin's folder");
        assert!(known(&plugin, "read-write").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_a_program_may_write_is_never_started() {
        let dir = tempfile::tempdir().unwrap();
        let [written, apart] = ["written", "apart"].map(|name| dir.path().join(name));
        for made in [&written, &apart] {
            std::fs::create_dir_all(made).unwrap();
            std::fs::write(made.join("server.py"), "").unwrap();
        }
        std::os::unix::fs::symlink(apart.join("server.py"), written.join("link.py")).unwrap();
        let [written, apart] = [&written, &apart].map(|path| path.to_str().unwrap());
        let second = |command: &str, argument: &str| {
            let text = format!(
                "[mcp.first]\ncommand = '/bin/true'\nargs = ['{written}']\n\
                 directories = {{ '{written}' = 'read-write' }}\n\
                 [mcp.second]\ncommand = '{command}'\nargs = ['-v', '{argument}']\n"
            );
            let mut both = environments(&text, dir.path(), None, "");
            assert_eq!(both[0], Ok(ProgramEnvironment::default()), "a directory is no script");
            both.remove(1)
        };
        let script = format!("{written}/server.py");
        for (command, argument) in [
            (&*script, "-q"),
            ("/bin/true", &*script),
            ("/bin/true", script.trim_start_matches('/')),
            ("/bin/true", &*format!("{written}/link.py")),
        ] {
            let why = second(command, argument).unwrap_err();
            assert!(why.contains("which an MCP server may write"), "{command} {argument}: {why}");
        }
        let neighbour = second("/bin/true", &format!("{apart}/server.py"));
        assert_eq!(neighbour, Ok(ProgramEnvironment::default()));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_an_agent_may_write_is_never_started() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        for made in ["work", "work/tools", "work/way", "apart"] {
            std::fs::create_dir_all(at(made)).unwrap();
            std::fs::write(at(&format!("{made}/server.py")), "").unwrap();
        }
        symlink(at("apart"), at("work/folder")).unwrap();
        symlink(at("work/way/link.py"), at("apart/over.py")).unwrap();
        symlink(at("apart/server.py"), at("work/way/link.py")).unwrap();
        let started = |access: &str, section: &str, script: &str| {
            let text = format!(
                "[mcp.s]\ncommand = '/bin/sh'\nargs = ['{}']\n[{section}]\n\
                 mounts = [{{ path = '/workspace', access = '{access}' }}]\n",
                at(script)
            );
            environments(&text, dir.path(), None, "").remove(0)
        };
        let scripts =
            ["work/server.py", "work/tools/server.py", "work/folder/server.py", "apart/over.py"];
        for section in ["grants.scout", "defaults.user-facing"] {
            for script in scripts {
                let why = started("read-write", section, script).unwrap_err();
                assert!(why.contains("which an agent may write"), "{section} {script}: {why}");
                let neighbour = started("read", section, script);
                assert_eq!(neighbour, Ok(ProgramEnvironment::default()), "{section} {script}");
            }
            let apart = started("read-write", section, "apart/server.py");
            assert_eq!(apart, Ok(ProgramEnvironment::default()), "{section}");
        }
    }

    /// INV-493: a file that may be code must not be writable; a file declared as data may be.
    #[cfg(unix)]
    #[test]
    fn data_where_it_is_written_is_no_program_and_what_may_be_code_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir_all(at("db/lib")).unwrap();
        for name in ["db/t.db", "db/x.json", "db/hook.js", "db/plain"] {
            std::fs::write(at(name), "").unwrap();
        }
        let started = |command: &str, more: &str, args: &[&str]| {
            let args: Vec<String> =
                args.iter().map(|arg| format!("'{}'", arg.replace('@', &at("db")))).collect();
            let text = format!(
                "[mcp.s]\ncommand = '{command}'\nargs = [{}]\n\
                 directories = {{ '{}' = 'read-write' }}\n{}\n",
                args.join(", "),
                at("db"),
                more.replace('@', &at("db")),
            );
            environments(&text, dir.path(), None, "").remove(0)
        };
        for args in [
            &["--db-path", "@/t.db"][..],
            &["--db-path=@/t.db"],
            &["@"],
            &["--db-path", "@/new.db"],
        ] {
            assert_eq!(
                started("/bin/true", "", args),
                Ok(ProgramEnvironment::default()),
                "{args:?}"
            );
        }
        let declared = "data = ['@/x.json', '@/hook.js', '@/plain', '@/lib']";
        let why = started("/bin/true", "", &["--config", "@/x.json"]).unwrap_err();
        assert!(why.contains("data = [") && why.contains("[mcp.s]"), "{why}");
        let config = started("/bin/true", declared, &["--config", "@/x.json"]);
        assert_eq!(config, Ok(ProgramEnvironment::default()));
        for (command, args) in [
            ("/bin/true", &["--load=@/hook.js"][..]),
            ("/bin/sh", &["@/plain"]),
            ("/bin/sh", &["@/t.db"]),
            ("/usr/bin/env", &["python3", "@/plain"]),
            ("/usr/bin/env", &["python3", "@/lib"]),
        ] {
            let why = started(command, declared, args).unwrap_err();
            assert!(why.contains("keep it where none may") && !why.contains("data ="), "{why}");
        }
        for variable in ["PYTHONPATH = '/usr/lib:@/lib'", "NODE_OPTIONS = '--require=@/hook.js'"] {
            let why = started("/bin/true", &format!("env = {{ {variable} }}"), &[]).unwrap_err();
            assert!(why.contains("code is loaded"), "{why}");
        }
        let other = started("/bin/true", "env = { DB = '@/t.db' }", &[]);
        assert!(other.is_ok(), "the neighbour");
    }

    #[test]
    fn a_secret_that_is_too_short_to_be_searched_for_is_given_to_no_program() {
        let dir = tempfile::tempdir().unwrap();
        let text = "[secrets.key]\nhost = 'https://a.test'\nheader = 'x-key'\nenv = 'KEY'\n\
                    [mcp.s]\ncommand = '/bin/true'\nenv = { API_KEY = { secret = 'key' } }\n";
        let with = |value: &str| environments(text, dir.path(), None, value).remove(0);
        let why = with("seven-7").unwrap_err();
        assert!(why.contains("secret `key`") && why.contains("less than 8 bytes"), "{why}");
        assert!(!why.contains("seven-7"), "{why}");
        let given = BTreeMap::from([("API_KEY".to_owned(), "eight-88".to_owned())]);
        assert_eq!(with("eight-88"), Ok(ProgramEnvironment(given)));
    }
}
