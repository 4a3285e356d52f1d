//! The languages that tools are written in: how a project is known, which toolchain builds it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::found::VersionedProgram;
use crate::project::ToolProject;
use crate::{PackageBuild, RustToolchain, assemblyscript, clang, go, javascript, python, zig};

/// A language that `belljar tools new` has a template and an SDK for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// Rust, for `wasm32-wasip2`.
    Rust,
    /// CPython, by componentize-py.
    Python,
    /// JavaScript or TypeScript on QuickJS, by jco.
    Javascript,
    /// C, by clang.
    C,
    /// C++, by clang.
    Cpp,
    /// Go, for `wasip1`.
    Go,
    /// Zig, for `wasm32-wasi`.
    Zig,
    /// AssemblyScript, by asc.
    AssemblyScript,
}

/// A toolchain that is there.
#[derive(Debug)]
pub struct FoundToolchain {
    /// One line for people with name and version, for example `Python 3.12`.
    pub description: String,
    /// Whether the same sources and toolchain give the same bytes in any directory; if not, why.
    pub reproducible: Result<(), &'static str>,
}

impl Language {
    /// All of them, in the order in which they are shown.
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

    /// The word for it in commands and folders.
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

    /// The language of this word; also of `typescript`, `js`, `ts`, `py`, `c++` and `golang`.
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

    /// The files by any of which a project of this language is known.
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

    /// The language of a project, by its files; `None` = it is no project that can be built.
    #[must_use]
    pub fn from_project(root: &Path) -> Option<Language> {
        let has = |language: &Language| {
            language.marker_files().iter().any(|marker| root.join(marker).is_file())
        };
        Language::ALL.iter().copied().find(has)
    }

    /// The toolchain for it: below the project's own folder, if one is named, or on the path.
    ///
    /// # Errors
    ///
    /// When it is not there; the message has a hint with the command that installs it.
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

    /// Builds a project into a component and returns its path, below the project's `target`. The
    /// toolchain's own messages go to stderr.
    ///
    /// # Errors
    ///
    /// When the toolchain is not there or fails.
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
