//! MCP servers that are commands: what the broker is told of them, and what one is bound to.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use belljar_definition::{KeySetting, McpProgram, McpValue, Settings};
use belljar_os_sandbox::{Environment, Known, Program};
use belljar_policy::ShownPath as _;
use belljar_sandbox::Digest;
use secrecy::{ExposeSecret as _, SecretString};

use crate::setup::home::Places;

/// Reads the value of a secret; the error says why it cannot be had.
pub(crate) type Values<'a> = dyn Fn(&KeySetting) -> Result<SecretString, String> + 'a;

/// Bytes of one file that is digested: interpreters have a hundred and more MiB.
const MAX_FILE: u64 = 1 << 30;

/// Seconds after which a file's times tell changes apart, whatever its file system counts in.
const SETTLED_SECONDS: i64 = 3;

/// Digests that are kept: two files for each of many servers.
const MAX_KEPT: usize = 256;

/// The programs of the settings. One whose environment cannot be had, or that would reach what is
/// belljar's own, has the reason in place of its environment, and is never started.
pub(crate) fn known(settings: &Settings, places: &Places, values: &Values<'_>) -> Vec<Known> {
    let known = |(name, setting): (&String, &McpProgram)| Known {
        program: belljar_catalogue::program(name, setting),
        environment: outside_of_home(setting, places)
            .and_then(|()| environment(setting, settings, values)),
    };
    settings.mcp_programs.iter().map(known).collect()
}

/// INV-323: no program reads or writes what decides about agents, nor their sessions and keys.
fn outside_of_home(setting: &McpProgram, places: &Places) -> Result<(), String> {
    let found = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let own = [&places.home, &places.cache].map(|path| found(path));
    for directory in setting.read.iter().chain(&setting.write) {
        let place = found(directory);
        if own.iter().any(|own| own.starts_with(&place) || place.starts_with(own)) {
            return Err(format!(
                "`{}` of its directories holds, or is in, what is belljar's own",
                directory.shown()
            ));
        }
    }
    Ok(())
}

fn environment(
    setting: &McpProgram,
    settings: &Settings,
    values: &Values<'_>,
) -> Result<Environment, String> {
    let mut environment = BTreeMap::new();
    for (name, value) in &setting.environment {
        let value = match value {
            McpValue::Text(text) => text.clone(),
            McpValue::Secret(secret) => {
                let setting = settings.secrets.get(secret);
                let setting = setting.ok_or_else(|| format!("secret `{secret}` is not defined"))?;
                let value = values(&setting.value);
                let value = value.map_err(|why| format!("secret `{secret}`: {why}"))?;
                value.expose_secret().to_owned()
            }
        };
        if value.contains('\0') {
            return Err(format!("the value of `{name}` has a null character"));
        }
        environment.insert(name.clone(), value);
    }
    Ok(Environment(environment))
}

/// Digests of files that were read before and are as they were then: interpreters are large.
#[derive(Default)]
pub(crate) struct Digests(Mutex<BTreeMap<Stamp, Digest>>);

/// A file as the system knows it. Whoever writes to it changes the last, which nobody can set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Digests {
    /// INV-320: a digest of the command line, of the file that is started, and of every file that an
    /// argument names by its whole path: the script of an interpreter.
    pub(crate) fn identify(&self, program: &Program) -> Result<String, String> {
        let file = self.of_file(&program.path)?;
        let mut all = vec![program.path.to_string_lossy().into_owned(), file.to_string()];
        for argument in &program.args {
            all.push(argument.clone());
            let path = Path::new(argument);
            if path.is_absolute() && path.is_file() {
                all.push(self.of_file(path)?.to_string());
            }
        }
        let all = serde_json::to_vec(&all).map_err(|error| error.to_string())?;
        Ok(Digest::of(&all).to_string())
    }

    fn of_file(&self, path: &Path) -> Result<Digest, String> {
        let failed = |error: std::io::Error| format!("failed to read `{}`: {error}", path.shown());
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(format!("`{}` is no file", path.shown()));
        }
        let stamp = Stamp::of(&about);
        let known = |stamp: &Stamp| self.kept().get(stamp).copied();
        if let Some(digest) = stamp.as_ref().and_then(known) {
            return Ok(digest);
        }
        let digest = Digest::of_file(file, MAX_FILE).map_err(failed)?;
        let mut kept = self.kept();
        if let Some(stamp) = stamp.filter(|stamp| stamp.is_settled() && kept.len() < MAX_KEPT) {
            kept.insert(stamp, digest);
        }
        Ok(digest)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<Stamp, Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stamp {
    #[cfg(unix)]
    fn of(about: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        Some(Self {
            file: (about.dev(), about.ino()),
            size: about.size(),
            written: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }

    #[cfg(not(unix))]
    fn of(_about: &std::fs::Metadata) -> Option<Self> {
        None
    }

    /// Whether the file was last changed so long ago that another change would have another time.
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
            Digests::default().identify(&Program {
                name: "s".to_owned(),
                path: file.clone(),
                args: args.iter().map(|arg| (*arg).to_owned()).collect(),
                read: BTreeSet::new(),
                write: BTreeSet::new(),
                network: false,
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
        std::fs::remove_file(&file).unwrap();
        assert!(of(&args).unwrap_err().contains("failed to read"));
    }

    #[test]
    fn a_program_that_would_reach_what_is_belljars_own_is_never_started() {
        let dir = tempfile::tempdir().unwrap();
        let [home, cache, workspace] = ["home", "cache", "work"].map(|name| dir.path().join(name));
        for made in [&home, &cache, &workspace] {
            std::fs::create_dir_all(made.join("deep")).unwrap();
        }
        let places = Places { home, cache, workspace: workspace.clone(), user_home: None };
        let known = |directory: &Path, access: &str| {
            let text = format!(
                "[mcp.s]\ncommand = '/bin/true'\ndirectories = {{ '{}' = '{access}' }}\n",
                directory.shown()
            );
            let settings = Settings::parse(Some((Path::new("belljar.toml"), &text)), None, None);
            let none = |_: &KeySetting| Err("none".to_owned());
            self::known(&settings.unwrap(), &places, &none).remove(0).environment
        };
        for access in ["read", "read-write"] {
            for own in [&places.home, &places.cache, &places.home.join("deep")] {
                assert!(known(own, access).unwrap_err().contains("belljar's own"), "{own:?}");
            }
            assert!(known(dir.path(), access).is_err(), "what holds it");
            assert!(known(Path::new("/"), access).is_err());
            assert_eq!(known(&workspace, access), Ok(Environment::default()), "the neighbour");
        }
    }
}
