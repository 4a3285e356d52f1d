//! Long because it is one table: files that other programs act on by themselves, with the reason
//! that a person reads. Nothing is refused because of it.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

use crate::later_names::MORE;

/// Names, relative to any directory. A part `*` stands for one name, `**` at the end for all below,
/// a `*` within a part for any characters.
const TABLE: &[(&[&str], &str)] = &[
    (&[".git", "**"], "git acts on it: hooks, commands in its settings"),
    (&[".git"], "git acts on it: it says where the repository is"),
    (&[".gitattributes"], "git runs filters and merge drivers that it names"),
    (&[".gitmodules"], "git fetches the repositories that it names"),
    (&[".gitconfig"], "git runs commands that its settings name"),
    (&[".githooks", "**"], "git hooks"),
    (&[".hg", "**"], "Mercurial acts on it: hooks in its settings"),
    (&[".jj", "**"], "Jujutsu acts on it"),
    (&[".svn", "**"], "Subversion acts on it"),
    (&[".pre-commit-config.yaml"], "pre-commit runs it at every commit"),
    (&[".pre-commit-config.yml"], "pre-commit runs it at every commit"),
    (&[".pre-commit-hooks.yaml"], "pre-commit runs it at every commit"),
    (&["lefthook*.y*ml"], "lefthook runs it at every commit"),
    (&[".lefthook*"], "lefthook runs it at every commit"),
    (&["lefthook*.toml"], "lefthook runs it at every commit"),
    (&["lefthook*.json"], "lefthook runs it at every commit"),
    (&[".lefthook", "**"], "lefthook runs it at every commit"),
    (&[".husky", "**"], "husky runs it as git hooks"),
    (&[".huskyrc*"], "husky runs it as git hooks"),
    (&[".lintstagedrc*"], "lint-staged runs commands that it names at every commit"),
    (&["lint-staged.config.*"], "lint-staged runs it at every commit"),
    (&[".overcommit.yml"], "overcommit runs it as git hooks"),
    // Continuous integration.
    (&[".github", "workflows", "**"], "a CI workflow"),
    (&[".github", "actions", "**"], "a CI workflow uses it"),
    (&[".github", "dependabot.y*ml"], "Dependabot acts on it"),
    (&["action.y*ml"], "a CI workflow uses it"),
    (&[".gitlab-ci*.y*ml"], "a CI workflow"),
    (&[".gitlab", "**"], "GitLab acts on it"),
    (&[".gitea", "**"], "a CI workflow"),
    (&[".forgejo", "**"], "a CI workflow"),
    (&[".circleci", "**"], "a CI workflow"),
    (&["Jenkinsfile*"], "a CI workflow"),
    (&["*.jenkinsfile"], "a CI workflow"),
    (&["azure-pipelines*.y*ml"], "a CI workflow"),
    (&[".azure-pipelines", "**"], "a CI workflow"),
    (&["bitbucket-pipelines.yml"], "a CI workflow"),
    (&[".buildkite", "**"], "a CI workflow"),
    (&[".woodpecker*"], "a CI workflow"),
    (&[".woodpecker", "**"], "a CI workflow"),
    (&[".drone.*"], "a CI workflow"),
    (&[".travis.yml"], "a CI workflow"),
    (&["appveyor.yml"], "a CI workflow"),
    (&[".appveyor.yml"], "a CI workflow"),
    (&[".cirrus.*"], "a CI workflow"),
    (&[".semaphore", "**"], "a CI workflow"),
    (&[".teamcity", "**"], "a CI workflow"),
    (&[".builds", "**"], "a CI workflow"),
    (&[".build.yml"], "a CI workflow"),
    (&["cloudbuild*.y*ml"], "a CI workflow"),
    (&["buildspec*.y*ml"], "a CI workflow"),
    (&[".ci", "**"], "a CI workflow"),
    (&["renovate.json*"], "Renovate acts on it"),
    (&[".renovaterc*"], "Renovate acts on it"),
    // Package managers.
    (&["package.json"], "npm and its like run its scripts"),
    (&["package.json5"], "pnpm runs its scripts"),
    (&["package.yaml"], "pnpm runs its scripts"),
    (&[".npmrc"], "npm takes settings and where packages come from"),
    (&[".yarnrc*"], "yarn runs what it names"),
    (&[".yarn", "**"], "yarn runs it"),
    (&[".pnp.*"], "node loads it"),
    (&[".pnpmfile.*"], "pnpm runs it"),
    (&["pnpm-workspace.yaml"], "pnpm takes settings from it"),
    (&["bunfig.toml"], "bun loads what it names"),
    (&["deno.json*"], "deno runs its tasks"),
    (&["package-lock.json"], "npm installs what it names"),
    (&["npm-shrinkwrap.json"], "npm installs what it names"),
    (&["yarn.lock"], "yarn installs what it names"),
    (&["pnpm-lock.yaml"], "pnpm installs what it names"),
    (&["bun.lock*"], "bun installs what it names"),
    (&["node_modules", "**"], "node runs it as a dependency"),
    (&["setup.py"], "pip runs it"),
    (&["setup.cfg"], "pip and test tools take commands from it"),
    (&["pyproject.toml"], "Python's build and test tools take commands from it"),
    (&["conftest.py"], "pytest runs it"),
    (&["noxfile.py"], "nox runs it"),
    (&["tox.ini"], "tox runs commands that it names"),
    (&["tasks.py"], "invoke runs it"),
    (&["fabfile.py"], "fabric runs it"),
    (&["sitecustomize.py"], "Python runs it at every start"),
    (&["usercustomize.py"], "Python runs it at every start"),
    (&["*.pth"], "Python runs lines of it at every start"),
    (&["requirements*.txt"], "pip installs what it names"),
    (&["Pipfile*"], "pipenv installs what it names"),
    (&["environment.y*ml"], "conda installs what it names"),
    (&[".venv", "**"], "Python runs it"),
    (&["pip.conf"], "pip takes where packages come from"),
    (&["Cargo.toml"], "cargo builds and runs what it names"),
    (&["build.rs"], "cargo runs it at every build"),
    (&[".cargo", "**"], "cargo runs what its settings name"),
    (&["rust-toolchain*"], "rustup installs and runs what it names"),
    (&["clippy.toml"], "clippy acts on it"),
    (&["Gemfile"], "bundler runs it"),
    (&["Gemfile.*"], "bundler runs it"),
    (&["*.gemspec"], "bundler runs it"),
    (&["Rakefile"], "rake runs it"),
    (&["*.rake"], "rake runs it"),
    (&[".bundle", "**"], "bundler takes settings from it"),
    (&["Podfile*"], "CocoaPods runs it"),
    (&["*.podspec"], "CocoaPods runs it"),
    (&["Fastfile"], "fastlane runs it"),
    (&["Vagrantfile"], "Vagrant runs it"),
    (&["Guardfile"], "guard runs it"),
    (&["Dangerfile*"], "danger runs it"),
    (&["Brewfile*"], "brew installs what it names"),
    (&["composer.json"], "composer runs its scripts"),
    (&["composer.lock"], "composer installs what it names"),
    (&["pom.xml"], "maven runs its plugins"),
    (&[".mvn", "**"], "maven takes commands from it"),
    (&["mvnw*"], "maven is started by it"),
    (&["*.gradle"], "gradle runs it"),
    (&["*.gradle.kts"], "gradle runs it"),
    (&["gradle.properties"], "gradle takes settings from it"),
    (&["gradlew*"], "gradle is started by it"),
    (&["gradle", "**"], "gradle is fetched and started by it"),
    (&["build.sbt"], "sbt runs it"),
    (&["project", "*.sbt"], "sbt runs it"),
    (&["build.sc"], "mill runs it"),
    (&["deps.edn"], "clojure runs its aliases"),
    (&["project.clj"], "leiningen runs it"),
    (&["mix.exs"], "mix runs it"),
    (&["rebar.config*"], "rebar runs its hooks"),
    (&["Package.swift"], "swift runs it at every build"),
    (&["*.csproj"], "dotnet runs its targets"),
    (&["*.fsproj"], "dotnet runs its targets"),
    (&["*.vbproj"], "dotnet runs its targets"),
    (&["*.vcxproj"], "msbuild runs its targets"),
    (&["Directory.Build.*"], "dotnet runs its targets"),
    (&["*.targets"], "msbuild runs its targets"),
    (&["*.props"], "msbuild takes settings from it"),
    (&["nuget.config"], "dotnet takes where packages come from"),
    (&["go.mod"], "go builds what it names"),
    (&["go.work"], "go builds what it names"),
    (&["magefile*.go"], "mage runs it"),
    (&["dune"], "dune runs its rules"),
    (&["dune-*"], "dune runs its rules"),
    (&["*.opam"], "opam runs its commands"),
    (&["*.cabal"], "cabal builds what it names"),
    (&["Setup.hs"], "cabal runs it"),
    (&["stack.yaml"], "stack builds what it names"),
    (&["build.zig*"], "zig runs it at every build"),
    (&["pubspec.yaml"], "dart installs what it names"),
    (&["Makefile.PL"], "perl runs it to install"),
    (&["Build.PL"], "perl runs it to install"),
    (&["DESCRIPTION"], "R installs what it names"),
    (&[".Rprofile"], "R runs it at every start"),
    (&["flake.nix"], "nix builds and runs it"),
    (&["shell.nix"], "nix runs it"),
    (&["default.nix"], "nix runs it"),
    // Builds.
    (&["Makefile"], "make runs it"),
    (&["Makefile.*"], "make runs it"),
    (&["*.mak"], "make runs it"),
    (&["GNUmakefile"], "make runs it"),
    (&["BSDmakefile"], "make runs it"),
    (&["*.mk"], "make runs it"),
    (&["configure"], "it is run to prepare a build"),
    (&["autogen.sh"], "it is run to prepare a build"),
    (&["CMakeLists.txt"], "cmake runs it"),
    (&["*.cmake"], "cmake runs it"),
    (&["CMakePresets.json"], "cmake takes commands from it"),
    (&["CMakeUserPresets.json"], "cmake takes commands from it"),
    (&["meson.build"], "meson runs it"),
    (&["meson_options.txt"], "meson takes settings from it"),
    (&["meson.options"], "meson takes settings from it"),
    (&["BUILD"], "bazel runs it"),
    (&["BUILD.bazel"], "bazel runs it"),
    (&["WORKSPACE"], "bazel runs it"),
    (&["WORKSPACE.*"], "bazel runs it"),
    (&["MODULE.bazel*"], "bazel runs it"),
    (&["*.bzl"], "bazel runs it"),
    (&[".bazelrc"], "bazel takes commands from it"),
    (&["BUCK"], "buck runs it"),
    (&["BUCK.v2"], "buck runs it"),
    (&[".buckconfig*"], "buck takes settings from it"),
    (&["SConstruct"], "scons runs it"),
    (&["SConscript"], "scons runs it"),
    (&["wscript"], "waf runs it"),
    (&["xmake.lua"], "xmake runs it"),
    (&["premake*.lua"], "premake runs it"),
    (&["build.ninja"], "ninja runs it"),
    (&["build.xml"], "ant runs it"),
    (&["justfile"], "just runs it"),
    (&[".justfile"], "just runs it"),
    (&["*.just"], "just runs it"),
    (&["Taskfile*.y*ml"], "task runs it"),
    (&["Earthfile"], "earthly runs it"),
    (&["Tiltfile"], "tilt runs it"),
    (&["skaffold.yaml"], "skaffold runs it"),
    (&["Procfile"], "foreman runs it"),
    (&["turbo.json"], "turbo runs its tasks"),
    (&["nx.json"], "nx runs its tasks"),
    (&["project.json"], "nx runs its tasks"),
    (&["lerna.json"], "lerna runs its scripts"),
    (&["Gruntfile.*"], "grunt runs it"),
    (&["gulpfile.*"], "gulp runs it"),
    (&["*.config.js"], "JavaScript tools load and run it"),
    (&["*.config.cjs"], "JavaScript tools load and run it"),
    (&["*.config.mjs"], "JavaScript tools load and run it"),
    (&["*.config.ts"], "JavaScript tools load and run it"),
    (&["*.config.mts"], "JavaScript tools load and run it"),
    (&["*.config.cts"], "JavaScript tools load and run it"),
    (&[".eslintrc*"], "eslint loads and runs what it names"),
    (&[".babelrc*"], "babel loads and runs what it names"),
    (&[".prettierrc*"], "prettier loads and runs what it names"),
    (&[".stylelintrc*"], "stylelint loads and runs what it names"),
    (&[".mocharc*"], "mocha loads and runs what it names"),
    (&["Dockerfile"], "docker runs it at a build"),
    (&["Dockerfile.*"], "docker runs it at a build"),
    (&["*.Dockerfile"], "docker runs it at a build"),
    (&["Containerfile"], "podman runs it at a build"),
    (&["docker-compose*.y*ml"], "docker starts what it names"),
    (&["compose.*y*ml"], "docker starts what it names"),
    (&["docker-bake.*"], "docker builds what it names"),
    (&["*.tf"], "terraform runs it"),
    (&["*.tofu"], "opentofu runs it"),
    (&["ansible.cfg"], "ansible takes commands from it"),
    (&["fly.toml"], "fly runs commands that it names"),
    (&["netlify.toml"], "netlify runs commands that it names"),
    (&["vercel.json"], "vercel runs commands that it names"),
    (&["wrangler.*"], "wrangler runs commands that it names"),
    // Editors.
    (&[".vscode", "**"], "an editor acts on it: tasks, programs in its settings"),
    (&["*.code-workspace"], "an editor acts on it: tasks, programs in its settings"),
    (&[".idea", "**"], "an editor acts on it: tasks, programs in its settings"),
    (&["*.iml"], "an editor acts on it"),
    (&[".run", "**"], "an editor runs it"),
    (&[".fleet", "**"], "an editor runs it"),
    (&[".zed", "**"], "an editor acts on it: tasks, programs in its settings"),
    (&[".vs", "**"], "an editor acts on it"),
    (&[".settings", "**"], "an editor acts on it"),
    (&["*.sublime-project"], "an editor runs its build commands"),
    (&[".devcontainer", "**"], "an editor builds and starts it"),
    (&[".devcontainer.json"], "an editor builds and starts it"),
    (&["devfile.yaml"], "an editor builds and starts it"),
    (&[".gitpod*"], "an editor runs its commands"),
    (&[".vim", "**"], "vim runs it"),
    (&[".vimrc*"], "vim runs it"),
    (&[".gvimrc"], "vim runs it"),
    (&["_vimrc"], "vim runs it"),
    (&[".nvim*"], "neovim runs it"),
    (&[".nvim", "**"], "neovim runs it"),
    (&[".exrc"], "vi runs it"),
    (&[".dir-locals*.el"], "emacs runs parts of it"),
    (&[".emacs*"], "emacs runs it"),
    (&[".projectile"], "emacs acts on it"),
    (&[".kakrc"], "kakoune runs it"),
    (&[".helix", "**"], "helix starts programs that it names"),
    (&[".lldbinit"], "lldb runs it"),
    (&[".gdbinit"], "gdb runs it"),
    (&[".ycm_extra_conf.py"], "vim runs it"),
    (&[".clangd"], "an editor takes commands from it"),
    (&["compile_commands.json"], "an editor takes commands from it"),
    // Shells.
    (&[".bash*"], "a shell runs it at its start"),
    (&[".profile"], "a shell runs it at its start"),
    (&[".zsh*"], "a shell runs it at its start"),
    (&[".zprofile"], "a shell runs it at its start"),
    (&[".zlogin"], "a shell runs it at its start"),
    (&[".zlogout"], "a shell runs it at its end"),
    (&[".kshrc"], "a shell runs it at its start"),
    (&[".cshrc"], "a shell runs it at its start"),
    (&[".tcshrc"], "a shell runs it at its start"),
    (&[".login"], "a shell runs it at its start"),
    (&[".logout"], "a shell runs it at its end"),
    (&[".inputrc"], "a shell takes commands from it"),
    (&[".config", "**"], "programs take settings and commands from it"),
    (&[".local", "**"], "programs take settings and commands from it"),
    (&[".ssh", "**"], "ssh acts on it"),
    (&[".envrc*"], "direnv runs it on entering the directory"),
    (&[".direnv", "**"], "direnv runs it"),
    (&[".env*"], "programs take their environment from it"),
    (&["mise.*toml"], "mise runs its tasks and hooks on entering the directory"),
    (&[".mise*"], "mise runs its tasks and hooks on entering the directory"),
    (&[".mise", "**"], "mise runs its tasks and hooks on entering the directory"),
    (&["mise", "**"], "mise runs its tasks and hooks on entering the directory"),
    (&[".rtx.toml"], "mise runs its tasks and hooks on entering the directory"),
    (&[".tool-versions"], "asdf and mise run the programs that it names"),
    (&[".nvmrc"], "nvm runs the version that it names"),
    (&[".node-version"], "node's managers run the version that it names"),
    (&[".python-version"], "pyenv runs the version that it names"),
    (&[".ruby-version"], "rbenv runs the version that it names"),
    (&["devbox.json"], "devbox runs its hooks"),
    (&["devenv.*"], "devenv runs it"),
    (&[".tmux.conf"], "tmux runs commands of it"),
    (&["*.desktop"], "a desktop starts what it names"),
    (&["autorun.inf"], "a desktop starts what it names"),
    (&["*.service"], "systemd starts what it names"),
    (&["*.lnk"], "a desktop starts what it names"),
    // Agents and their tools.
    (&[".claude", "**"], "Claude Code acts on it: hooks, commands, permissions"),
    (&[".claude.json"], "Claude Code acts on it"),
    (&["CLAUDE.*md"], "agents take it as instructions"),
    (&["AGENTS.*md"], "agents take it as instructions"),
    (&["AGENT.md"], "agents take it as instructions"),
    (&["GEMINI.*md"], "agents take it as instructions"),
    (&["QWEN.md"], "agents take it as instructions"),
    (&["SKILL.md"], "agents take it as instructions"),
    (&[".mcp.json"], "agents start the servers that it names"),
    (&["mcp.json"], "agents start the servers that it names"),
    (&[".cursor", "**"], "Cursor acts on it: rules, servers, hooks"),
    (&[".cursorrules"], "agents take it as instructions"),
    (&[".windsurf*"], "agents take it as instructions"),
    (&[".windsurf", "**"], "Windsurf acts on it"),
    (&[".clinerules*"], "agents take it as instructions"),
    (&[".clinerules", "**"], "agents take it as instructions"),
    (&[".roo*"], "agents take it as instructions"),
    (&[".roo", "**"], "Roo acts on it"),
    (&[".kiro", "**"], "Kiro acts on it: hooks"),
    (&[".amazonq", "**"], "Amazon Q acts on it"),
    (&[".continue", "**"], "Continue acts on it"),
    (&[".opencode", "**"], "OpenCode acts on it: agents, plugins, tools"),
    (&["opencode.json*"], "OpenCode acts on it"),
    (&[".gemini", "**"], "Gemini CLI acts on it"),
    (&[".codex", "**"], "Codex acts on it"),
    (&[".pi", "**"], "pi acts on it"),
    (&[".agents", "**"], "agents take it as instructions"),
    (&[".agent", "**"], "agents take it as instructions"),
    (&[".netclaw", "**"], "Netclaw acts on it"),
    (&[".smallcode", "**"], "SmallCode acts on it"),
    (&[".aider*"], "aider runs commands that it names"),
    (&[".goose*"], "Goose acts on it"),
    (&[".github", "copilot-instructions.md"], "agents take it as instructions"),
    (&[".github", "instructions", "**"], "agents take it as instructions"),
    (&[".github", "prompts", "**"], "agents take it as instructions"),
    (&[".github", "agents", "**"], "agents take it as instructions"),
    (&[".github", "chatmodes", "**"], "agents take it as instructions"),
    (&[".github", "hooks", "**"], "agents run its hooks"),
];

