//! Builds AssemblyScript tools: asc makes a core module, which is then converted to a component.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use crate::found::{VersionedProgram, candidate_paths, run_command};
use crate::javascript::copy_folder;
use crate::project::ToolProject;

/// Installs the version that the SDK was tested with.
const INSTALL: &str = "npm install";
const INSTALL_GLOBAL: &str = "npm install --global assemblyscript@0.28.20";

/// The name of the SDK among a project's modules.
const PACKAGE: &str = "belljar-assemblyscript";

/// The SDK's exports, with the contract's names for them, which the language cannot write.
const EXPORTS: &[(&str, &str)] = &[
    ("describe", "belljar:tool/tools@0.2.0#describe"),
    ("invoke", "belljar:tool/tools@0.2.0#invoke"),
    ("cabi_post_describe", "cabi_post_belljar:tool/tools@0.2.0#describe"),
    ("cabi_post_invoke", "cabi_post_belljar:tool/tools@0.2.0#invoke"),
];

/// The bytes of a module's magic number and version, and the id of the section of exports.
const HEADER: usize = 8;
const EXPORT_SECTION: u8 = 7;

pub(crate) fn find_toolchain(project: Option<&Path>) -> Result<VersionedProgram> {
    let found = candidate_paths(project, "node_modules/.bin", "asc");
    match VersionedProgram::find_first("asc", found, &["--version"]) {
        Some(program) => Ok(program),
        None => bail!(
            "asc was not found, which builds AssemblyScript tools\n\
             hint: run `{INSTALL}` in the project, or `{INSTALL_GLOBAL}`"
        ),
    }
}

pub(crate) fn build_project(project: &ToolProject<'_>) -> Result<()> {
    let asc = find_toolchain(Some(project.root))?;
    let package = project.root.join("node_modules").join(PACKAGE);
    if !package.exists() {
        // Nobody ran `npm install`, because asc is on the `PATH`.
        copy_folder(&project.sdk_path(), &package)?;
    }
    let core = project.out.join("core.wasm");
    let mut command = asc.to_command();
    command.arg("assembly/tool.ts").arg("--outFile").arg(&core);
    // The minimal runtime, because the SDK collects garbage between calls, when the stack is empty.
    command.args(["--runtime", "minimal", "--exportStart", "_initialize", "-Osize", "--use"]);
    command.arg(format!("abort=~lib/{PACKAGE}/assembly/host/ended")).current_dir(project.root);
    run_command(command)?;
    let module = fs::read(&core).with_context(|| format!("failed to read `{}`", core.display()))?;
    let module = rename_contract(&module).ok_or_else(|| anyhow!("asc made no module"))?;
    fs::write(&core, module).with_context(|| format!("failed to write `{}`", core.display()))?;
    project.finish_component(&core)
}

/// Renames a module's exports to the contract's names; `None`: the bytes are no module.
fn rename_contract(module: &[u8]) -> Option<Vec<u8>> {
    let (header, mut rest) = module.split_at_checked(HEADER)?;
    let mut made = header.to_vec();
    while let Some((id, after)) = rest.split_first() {
        rest = after;
        let size = read_leb128(&mut rest)?;
        let (mut section, after) = rest.split_at_checked(size)?;
        rest = after;
        let mut body = Vec::with_capacity(size);
        if *id == EXPORT_SECTION {
            let count = read_leb128(&mut section)?;
            push_leb128(&mut body, count);
            for _ in 0..count {
                let length = read_leb128(&mut section)?;
                let (name, after) = section.split_at_checked(length)?;
                let known = EXPORTS.iter().find(|(own, _)| own.as_bytes() == name);
                let name = known.map_or(name, |(_, contract)| contract.as_bytes());
                push_leb128(&mut body, name.len());
                body.extend(name);
                // The kind and the index of the export.
                let (kind, after) = after.split_first()?;
                section = after;
                body.push(*kind);
                push_leb128(&mut body, read_leb128(&mut section)?);
            }
        } else {
            body.extend(section);
        }
        made.push(*id);
        push_leb128(&mut made, body.len());
        made.extend(body);
    }
    Some(made)
}

/// Reads a number of up to 32 bits in LEB128.
fn read_leb128(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn push_leb128(bytes: &mut Vec<u8>, mut value: usize) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        bytes.push(if value == 0 { low } else { low | 0x80 });
        if value == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_get_the_contracts_names_and_all_else_stays() {
        let start = b"\0asm\x01\0\0\0\x03\x02\x01\x00".to_vec();
        let exports = |names: [&str; 2]| {
            let mut body = vec![2];
            for (at, name) in names.iter().enumerate() {
                push_leb128(&mut body, name.len());
                body.extend(name.as_bytes());
                body.extend([0, u8::try_from(at).unwrap()]);
            }
            let mut section = start.clone();
            section.push(EXPORT_SECTION);
            push_leb128(&mut section, body.len());
            section.extend(body);
            section.extend(b"\x0a\x02\x01\x0b");
            section
        };
        let made = rename_contract(&exports(["invoke", "memory"])).unwrap();
        assert_eq!(made, exports(["belljar:tool/tools@0.2.0#invoke", "memory"]));
        assert_eq!(rename_contract(b"\0asm\x01\0\0\0\x07\x7f"), None);
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for value in [0, 1, 127, 128, 300, 70_000, 0xffff_ffff] {
            let mut bytes = Vec::new();
            push_leb128(&mut bytes, value);
            assert_eq!(read_leb128(&mut bytes.as_slice()), Some(value));
        }
        assert_eq!(read_leb128(&mut [0x80; 6].as_slice()), None);
    }
}
