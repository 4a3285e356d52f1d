//! The files and directories in a command line, sorted into programs and data.
//!
//! ```text
//! argument ──> path behind it (whole, behind `=`, behind `-I`) ──> by its place: what an interpreter runs or loads
//!                                                             ──> by its looks: code, or a kind of data
//!                                                             ──> by the operator's word (`data`)
//! ```
//!
//! Every file that could be executed or imported counts as a program, even if the settings declare it as
//! data. Only if neither the argument's place nor the file's content decides, the declaration counts.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The role of a file or directory in a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileRole {
    /// Executed or imported, or similar to such a file.
    Program,
    /// Neither the argument's place nor the content decides, and the operator has not declared the file as
    /// data.
    Unsure,
    /// Read and written, and never executed.
    Data,
}

/// A file or directory that an argument of a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedFile {
    /// The path as written in the argument. Programs are started in `/`.
    pub(crate) path: PathBuf,
    pub(crate) role: FileRole,
    /// True for a file, false for a directory.
    pub(crate) is_file: bool,
}

/// Programs that run the file in their first argument that is no option, for example `python`.
const INTERPRETERS: &[&str] = &[
    "ash", "awk", "bash", "bun", "busybox", "dash", "deno", "dotnet", "elixir", "fish", "gawk",
    "guile", "groovy", "java", "jruby", "julia", "ksh", "lua", "luajit", "make", "mono", "node",
    "nodejs", "perl", "php", "pwsh", "pypy", "python", "racket", "rscript", "ruby", "sh", "tclsh",
    "ts-node", "tsx", "zsh",
];

/// Programs that start the program named in their arguments, for example `env`.
const STARTERS: &[&str] = &[
    "bunx", "chrt", "env", "ionice", "nice", "nohup", "npm", "npx", "pipx", "pnpm", "poetry",
    "setsid", "stdbuf", "taskset", "time", "timeout", "uv", "uvx", "xargs", "yarn",
];

/// Options of interpreters that contain the code or the module to run, so that no script follows, for example
/// `-c`.
const INSTEAD: &[&str] = &["--eval", "--print", "-E", "-c", "-e", "-m", "-p"];

/// Options of interpreters whose value may be a file that is loaded first.
const LOADED_FIRST: &[&str] = &[
    "--class-path",
    "--conditions",
    "--env-file",
    "--experimental-loader",
    "--import",
    "--loader",
    "--module-path",
    "--preload",
    "--require",
    "-C",
    "-I",
    "-W",
    "-X",
    "-classpath",
    "-cp",
    "-f",
    "-jar",
    "-l",
    "-r",
];

/// File endings that are code for some program, for example `.js`.
const CODE: &[&str] = &[
    "awk", "bash", "bat", "beam", "bin", "cjs", "class", "cmd", "cts", "dll", "dylib", "egg", "ex",
    "exe", "exs", "fish", "groovy", "jar", "jl", "js", "jsx", "kts", "lua", "mjs", "mts", "node",
    "php", "pl", "pm", "ps1", "pth", "py", "pyc", "pyd", "pyw", "pyz", "r", "rb", "scm", "sh",
    "so", "tcl", "ts", "tsx", "war", "wasm", "whl", "zsh",
];

/// File endings that are data for every program, for example `.csv`.
const DATA: &[&str] = &[
    "csv", "db", "db3", "duckdb", "jsonl", "kdbx", "log", "md", "ndjson", "parquet", "pdf", "s3db",
    "sqlite", "sqlite3", "tsv", "txt",
];

/// The first bytes of files that are executed, or loaded as code.
const MAGIC: &[&[u8]] =
    &[b"#!", b"\x7fELF", b"\0asm", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"];

/// Environment variables that name code for a runtime, or directories with code, for example `PYTHONPATH`.
pub(crate) const CODE_VARIABLES: &[&str] = &[
    "BASH_ENV",
    "BUN_OPTIONS",
    "CLASSPATH",
    "DENO_DIR",
    "ENV",
    "GIT_EXEC_PATH",
    "GIT_SSH_COMMAND",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_CPATH",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
];

/// The place of an argument in a command line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArgumentPlace {
    /// After an interpreter, before its script.
    BeforeScript,
    /// After a starter such as `env`, before the program.
    BeforeProgram,
    /// An argument of the program itself.
    Own,
}