/// The table in small letters.
static FOLDED: LazyLock<Vec<(Vec<String>, &str)>> = LazyLock::new(|| {
    let row = |(pattern, reason): &(&[&str], &'static str)| {
        (pattern.iter().map(|part| part.to_lowercase()).collect(), *reason)
    };
    let more = MORE.iter().flat_map(|(reason, names)| {
        let parts = |name: &&str| name.split('/').map(str::to_lowercase).collect();
        names.iter().map(move |name| (parts(name), *reason))
    });
    TABLE.iter().map(row).chain(more).collect()
});

/// Names with a dot that only say which files a program passes over, or how they are written. Every
/// other one is taken for settings: nobody knows all programs that start what theirs name.
const HARMLESS: &[&str] = &[
    ".gitignore",
    ".gitkeep",
    ".keep",
    ".ignore",
    ".dockerignore",
    ".npmignore",
    ".prettierignore",
    ".eslintignore",
    ".editorconfig",
    ".mailmap",
];
const DOTTED: &str = "a name with a dot: programs take settings from it, often commands";
/// It has a short name of another file system, which may mean any of these.
const SHORT: &str = "the short form of another name, as some file systems have it";

/// It becomes executable.
pub(crate) const EXECUTABLE: &str = "it can be started as a program";
pub(crate) const LINK: &str = "a link: whoever follows it works elsewhere";
/// Its name is no text, or cannot be read as one.
const UNREADABLE: &str = "its name is no text: nobody knows which program acts on it";

