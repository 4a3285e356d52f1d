//! Lists the crates whose code is in the binary: the normal dependencies of `belljar-cli`, and the normal
//! dependencies of the stock tools, whose components are embedded in the binary. Crates that only run at
//! build time (build scripts, procedural macros) or that only tests use are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::metadata;

/// The crate of the program.
const PROGRAM: &str = "belljar-cli";

/// The target triple of the stock tools.
const TOOLS_TARGET: &str = "wasm32-wasip2";

/// The crates and the dependencies between them.
pub(super) struct CrateGraph {
    /// The crates, sorted by name and version.
    packages: Vec<CratePackage>,
    /// The ids of a crate's direct dependencies, by the crate's id.
    edges: BTreeMap<String, BTreeSet<String>>,
    /// The SHA-256 of each crate as the registry served it, by name and version.
    checksums: BTreeMap<(String, String), String>,
}

/// A crate, as described by `cargo metadata`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct CratePackage {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: String,
    license: Option<String>,
    pub(super) license_file: Option<PathBuf>,
    /// `None` for the crates of this repository.
    pub(super) source: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) authors: Vec<String>,
    manifest_path: PathBuf,
    targets: Vec<CrateTarget>,
}

#[derive(Debug, Clone, Deserialize)]
struct CrateTarget {
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct GraphMetadata {
    packages: Vec<CratePackage>,
    workspace_members: BTreeSet<String>,
    resolve: GraphResolve,
}

#[derive(Debug, Deserialize)]
struct GraphResolve {
    nodes: Vec<GraphNode>,
}

#[derive(Debug, Deserialize)]
struct GraphNode {
    id: String,
    deps: Vec<CrateDependency>,
}

#[derive(Debug, Deserialize)]
struct CrateDependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    /// `None` for a normal dependency.
    kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct LockFile {
    package: Vec<LockedCrate>,
}

#[derive(Debug, Deserialize)]
struct LockedCrate {
    name: String,
    version: String,
    checksum: Option<String>,
}

impl CratePackage {
    fn is_macro(&self) -> bool {
        self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
    }

    pub(super) fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    /// The crate's licence as an SPDX expression. In old manifests, `MIT/Apache-2.0` means `OR`.
    pub(super) fn licence_expression(&self) -> Result<String> {
        let text = self.license.as_deref();
        let text = text.with_context(|| format!("{} states no licence", self.name))?;
        Ok(text.split('/').map(str::trim).collect::<Vec<_>>().join(" OR "))
    }
}

impl CrateGraph {
    pub(super) fn read_workspace(root: &Path) -> Result<Self> {
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let mut crates =
            Self { packages: Vec::new(), edges: BTreeMap::new(), checksums: read_checksums(root)? };
        crates
            .add_linked(&metadata::read_metadata(root, &host)?, |package| package.name == PROGRAM);
        let tools = root.join("tools");
        crates.add_linked(&metadata::read_metadata(root, TOOLS_TARGET)?, |package| {
            package.manifest_path.starts_with(&tools)
        });
        let key = |package: &CratePackage| (package.name.clone(), package.version.clone());
        crates.packages.sort_by_key(key);
        Ok(crates)
    }

    /// Adds the crates that the `wanted` workspace members link.
    fn add_linked(&mut self, metadata: &GraphMetadata, wanted: impl Fn(&CratePackage) -> bool) {
        let packages: BTreeMap<&str, &CratePackage> =
            metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
        let nodes: BTreeMap<&str, &GraphNode> =
            metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let members = metadata.workspace_members.iter().filter_map(|id| packages.get(id.as_str()));
        let mut left: Vec<&str> =
            members.filter(|package| wanted(package)).map(|package| package.id.as_str()).collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = left.pop() {
            let (Some(package), Some(node)) = (packages.get(id), nodes.get(id)) else { continue };
            if !seen.insert(id) {
                continue;
            }
            if !self.edges.contains_key(id) {
                self.packages.push((*package).clone());
            }
            let normal = node.deps.iter().filter(|dependency| {
                let is_normal = dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
                let package = packages.get(dependency.pkg.as_str());
                is_normal && package.is_some_and(|package| !package.is_macro())
            });
            let below: Vec<&str> = normal.map(|dependency| dependency.pkg.as_str()).collect();
            let edges = self.edges.entry(id.to_owned()).or_default();
            edges.extend(below.iter().map(|id| (*id).to_owned()));
            left.extend(below);
        }
    }

    /// All crates, including the crates of this repository, sorted by name and version.
    pub(super) fn all_packages(&self) -> &[CratePackage] {
        &self.packages
    }

    /// The crates that come from a registry.
    pub(super) fn foreign_packages(&self) -> impl Iterator<Item = &CratePackage> {
        self.packages.iter().filter(|package| package.source.is_some())
    }

    /// The crates that a crate links directly.
    pub(super) fn linked_packages(&self, package: &CratePackage) -> Vec<&CratePackage> {
        let ids = self.edges.get(&package.id);
        let is_below = |other: &&CratePackage| ids.is_some_and(|ids| ids.contains(&other.id));
        self.packages.iter().filter(is_below).collect()
    }

    /// The SHA-256 of the crate as the registry served it, in hexadecimal.
    pub(super) fn registry_checksum(&self, package: &CratePackage) -> Option<&str> {
        let key = (package.name.clone(), package.version.clone());
        self.checksums.get(&key).map(String::as_str)
    }

    pub(super) fn program_package(&self) -> Option<&CratePackage> {
        self.packages.iter().find(|package| package.name == PROGRAM)
    }

    pub(super) fn program_version(&self) -> &str {
        self.program_package().map_or("0.0.0", |package| &package.version)
    }
}

fn read_checksums(root: &Path) -> Result<BTreeMap<(String, String), String>> {
    let text = fs::read_to_string(root.join("Cargo.lock")).context("failed to read Cargo.lock")?;
    let lock: LockFile = toml::from_str(&text).context("Cargo.lock is not understood")?;
    let known = lock.package.into_iter().filter_map(|locked| {
        let LockedCrate { name, version, checksum } = locked;
        Some(((name, version), checksum?))
    });
    Ok(known.collect())
}
