//! Builds JavaScript and TypeScript tools: QuickJS in a component, by jco.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::found::{VersionedProgram, candidate_paths, run_command};
use crate::project::ToolProject;

/// Installs the versions that the SDK was tested with.
const INSTALL: &str = "npm install";
const INSTALL_GLOBAL: &str = "npm install --global @bytecodealliance/jco@1.35.0";

/// The version of HTTP that the SDK imports while jco makes the component. jco starts the engine at that
/// time, with WASI's streams but without HTTP, and refuses an HTTP that shares those streams. Under a
/// version that jco does not know, both count as absent.
const WHILE_MADE: &str = "@0.9.8";

/// The version of HTTP in the finished component. As long as [`WHILE_MADE`], which it replaces in the bytes.
const IN_COMPONENT: &str = "@0.2.8";

/// The version of WASI in the SDK's WIT files.
const OF_FILES: &str = "@0.2.12";

pub(crate) fn find_toolchain(project: Option<&Path>) -> Result<VersionedProgram> {
    let found = candidate_paths(project, "node_modules/.bin", "jco");
    match VersionedProgram::find_first("jco", found, &["--version"]) {
        Some(program) => Ok(program),
        None => bail!(
            "jco was not found, which builds JavaScript tools\n\
             hint: run `{INSTALL}` in the project, or `{INSTALL_GLOBAL}`"
        ),
    }
}

pub(crate) fn build_project(project: &ToolProject<'_>) -> Result<()> {
    let jco = find_toolchain(Some(project.root))?;
    let modules = project.root.join("node_modules");
    if !modules.join("belljar-tool").exists() {
        // Nobody ran `npm install`, because jco is on the `PATH`.
        copy_folder(&project.sdk_path(), &modules.join("belljar-tool"))?;
    }
    let wit = project.out.join("wit");
    write_interfaces(&project.wit_path(), &wit)?;
    let entry = ["tool.ts", "tool.js"].map(|name| project.root.join(name));
    let Some(entry) = entry.iter().find(|entry| entry.is_file()) else {
        bail!("the project has no `tool.ts`")
    };
    let raw = project.out.join("made.wasm");
    let mut command = jco.to_command();
    command.arg("componentize").arg(entry).arg("--wit").arg(wit).args(["--world-name", "tool"]);
    command.args(["--bundle", "--backend", "qjs", "--backend-qjs-disable-async", "-o"]).arg(&raw);
    command.current_dir(project.root);
    run_command(command)?;
    let mut bytes =
        fs::read(&raw).with_context(|| format!("failed to read `{}`", raw.display()))?;
    replace_bytes(&mut bytes, WHILE_MADE.as_bytes(), IN_COMPONENT.as_bytes());
    project.write_component(&bytes)
}

/// Writes the WIT files for jco: as they are, and a copy of all WASI packages under the version
/// [`WHILE_MADE`], from which the world imports HTTP.
fn write_interfaces(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("failed to empty `{}`", to.display()))?;
    }
    copy_folder(from, to)?;
    let world = to.join("world.wit");
    let text = read_text(&world)?;
    let lines = text.lines().map(|line| match line.contains("import wasi:http/") {
        true => line.replace(OF_FILES, WHILE_MADE),
        false => line.to_owned(),
    });
    write_text(&world, &lines.collect::<Vec<_>>().join("\n"))?;
    let deps = to.join("deps");
    for entry in
        fs::read_dir(&deps).with_context(|| format!("failed to list `{}`", deps.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wit") {
            let text = read_text(&path)?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let twin = deps.join(format!("{stem}-while-made")).join("package.wit");
            let version = |version: &str| version.trim_start_matches('@').to_owned();
            write_text(&twin, &text.replace(&version(OF_FILES), &version(WHILE_MADE)))?;
        }
    }
    Ok(())
}

fn replace_bytes(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..).filter(|rest| rest.len() >= from.len()) {
        if rest.starts_with(from)
            && let Some(found) = rest.get_mut(..to.len())
        {
            found.copy_from_slice(to);
        }
        at += 1;
    }
}

/// Copies a directory with all its files.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("failed to create `{}`", to.display()))?;
    for entry in
        fs::read_dir(from).with_context(|| format!("failed to list `{}`", from.display()))?
    {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&path, &to)?;
        } else {
            fs::copy(&path, &to).with_context(|| format!("failed to copy `{}`", path.display()))?;
        }
    }
    Ok(())
}

fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read `{}`", path.display()))
}

fn write_text(path: &Path, text: &str) -> Result<()> {
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("failed to write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_takes_the_place_of_the_other_wherever_it_stands() {
        assert_eq!(WHILE_MADE.len(), IN_COMPONENT.len());
        let mut bytes = b"a@0.9.8b@0.9.8@0.9.".to_vec();
        replace_bytes(&mut bytes, WHILE_MADE.as_bytes(), IN_COMPONENT.as_bytes());
        assert_eq!(bytes, b"a@0.2.8b@0.2.8@0.9.");
    }
}