/// Why something would be run or acted on later by its name, whoever does it.
pub(crate) fn by_name(path: &Path) -> Option<&'static str> {
    let mut names = Vec::new();
    for part in path.components() {
        let Component::Normal(name) = part else { return Some(UNREADABLE) };
        match name.to_str() {
            Some(name) => names.push(folded(name)),
            None => return Some(UNREADABLE),
        }
    }
    let reason = FOLDED.iter().find(|(pattern, _)| matches(pattern, &names));
    let dotted = || names.iter().any(|it| it.starts_with('.') && !HARMLESS.contains(&it.as_str()));
    let short = || names.iter().any(|name| is_short(name));
    let reason = reason.map(|(_, reason)| *reason);
    reason.or_else(|| dotted().then_some(DOTTED)).or_else(|| short().then_some(SHORT))
}

/// As [`by_name`], of a path in the directory `above`, whose own last names count: whoever works in
/// `.github` writes workflows too.
pub(crate) fn by_place(above: &Path, path: &Path) -> Option<&'static str> {
    let last: Vec<_> = above.components().rev().take(ABOVE).collect();
    let own = last.iter().rev().filter(|part| matches!(part, Component::Normal(_)));
    let whole: PathBuf = own.collect::<PathBuf>().join(path);
    let by_row = || {
        let names = whole.iter().map(|name| folded(&name.to_string_lossy())).collect::<Vec<_>>();
        let row = FOLDED.iter().find(|(pattern, _)| matches(pattern, &names));
        row.map(|(_, reason)| *reason)
    };
    by_name(path).or_else(by_row)
}

