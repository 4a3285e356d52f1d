//! Where the files of `guest-sdk` are in a tool's project.

use crate::Language;

/// The directory of the contract that the SDKs other than Rust's use.
const CONTRACT: &str = "wit/";

/// Where a file of `guest-sdk` is in a project, as a path below the project's `sdk`; `None`: projects of
/// this language do not have the file. Paths are relative, with `/`.
#[must_use]
pub fn sdk_path(language: Language, path: &str) -> Option<String> {
    if language == Language::Rust {
        let folder = path.split('/').next().unwrap_or_default();
        let contract = folder == "wit" || folder.starts_with("wit-0.");
        return (folder == "rust" || contract).then(|| path.to_owned());
    }
    if let Some(rest) = path.strip_prefix(CONTRACT) {
        let beside = rest.starts_with("deps/");
        return Some(format!("wit/{}{rest}", if beside { "" } else { "deps/belljar-tool/" }));
    }
    if let Some(rest) = path.strip_prefix("wit-sdk/") {
        return Some(format!("wit/{rest}"));
    }
    if let Some(rest) = path.strip_prefix("wit-wasi/") {
        return rest.ends_with(".wit").then(|| format!("wit/deps/{rest}"));
    }
    let folder = path.split('/').next().unwrap_or_default();
    let own = folder == language.word() || (language == Language::Cpp && folder == "c");
    let template = path.split('/').nth(1) == Some("template");
    (own && !template).then(|| path.to_owned())
}

/// Where a file of `guest-sdk` is in a new project, if it belongs to the language's template.
#[must_use]
pub fn template_path(language: Language, path: &str) -> Option<&str> {
    let path = match language {
        Language::Rust => path.strip_prefix("template/")?,
        language => path.strip_prefix(language.word())?.strip_prefix("/template/")?,
    };
    // Named `gitignore` here, because as `.gitignore` it would hide files of belljar's own repository from
    // git.
    Some(if path == "gitignore" { ".gitignore" } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_gets_its_languages_sdk_and_the_interfaces() {
        let python = |path| sdk_path(Language::Python, path);
        assert_eq!(python("wit/tool.wit").unwrap(), "wit/deps/belljar-tool/tool.wit");
        assert_eq!(python("wit/deps/config/store.wit").unwrap(), "wit/deps/config/store.wit");
        assert_eq!(python("wit-sdk/world.wit").unwrap(), "wit/world.wit");
        assert_eq!(python("wit-wasi/io.wit").unwrap(), "wit/deps/io.wit");
        assert_eq!(python("python/src/belljar/http.py").unwrap(), "python/src/belljar/http.py");
        for other in
            ["c/belljar.h", "rust/src/lib.rs", "python/template/tool.py", "wit-0.1/tool.wit"]
        {
            assert_eq!(python(other), None, "{other}");
        }
        assert_eq!(sdk_path(Language::Cpp, "c/belljar.h").unwrap(), "c/belljar.h");
        assert_eq!(sdk_path(Language::Rust, "wit/tool.wit").unwrap(), "wit/tool.wit");
    }

    #[test]
    fn every_package_has_the_version_of_the_contract_that_it_is_written_for() {
        let contract = include_str!("../../../guest-sdk/wit/tool.wit");
        let version = contract.split_once('@').unwrap().1.split_once(';').unwrap().0;
        let quoted = format!("\"{version}\"");
        let python = include_str!("../../../guest-sdk/python/src/belljar/__init__.py");
        for (package, line) in [
            (
                include_str!("../../../guest-sdk/python/pyproject.toml"),
                format!("version = {quoted}"),
            ),
            (python, format!("__version__ = {quoted}")),
            (
                include_str!("../../../guest-sdk/javascript/package.json"),
                format!("\"version\": {quoted}"),
            ),
            (
                include_str!("../../../guest-sdk/assemblyscript/package.json"),
                format!("\"version\": {quoted}"),
            ),
            (
                include_str!("../../../guest-sdk/c/belljar.h"),
                format!("#define BJ_CONTRACT {quoted}"),
            ),
            (
                include_str!("../../../guest-sdk/go/template/go.mod"),
                format!("belljar.local/tool v{version}"),
            ),
            (
                include_str!("../../../guest-sdk/go/component.go"),
                format!("belljar:tool/tools@{version}#invoke"),
            ),
            (
                include_str!("../../../guest-sdk/zig/component.zig"),
                format!("belljar:tool/tools@{version}#"),
            ),
        ] {
            assert!(package.contains(&line), "{line}");
        }
    }

    #[test]
    fn a_template_lies_in_the_project_itself() {
        assert_eq!(template_path(Language::C, "c/template/tool.c"), Some("tool.c"));
        assert_eq!(template_path(Language::Rust, "template/gitignore"), Some(".gitignore"));
        assert_eq!(template_path(Language::C, "cpp/template/tool.cpp"), None);
    }
}
