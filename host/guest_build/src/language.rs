//! The languages in which tools can be written: how their projects are recognized, and which toolchain
//! builds them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::found::VersionedProgram;
use crate::project::ToolProject;
use crate::{PackageBuild, RustToolchain, assemblyscript, clang, go, javascript, python, zig};

/// A language with a template for `belljar tools new` and an SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// Rust, for `wasm32-wasip2`.
    Rust,
    /// Python: CPython, built by componentize-py.
    Python,
    /// JavaScript or TypeScript, on QuickJS, built by jco.
    Javascript,
    /// C, built by clang.
    C,
    /// C++, built by clang.
    Cpp,
    /// Go, for `wasip1`.
    Go,
    /// Zig, for `wasm32-wasi`.
    Zig,
    /// AssemblyScript, built by asc.
    AssemblyScript,
}

/// An installed toolchain.
#[derive(Debug)]
pub struct FoundToolchain {
    /// Name and version for people, for example `Python 3.12`.
    pub description: String,
    /// Whether the same sources and toolchain make the same bytes in any directory. `Err`: why not.
    pub reproducible: Result<(), &'static str>,
}

impl Language {
    /// All languages, in the order in which they are listed.
    pub const ALL: &[Language] = &[
        Language::Rust,
        Language::Python,
        Language::Javascript,
        Language::C,
        Language::Cpp,
        Language::Go,
        Language::Zig,
        Language::AssemblyScript,
    ];

    /// The name of the language in commands and directories, for example `cpp`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::Python => "python",
            Language::Javascript => "javascript",
            Language::C => "c",
            Language::Cpp => "cpp",
            Language::Go => "go",
            Language::Zig => "zig",
            Language::AssemblyScript => "assemblyscript",
        }
    }

    /// The language with this name; also understands `typescript`, `js`, `ts`, `py`, `c++` and `golang`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Language> {
        let word = match word {
            "typescript" | "js" | "ts" => "javascript",
            "py" => "python",
            "c++" => "cpp",
            "golang" => "go",
            word => word,
        };
        Language::ALL.iter().copied().find(|language| language.word() == word)
    }

    /// The files by which a project of this language is recognized; any of them is enough.
    fn marker_files(self) -> &'static [&'static str] {
        match self {
            Language::Rust => &["Cargo.toml"],
            Language::Python => &["tool.py"],
            Language::Javascript => &["tool.ts", "tool.js"],
            Language::C => &["tool.c"],
            Language::Cpp => &["tool.cpp"],
            Language::Go => &["go.mod"],
            Language::Zig => &["tool.zig"],
            Language::AssemblyScript => &["assembly/tool.ts"],
        }
    }

    /// The language of a project, recognized by its files; `None`: not a project that can be built.
    #[must_use]
    pub fn from_project(root: &Path) -> Option<Language> {
        let has = |language: &Language| {
            language.marker_files().iter().any(|marker| root.join(marker).is_file())
        };
        Language::ALL.iter().copied().find(has)
    }

    /// Finds the language's toolchain: in the project's directory, if there is one, or on the `PATH`.
    ///
    /// # Errors
    ///
    /// The toolchain is missing; the error has the command that installs it.
    pub fn find_toolchain(self, project: Option<&Path>) -> Result<FoundToolchain> {
        let of = |program: VersionedProgram, reproducible| FoundToolchain {
            description: program.description,
            reproducible,
        };
        Ok(match self {
            Language::Rust => FoundToolchain {
                description: RustToolchain::find_installed()?.describe(),
                reproducible: Ok(()),
            },
            Language::Python => of(
                python::find_toolchain(project)?,
                Err("the component is an image of an interpreter's memory, which differs"),
            ),
            Language::Javascript => of(
                javascript::find_toolchain(project)?,
                Err("the component is an image of an engine's memory, which differs"),
            ),
            Language::C => of(clang::find_toolchain(clang::ClangDialect::C)?, Ok(())),
            Language::Cpp => of(clang::find_toolchain(clang::ClangDialect::Cpp)?, Ok(())),
            Language::Go => of(go::find_toolchain(project)?, Ok(())),
            Language::Zig => of(zig::find_toolchain(project)?, Ok(())),
            Language::AssemblyScript => of(assemblyscript::find_toolchain(project)?, Ok(())),
        })
    }

    /// Builds a project, and returns the path of the component, below the project's `target`. The toolchain's
    /// own messages go to stderr.
    ///
    /// # Errors
    ///
    /// The toolchain is missing or fails.
    pub fn build_project(self, root: &Path) -> Result<PathBuf> {
        let root =
            root.canonicalize().with_context(|| format!("failed to open `{}`", root.display()))?;
        let out = root.join("target");
        if self == Language::Rust {
            let build = PackageBuild {
                root: &root,
                package: None,
                profile: "release",
                target_dir: &out,
                locked: false,
                c: None,
            };
            return build.build_component(&RustToolchain::find_installed()?);
        }
        let project = ToolProject::new(&root, &out, self.word())?;
        match self {
            Language::Rust => bail!("Rust is built by cargo"),
            Language::Python => python::build_project(&project)?,
            Language::Javascript => javascript::build_project(&project)?,
            Language::C => clang::build_project(&project, clang::ClangDialect::C)?,
            Language::Cpp => clang::build_project(&project, clang::ClangDialect::Cpp)?,
            Language::Go => go::build_project(&project)?,
            Language::Zig => zig::build_project(&project)?,
            Language::AssemblyScript => assemblyscript::build_project(&project)?,
        }
        Ok(project.component_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_is_found_by_its_word_and_by_its_files() {
        for language in Language::ALL {
            assert_eq!(Language::from_word(language.word()), Some(*language));
            for marker in language.marker_files() {
                let root = tempfile::tempdir().unwrap();
                let file = root.path().join(marker);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, "").unwrap();
                assert_eq!(Language::from_project(root.path()), Some(*language), "{marker}");
            }
        }
        assert_eq!(Language::from_word("c++"), Some(Language::Cpp));
        assert_eq!(Language::from_word("cobol"), None);
        assert_eq!(Language::from_project(tempfile::tempdir().unwrap().path()), None);
    }

    #[test]
    fn a_project_without_its_sdk_is_told_where_to_get_it() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("tool.c"), "").unwrap();
        let error = Language::C.build_project(root.path()).unwrap_err().to_string();
        assert!(error.contains("belljar tools new NAME --lang c"), "{error}");
        assert!(!root.path().join("target").exists());
    }
}
