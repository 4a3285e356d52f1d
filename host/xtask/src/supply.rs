//! The supply chain: checks the licence, the source and the number of versions of every dependency by the
//! rules of `.deny.toml`.
//!
//! `cargo deny` reads the same file and checks more: the texts of licences, and known vulnerabilities.
//! Because `cargo deny` takes minutes to build, `cargo xtask check` checks the rules without cargo-deny, and
//! `cargo xtask deny` runs cargo-deny if installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::metadata;

/// The file with the rules.
const RULES: &str = ".deny.toml";

/// The beginning of the source of a crate from a registry, in the output of `cargo metadata`.
const REGISTRY: &str = "registry+";

/// The parts of `.deny.toml` that this module checks.
#[derive(Debug, Deserialize)]
struct DenyRules {
    graph: GraphRules,
    licenses: LicenceRules,
    bans: BanRules,
    sources: SourceRules,
}

#[derive(Debug, Deserialize)]
struct GraphRules {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct LicenceRules {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct BanRules {
    skip: Vec<SkipRule>,
}

#[derive(Debug, Deserialize)]
struct SkipRule {
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SourceRules {
    allow_registry: Vec<String>,
}

/// The parts of the output of `cargo metadata` that this module reads.
#[derive(Debug, Deserialize)]
struct SupplyMetadata {
    packages: Vec<SupplyPackage>,
    resolve: SupplyResolve,
}

#[derive(Debug, Deserialize)]
struct SupplyResolve {
    nodes: Vec<SupplyNode>,
}

#[derive(Debug, Deserialize)]
struct SupplyNode {
    id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct SupplyPackage {
    name: String,
    version: String,
    id: String,
    license: Option<String>,
    source: Option<String>,
}

/// A stage of `cargo xtask check`: prints every breach of the rules.
pub(crate) fn check_supply(root: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(RULES)).context("failed to read `.deny.toml`")?;
    let rules: DenyRules = toml::from_str(&text).context("`.deny.toml` is not understood")?;
    let packages = list_packages(root, &rules.graph.targets)?;
    let breaches = find_breaches(&rules, &packages)?;
    for breach in &breaches {
        crate::print_line(&format!("supply: {breach}"));
    }
    ensure!(breaches.is_empty(), "{} breaches of `.deny.toml`", breaches.len());
    Ok(())
}

/// `cargo xtask deny`: runs the checks of cargo-deny.
pub(crate) fn run_cargo_deny(root: &Path, advisories: bool) -> Result<()> {
    let deny = |arguments: &[&str]| {
        let mut command = crate::cargo_command();
        command.arg("deny").args(arguments).current_dir(root);
        command
    };
    let there = deny(&["--version"]).output().context("failed to start cargo")?;
    if !there.status.success() {
        crate::print_line(
            "cargo-deny is not installed (`cargo install cargo-deny --locked`, some minutes); \
             checked without it: licences as stated, sources, duplicates; not checked: licence \
             texts, advisories",
        );
        return check_supply(root);
    }
    let mut checks = vec!["check", "licenses", "bans", "sources"];
    if advisories {
        checks.push("advisories");
    }
    let status = deny(&checks).status().context("failed to start cargo")?;
    if !status.success() {
        bail!("`cargo deny {}` failed", checks.join(" "));
    }
    Ok(())
}

/// Every package built for one of the targets, including the packages of this workspace.
fn list_packages(root: &Path, targets: &[String]) -> Result<BTreeSet<SupplyPackage>> {
    let mut packages = BTreeSet::new();
    for target in targets {
        let found: SupplyMetadata = metadata::read_metadata(root, target)?;
        let built: BTreeSet<_> = found.resolve.nodes.into_iter().map(|node| node.id).collect();
        packages.extend(found.packages.into_iter().filter(|package| built.contains(&package.id)));
    }
    Ok(packages)
}

/// Checks the licence and the source of each package, and duplicate versions.
fn find_breaches(rules: &DenyRules, packages: &BTreeSet<SupplyPackage>) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    let allowed = allowed_licences(&rules.licenses.allow)?;
    for package in packages {
        let name = format!("{}@{}", package.name, package.version);
        match package.license.as_deref() {
            None => breaches.push(format!("{name} states no licence")),
            Some(text) if !is_allowed(text, &allowed)? => {
                breaches.push(format!("{name} is under `{text}`"));
            }
            Some(_) => {}
        }
        let registry = |source: &String| {
            let url = source.strip_prefix(REGISTRY);
            url.is_some_and(|url| rules.sources.allow_registry.iter().any(|own| own == url))
        };
        if let Some(source) = package.source.as_ref().filter(|source| !registry(source)) {
            breaches.push(format!("{name} comes from `{source}`"));
        }
    }
    breaches.extend(find_duplicates(&rules.bans.skip, packages));
    Ok(breaches)
}

fn allowed_licences(names: &[String]) -> Result<Vec<spdx::Licensee>> {
    let parse = |name: &String| {
        spdx::Licensee::parse(name).map_err(|error| anyhow::anyhow!("`{name}`: {error}"))
    };
    names.iter().map(parse).collect()
}

/// Whether the allowed licences satisfy a licence expression.
fn is_allowed(text: &str, allowed: &[spdx::Licensee]) -> Result<bool> {
    // The old form `MIT/Apache-2.0` means `OR`.
    let expression = spdx::Expression::parse_mode(text, spdx::ParseMode::LAX)
        .map_err(|error| anyhow::anyhow!("`{text}` is not a licence expression: {error}"))?;
    Ok(expression.evaluate(|wanted| allowed.iter().any(|own| own.satisfies(wanted))))
}

/// Crates with several versions not listed with a reason, and listed versions that are not in use.
fn find_duplicates(skip: &[SkipRule], packages: &BTreeSet<SupplyPackage>) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let listed = |name: &str, version: &str| {
        skip.iter().any(|skip| skip.package == format!("{name}@{version}"))
    };
    let mut breaches = Vec::new();
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let left = versions.iter().filter(|version| !listed(name, version)).count();
        if left > 1 {
            let all = versions.join(", ");
            breaches.push(format!("{name} is there as {all}: update, or list it with a reason"));
        }
    }
    for skip in skip {
        let (name, version) = skip.package.split_once('@').unwrap_or((&skip.package, ""));
        let there = versions.get(name).is_some_and(|all| all.len() > 1 && all.contains(&version));
        if !there {
            breaches.push(format!("`{}` is listed and is no duplicate", skip.package));
        }
        if skip.reason.trim().is_empty() {
            breaches.push(format!("`{}` is listed without a reason", skip.package));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "registry+https://registry.test/index";

    fn rules(skip: &str) -> DenyRules {
        let text = format!(
            "[graph]\ntargets = []\n[licenses]\nallow = ['MIT', 'Apache-2.0', \
             'Apache-2.0 WITH LLVM-exception']\n[bans]\nskip = [{skip}]\n[sources]\n\
             allow-registry = ['https://registry.test/index']\n"
        );
        toml::from_str(&text).unwrap()
    }

    fn package(name: &str, version: &str, license: Option<&str>, source: &str) -> SupplyPackage {
        SupplyPackage {
            name: name.to_owned(),
            version: version.to_owned(),
            id: format!("{name}#{version}"),
            license: license.map(str::to_owned),
            source: Some(source.to_owned()),
        }
    }

    fn found(skip: &str, packages: impl IntoIterator<Item = SupplyPackage>) -> Vec<String> {
        find_breaches(&rules(skip), &packages.into_iter().collect()).unwrap()
    }

    #[test]
    fn a_licence_counts_by_its_meaning() {
        for good in
            ["MIT", "GPL-3.0-only OR MIT", "MIT/Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        {
            assert_eq!(found("", [package("a", "1", Some(good), SOURCE)]), [""; 0], "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "ISC"] {
            assert_eq!(found("", [package("a", "1", Some(bad), SOURCE)]).len(), 1, "{bad}");
        }
        assert_eq!(found("", [package("a", "1", None, SOURCE)]).len(), 1);
    }

    #[test]
    fn another_source_is_a_breach() {
        for source in ["git+https://git.test/a", "registry+https://other.test/index"] {
            assert_eq!(found("", [package("a", "1", Some("MIT"), source)]).len(), 1, "{source}");
        }
    }

    #[test]
    fn a_second_version_needs_a_reason_that_is_still_needed() {
        let two = || ["1.0.0", "2.0.0"].map(|version| package("a", version, Some("MIT"), SOURCE));
        assert_eq!(found("", two()).len(), 1);
        let listed = "{ crate = 'a@1.0.0', reason = 'b holds it back' }";
        assert_eq!(found(listed, two()), [""; 0]);
        assert_eq!(found("{ crate = 'a@1.0.0', reason = ' ' }", two()).len(), 1);
        let [one, _] = two();
        assert_eq!(found(listed, [one]).len(), 1, "it is no duplicate any more");
    }
}