/// Names of the workspace's own path that count: those of the longest row, but for the file's.
const ABOVE: usize = 2;

/// Whether a name in it begins with a dot.
pub(crate) fn is_dotted(path: &Path) -> bool {
    path.iter().any(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// `GIT~1`: a name in the short form of FAT and NTFS.
fn is_short(name: &str) -> bool {
    let digits = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    name.split_once('~').is_some_and(|(_, rest)| digits(rest))
}

/// Whether it belongs to a repository's own files.
pub(crate) fn is_repository(path: &Path) -> bool {
    let own = [".git", ".hg", ".jj", ".svn"];
    path.iter().any(|name| own.contains(&folded(&name.to_string_lossy()).as_str()))
}

/// A name as the most generous file system reads it: without letter case, in one normal form, without
/// what is ignored there.
fn folded(name: &str) -> String {
    let plain = name.split(':').next().unwrap_or(name).trim_end_matches(['.', ' ']);
    if plain.is_ascii() {
        return plain.to_ascii_lowercase();
    }
    let seen = plain.chars().filter(|c| !is_ignored(*c));
    let upper: String = seen.collect::<String>().nfkc().flat_map(char::to_uppercase).collect();
    upper.chars().flat_map(char::to_lowercase).nfkc().collect()
}

fn is_ignored(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
        | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

fn matches(pattern: &[String], names: &[String]) -> bool {
    (0..names.len()).any(|at| names.get(at..).is_some_and(|names| begins(pattern, names)))
}

/// Whether these names are what the pattern says, from the first on.
fn begins(pattern: &[String], names: &[String]) -> bool {
    match (pattern.split_first(), names.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((first, _)), rest) if first == "**" => rest.is_some(),
        (Some((first, more)), Some((name, names))) => is_like(first, name) && begins(more, names),
        (Some(_), None) => false,
    }
}

/// Whether a name is what a pattern with stars says.
fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.into_iter().any(|at| rest.get(at..).is_some_and(|rest| is_like(tail, rest)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row of the table is met by a name of its own, at the top and below, in another letter
    /// case, and with a name that is spelled otherwise.
    #[test]
    fn every_row_is_met_in_every_spelling() {
        let more = MORE.iter().flat_map(|(_, names)| names.iter());
        let more = more.map(|name| name.split('/').collect::<Vec<_>>());
        for pattern in TABLE.iter().map(|(pattern, _)| pattern.to_vec()).chain(more) {
            let names: Vec<String> = pattern
                .iter()
                .map(|part| match *part {
                    "**" => "some/thing".to_owned(),
                    part => part.replace('*', "a"),
                })
                .collect();
            let path = names.join("/");
            let upper = path.to_uppercase();
            let wide: String = path.chars().map(wide).collect();
            let mut hidden = path.clone();
            hidden.insert(1, '\u{200c}');
            for path in [&path, &upper, &wide, &hidden, &format!("deep/er/{path}")] {
                assert!(by_name(Path::new(path)).is_some(), "{path}");
            }
        }
    }

    /// The full-width letter, which is the same one in compatible form.
    fn wide(c: char) -> char {
        match c {
            'a'..='z' => char::from_u32(c as u32 - 'a' as u32 + 0xff41).unwrap(),
            other => other,
        }
    }

    /// Every row says something that no other row says already of the same name.
    #[test]
    fn no_row_stands_twice() {
        let mut seen = std::collections::HashSet::new();
        assert!(FOLDED.iter().all(|(pattern, _)| seen.insert(pattern)));
    }

    #[test]
    fn other_names_are_not_met() {
        for path in [
            "src/main.rs",
            "README.md",
            "docs/git.md",
            "a/b/c.txt",
            ".editorconfig",
            ".gitignore",
            "github/workflows.md",
            "makefiles.txt",
            "notes/claude.txt",
            "lib.py",
        ] {
            assert_eq!(by_name(Path::new(path)), None, "{path}");
        }
    }

    /// A workspace may be such a directory itself.
    #[test]
    fn the_place_of_the_workspace_counts() {
        for (above, path) in [
            ("/p/.github", "workflows/x.yml"),
            ("/p/.git", "config"),
            ("/p/.claude", "settings.json"),
        ] {
            assert!(by_place(Path::new(above), Path::new(path)).is_some(), "{above} {path}");
        }
        // Far above it is somebody's choice of a place.
        assert_eq!(by_place(Path::new("/p/.claude/worktrees/a"), Path::new("src/a.rs")), None);
    }

    #[test]
    fn names_are_read_as_the_most_generous_file_system_does() {
        for path in [
            ".GIT/Hooks/pre-commit",
            ".gi\u{200c}t/config",
            "ma\u{212a}efile",
            "package.json.",
            "package.json::$DATA",
            "MAKEFILE ",
            ".vsc\u{34f}ode/tasks.json",
            "GIT~1/config.txt",
            ".some-tool-of-tomorrow/settings",
            ".vscode/tasks.json",
        ] {
            assert!(by_name(Path::new(path)).is_some(), "{path:?}");
        }
    }
}
