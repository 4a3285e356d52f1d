//! Builds C and C++ tools: with clang and wasi-libc, from Debian's packages or from the WASI SDK.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::found::{VersionedProgram, run_command};
use crate::project::ToolProject;

/// The directories of headers from Debian's `wasi-libc` and `libc++-19-dev-wasm32`.
const DEBIAN_HEADERS: &str = "/usr/include/wasm32-wasi";
const DEBIAN_CPP_HEADERS: &str = "/usr/include/wasm32-wasi/c++/v1";

/// The endings that clang's name may have on Debian, the newest version first.
const VERSIONS: &[&str] = &["-21", "-20", "-19", ""];

/// C or C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClangDialect {
    C,
    Cpp,
}

impl ClangDialect {
    fn program_name(self) -> &'static str {
        match self {
            ClangDialect::C => "clang",
            ClangDialect::Cpp => "clang++",
        }
    }

    fn source_extension(self) -> &'static str {
        match self {
            ClangDialect::C => "c",
            ClangDialect::Cpp => "cpp",
        }
    }

    fn compiler_flags(self) -> &'static [&'static str] {
        match self {
            ClangDialect::C => &["-std=gnu17"],
            ClangDialect::Cpp => &["-std=c++23", "-fno-exceptions"],
        }
    }

    fn header_folder(self) -> &'static str {
        match self {
            ClangDialect::C => DEBIAN_HEADERS,
            ClangDialect::Cpp => DEBIAN_CPP_HEADERS,
        }
    }

    fn debian_packages(self) -> &'static str {
        match self {
            ClangDialect::C => "clang-19 lld-19 libclang-rt-19-dev-wasm32 wasi-libc",
            ClangDialect::Cpp => {
                "clang-19 lld-19 libclang-rt-19-dev-wasm32 wasi-libc libc++-19-dev-wasm32 libc++abi-19-dev-wasm32"
            }
        }
    }
}

pub(crate) fn find_toolchain(dialect: ClangDialect) -> Result<VersionedProgram> {
    let sdk = wasi_sdk().map(|sdk| sdk.join("bin").join(dialect.program_name()));
    let debian = Path::new(dialect.header_folder()).is_dir();
    let named =
        VERSIONS.iter().map(|version| format!("{}{version}", dialect.program_name()).into());
    let candidates = sdk.into_iter().chain(named.filter(|_| debian)).map(|path| vec![path]);
    match VersionedProgram::find_first("clang", candidates, &["--version"]) {
        Some(program) => Ok(program),
        None => bail!(
            "no {} for WebAssembly was found\n\
             hint: on Debian run `apt-get install --no-install-recommends {}`; elsewhere unpack the \
             WASI SDK and set `WASI_SDK_PATH`",
            dialect.program_name(),
            dialect.debian_packages()
        ),
    }
}

/// Compiles every source file at the top of the project and in its `src`, and links the component.
pub(crate) fn build_project(project: &ToolProject<'_>, dialect: ClangDialect) -> Result<()> {
    let clang = find_toolchain(dialect)?;
    let mut objects = Vec::new();
    for source in find_sources(project.root, dialect)? {
        let object = project.out.join(format!("{}.o", objects.len()));
        let mut command = clang_command(&clang, dialect);
        command.args(dialect.compiler_flags()).args(["-Os", "-Wall", "-c"]).arg(&source);
        command.arg("-I").arg(project.sdk_path());
        // The C++ header uses the C header.
        command.arg("-I").arg(project.root.join("sdk/c"));
        command.arg(format!("-ffile-prefix-map={}=/src", project.root.display()));
        command.arg("-o").arg(&object);
        run_command(command)?;
        objects.push(object);
    }
    let module = project.out.join("core.wasm");
    // Without `-O`, because with it clang would run any `wasm-opt` on the `PATH`.
    let mut link = clang_command(&clang, dialect);
    link.arg("-mexec-model=reactor").args(&objects);
    // The default stack, 64 KiB, would overflow without notice.
    link.arg("-Wl,-s,-z,stack-size=1048576,--stack-first").arg("-o").arg(&module);
    run_command(link)?;
    project.finish_component(&module)
}

fn clang_command(clang: &VersionedProgram, dialect: ClangDialect) -> Command {
    let mut command = clang.to_command();
    command.arg("--target=wasm32-wasi");
    if wasi_sdk().is_none() {
        if dialect == ClangDialect::Cpp {
            command.args(["-isystem", DEBIAN_CPP_HEADERS]);
        }
        command.args(["-isystem", DEBIAN_HEADERS]);
    }
    command
}

/// The source files of a project, in its root and in `src`, sorted.
fn find_sources(root: &Path, dialect: ClangDialect) -> Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for folder in [root.to_path_buf(), root.join("src")] {
        if !folder.is_dir() {
            continue;
        }
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("failed to list `{}`", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == dialect.source_extension()) {
                sources.push(path);
            }
        }
    }
    sources.sort();
    Ok(sources)
}

fn wasi_sdk() -> Option<PathBuf> {
    std::env::var_os("WASI_SDK_PATH").map(PathBuf::from).filter(|sdk| sdk.is_dir())
}
