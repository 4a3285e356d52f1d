//! Writes the software bill of materials: CycloneDX 1.5, as JSON.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::crates::{CrateGraph, CratePackage};

/// The bill of materials. Its components are the crates whose code is in the binary: see [`CrateGraph`].
pub(super) fn sbom_json(crates: &CrateGraph, date: u64) -> Result<String> {
    let program = crates.program_package().context("the program is not in the workspace")?;
    let components = crates.all_packages().iter().filter(|package| package.id != program.id);
    let components = components.map(|package| component_json(package, crates, "library"));
    let components = components.collect::<Result<Vec<Value>>>()?;
    let dependencies: Vec<Value> = crates
        .all_packages()
        .iter()
        .map(|package| {
            let mut below: Vec<String> =
                crates.linked_packages(package).into_iter().map(package_reference).collect();
            if package.id == program.id {
                // The components of the stock tools are embedded in the program.
                below.extend(tool_packages(crates).map(package_reference));
            }
            json!({ "ref": package_reference(package), "dependsOn": below })
        })
        .collect();
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": format_timestamp(date),
            "lifecycles": [{ "phase": "build" }],
            "tools": { "components": [{ "type": "application", "name": "cargo xtask pack release" }] },
            "component": component_json(program, crates, "application")?,
            "properties": [{
                "name": "belljar:scope",
                "value": "normal dependencies of the program and of the stock tools that it \
                          carries; none of build scripts, procedural macros or tests",
            }],
        },
        "components": components,
        "dependencies": dependencies,
    });
    // The serial number is computed from the content, so the same content has the same number.
    let number = digest_uuid(document.to_string().as_bytes());
    if let Some(object) = document.as_object_mut() {
        object.insert("serialNumber".to_owned(), json!(format!("urn:uuid:{number}")));
    }
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn tool_packages(crates: &CrateGraph) -> impl Iterator<Item = &CratePackage> {
    let is_tool = |package: &&CratePackage| {
        let parent = package.directory().parent().and_then(|parent| parent.file_name());
        package.source.is_none() && parent.is_some_and(|name| name == "tools")
    };
    crates.all_packages().iter().filter(is_tool)
}

fn component_json(package: &CratePackage, crates: &CrateGraph, kind: &str) -> Result<Value> {
    let mut component = json!({
        "type": kind,
        "bom-ref": package_reference(package),
        "name": package.name,
        "version": package.version,
        "licenses": [{ "expression": package.licence_expression()? }],
    });
    let Some(object) = component.as_object_mut() else { return Ok(component) };
    // The crates of this repository are in no registry: a purl would refer to a crate of the same name by
    // somebody else.
    if package.source.is_some() {
        let checksum = crates.registry_checksum(package);
        let checksum = checksum.with_context(|| format!("{} has no checksum", package.name))?;
        object.insert("purl".to_owned(), json!(package_reference(package)));
        object.insert("scope".to_owned(), json!("required"));
        object.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": checksum }]));
        if let Some(url) = &package.repository {
            object.insert("externalReferences".to_owned(), json!([{ "type": "vcs", "url": url }]));
        }
    }
    Ok(component)
}

fn package_reference(package: &CratePackage) -> String {
    // A purl's version cannot contain `+`.
    let version = package.version.replace('+', "%2B");
    match package.source {
        Some(_) => format!("pkg:cargo/{}@{version}", package.name),
        None => format!("belljar:{}@{version}", package.name),
    }
}

/// A UUID of version 8, whose bits an application may choose, made from a digest.
fn digest_uuid(bytes: &[u8]) -> String {
    let mut bits = Sha256::digest(bytes)
        .iter()
        .take(16)
        .fold(0_u128, |all, byte| all << 8 | u128::from(*byte));
    bits = bits & !(0xf << 76) | 8 << 76;
    bits = bits & !(0x3 << 62) | 2 << 62;
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

/// A time in seconds since 1970, as RFC 3339 text.
fn format_timestamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // The computation uses years that begin in March, so that a leap day is the last day of its year.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_names_what_is_in_the_binary_with_its_digest_and_nothing_else() {
        let root = crate::find_root().unwrap();
        let crates = CrateGraph::read_workspace(&root).unwrap();
        let document: Value = serde_json::from_str(&sbom_json(&crates, 0).unwrap()).unwrap();
        let components = document["components"].as_array().unwrap();
        let named = |name: &str| components.iter().find(|component| component["name"] == name);
        for name in ["wasmtime", "libsqlite3-sys", "belljar-policy", "belljar-tool-shell"] {
            assert!(named(name).is_some(), "{name} is missing");
        }
        // Procedural macros, build scripts and crates for tests are not listed.
        for name in ["serde_derive", "cc", "insta"] {
            assert!(named(name).is_none(), "{name} is not in the binary");
        }
        let references: Vec<&str> =
            components.iter().filter_map(|component| component["bom-ref"].as_str()).collect();
        for dependency in document["dependencies"].as_array().unwrap() {
            for below in dependency["dependsOn"].as_array().unwrap() {
                assert!(references.contains(&below.as_str().unwrap()), "{below} is no component");
            }
        }
        let wasmtime = named("wasmtime").unwrap();
        assert_eq!(wasmtime["hashes"][0]["content"].as_str().unwrap().len(), 64);
        let notices = super::super::licences::licence_text(&crates, &root).unwrap();
        for package in crates.foreign_packages() {
            let line = format!("\n{} {}\n", package.name, package.version);
            assert!(notices.contains(&line), "no notice of {}", package.name);
        }
    }

    #[test]
    fn a_time_is_written_as_rfc_3339() {
        assert_eq!(format_timestamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_timestamp(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(format_timestamp(4_102_444_799), "2099-12-31T23:59:59Z");
    }

    #[test]
    fn a_serial_number_is_a_uuid_of_version_8() {
        let number = digest_uuid(b"x");
        assert_eq!(number.len(), 36);
        assert_eq!(number.get(14..15), Some("8"));
        assert!("89ab".contains(number.get(19..20).unwrap()), "{number}");
    }
}