/// The file or directory that each argument names, in order; `None` = the argument names nothing that exists.
/// `data`: the files that the operator declared as data.
pub(crate) fn find_named_files(
    command: &Path,
    args: &[String],
    data: &BTreeSet<PathBuf>,
) -> Vec<Option<NamedFile>> {
    let mut place = place_behind(command).unwrap_or(ArgumentPlace::Own);
    let mut option: Option<&str> = None;
    let mut all = Vec::with_capacity(args.len());
    for arg in args {
        let (of, value) = split_argument(arg, option);
        let named = value.and_then(existing_file).map(|path| {
            let role = file_role(&path, place, of, data);
            NamedFile { is_file: path.is_file(), path, role }
        });
        let is_option = arg.starts_with('-') && arg.len() > 1;
        match place {
            ArgumentPlace::BeforeScript if is_option => {
                if INSTEAD.contains(&arg.as_str()) {
                    place = ArgumentPlace::Own;
                }
            }
            ArgumentPlace::BeforeScript => {
                if !option.is_some_and(|option| LOADED_FIRST.contains(&option)) {
                    place = ArgumentPlace::Own;
                }
            }
            ArgumentPlace::BeforeProgram if !is_option => {
                place = place_behind(Path::new(arg)).unwrap_or(place);
            }
            ArgumentPlace::BeforeProgram | ArgumentPlace::Own => {}
        }
        option = (is_option && !arg.contains('=')).then_some(arg.as_str());
        all.push(named);
    }
    all
}

/// The place of the first argument after a program; `None` = the program is neither an interpreter nor a
/// starter.
fn place_behind(program: &Path) -> Option<ArgumentPlace> {
    let is = |list: &[&str], path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
        let name = name.unwrap_or_default();
        let name = name.strip_suffix(".exe").unwrap_or(&name);
        // Removes version numbers: `python3.12`, `pypy3`, `lua5.4`.
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        list.contains(&name) || list.contains(&bare)
    };
    let target = program.canonicalize().ok();
    let any = |list| is(list, program) || target.as_ref().is_some_and(|target| is(list, target));
    // Starters are checked first, because a link to a program such as `busybox` acts by the link's name.
    if is(STARTERS, program) || (!is(INTERPRETERS, program) && any(STARTERS)) {
        return Some(ArgumentPlace::BeforeProgram);
    }
    any(INTERPRETERS).then_some(ArgumentPlace::BeforeScript)
}

/// Splits an argument into its option, and the text that could name a file. `before` = the argument before.
fn split_argument<'a>(arg: &'a str, before: Option<&'a str>) -> (Option<&'a str>, Option<&'a str>) {
    if !arg.starts_with('-') {
        // For example `env NAME=/path program`.
        let value =
            arg.split_once('=').map(|(_, value)| value).filter(|_| existing_file(arg).is_none());
        return (before, Some(value.unwrap_or(arg)));
    }
    if let Some((option, value)) = arg.split_once('=') {
        return (Some(option), Some(value));
    }
    // For example `-I/srv/lib`.
    let attached = arg.char_indices().nth(2).and_then(|(at, _)| arg.get(at..));
    let attached = attached.filter(|rest| !arg.starts_with("--") && rest.starts_with('/'));
    (arg.get(..2).filter(|_| attached.is_some()).or(Some(arg)), attached)
}

/// The file or directory with this path, relative paths from `/`, if it exists.
fn existing_file(text: &str) -> Option<PathBuf> {
    if text.is_empty() {
        return None;
    }
    let path = Path::new("/").join(text.strip_prefix("file://").unwrap_or(text));
    (path.is_file() || path.is_dir()).then_some(path)
}

/// Decides the role of a file: by the argument's place, the operator's declaration, the option's name, and
/// the file itself.
fn file_role(
    path: &Path,
    place: ArgumentPlace,
    option: Option<&str>,
    data: &BTreeSet<PathBuf>,
) -> FileRole {
    let is_file = path.is_file();
    if place == ArgumentPlace::BeforeScript || (is_file && looks_like_code(path)) {
        return FileRole::Program;
    }
    let found = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let of_data = |said: &PathBuf| {
        path.starts_with(said) || said.canonicalize().is_ok_and(|said| found.starts_with(said))
    };
    if data.iter().any(of_data) {
        return FileRole::Data;
    }
    // For example `--plugin /srv/x`: the option's name says that the file is loaded.
    let is_loaded = option.is_some_and(|option| {
        let option = option.to_ascii_lowercase();
        let words = ["exten", "hook", "import", "load", "modul", "plugin", "requir", "script"];
        words.iter().any(|word| option.contains(word))
    });
    if is_loaded || place == ArgumentPlace::BeforeProgram {
        return FileRole::Unsure;
    }
    let is_data = !is_file || has_extension(path, DATA) && has_extension(&found, DATA);
    if is_data { FileRole::Data } else { FileRole::Unsure }
}

fn has_extension(path: &Path, list: &[&str]) -> bool {
    let end = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
    end.is_some_and(|end| list.contains(&&*end))
}

/// Returns whether a file could be code: by its ending, its mode or its first bytes.
fn looks_like_code(path: &Path) -> bool {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    has_extension(path, CODE)
        || has_extension(&target, CODE)
        || is_executable(path)
        || begins_as_code(path)
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|about| about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_path: &Path) -> bool {
    false
}

/// Returns whether a file's first bytes are those of a program. An unreadable file counts as code, because
/// its content is unknown.
fn begins_as_code(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(4).read_to_end(&mut first));
    read.is_err() || MAGIC.iter().any(|magic| first.starts_with(magic))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// The roles of the files in a command line, in which `@` stands for a directory with files of many
    /// types.
    fn roles(line: &str, data: &[&str]) -> Vec<FileRole> {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("folder")).unwrap();
        for (name, text) in [
            ("t.db", "SQLite format 3\0"),
            ("notes.txt", "x"),
            ("server.py", "x"),
            ("lib.so", "x"),
            ("config.json", "{}"),
            ("plain", "x"),
            ("shebang.txt", "#!/bin/sh\n"),
            ("run.txt", "x"),
        ] {
            std::fs::write(at(name), text).unwrap();
        }
        std::fs::set_permissions(at("run.txt"), PermissionsExt::from_mode(0o755)).unwrap();
        symlink(at("server.py"), at("link.txt")).unwrap();
        let root = dir.path().to_str().unwrap();
        let line = line.replace('@', root);
        let mut words = line.split(' ').map(str::to_owned);
        let command = PathBuf::from(words.next().unwrap());
        let data = data.iter().map(|path| path.replace('@', root).into()).collect();
        let named = find_named_files(&command, &words.collect::<Vec<_>>(), &data);
        named.into_iter().flatten().map(|named| named.role).collect()
    }

    #[test]
    fn a_data_file_is_told_from_a_program_file() {
        use FileRole::{Data, Program, Unsure};
        for (line, expected) in [
            ("/opt/x/server --db-path @/t.db", vec![Data]),
            ("/opt/x/server --db-path=@/t.db", vec![Data]),
            ("/opt/x/server @/folder @/notes.txt", vec![Data, Data]),
            ("/opt/x/server @/server.py", vec![Program]),
            ("/opt/x/server --code=@/server.py", vec![Program]),
            ("/opt/x/server @/shebang.txt @/run.txt @/link.txt", vec![Program; 3]),
            ("/opt/x/server --lib @/lib.so", vec![Program]),
            ("/opt/x/server @/config.json @/plain", vec![Unsure, Unsure]),
            ("/opt/x/server --plugin @/t.db --hooks=@/folder", vec![Unsure, Unsure]),
            ("/opt/x/server --db /nowhere/t.db -v", vec![]),
        ] {
            assert_eq!(roles(line, &[]), expected, "{line}");
        }
    }

    #[test]
    fn what_an_interpreter_runs_or_loads_is_a_program_whatever_it_looks_like() {
        use FileRole::{Data, Program, Unsure};
        for (line, expected) in [
            ("/usr/bin/python3.12 @/t.db @/t.db", vec![Program, Data]),
            ("/usr/bin/python3 -u @/folder @/folder", vec![Program, Data]),
            ("/usr/bin/python3 -W ignore @/notes.txt @/notes.txt", vec![Program, Data]),
            ("/usr/bin/node --require @/notes.txt @/plain @/t.db", vec![Program, Program, Data]),
            ("/usr/bin/node --import=file://@/plain @/folder", vec![Program, Program]),
            ("/usr/bin/python3 -m mcp_server --db @/t.db", vec![Data]),
            ("/usr/bin/perl -I@/folder @/plain", vec![Program, Program]),
            ("/usr/bin/env /usr/bin/python3 @/plain @/t.db", vec![Program, Data]),
            ("/usr/bin/env LEVEL=x node @/plain", vec![Program]),
            ("/usr/bin/uvx server --db-path @/t.db", vec![Unsure]),
        ] {
            let mut found = roles(line, &[]);
            // Whether the interpreter exists depends on the machine, so its own role is not compared.
            let behind = found.split_off(found.len().saturating_sub(expected.len()));
            assert_eq!(behind, expected, "{line}");
        }
    }

    #[test]
    fn the_operators_word_makes_data_of_what_could_be_either_and_of_nothing_else() {
        use FileRole::{Data, Program};
        let declared = ["@/config.json", "@/server.py", "@/folder", "@/run.txt"];
        for (line, expected) in [
            ("/opt/x/server --config @/config.json", vec![Data]),
            ("/opt/x/server --plugin @/folder", vec![Data]),
            ("/opt/x/server @/server.py @/run.txt", vec![Program, Program]),
            ("/usr/bin/node @/config.json", vec![Program]),
            ("/usr/bin/python3 @/folder", vec![Program]),
        ] {
            assert_eq!(roles(line, &declared), expected, "{line}");
        }
    }
}
