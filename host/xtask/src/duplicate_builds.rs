//! `cargo xtask duplicate-builds`: checks that no dependency is compiled twice.
//!
//! Cargo compiles a crate once for each set of features and settings. For example, a feature that only a
//! build script enables adds a second build, and its time.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Builds the tests, which takes no time if they are built already, and fails if a dependency has several
/// builds.
pub(crate) fn run(root: &Path) -> Result<()> {
    let built = crate::cargo_command()
        .args(["test", "--no-run", "--quiet", "--message-format", "json"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("failed to start cargo")?;
    ensure!(built.status.success(), "the tests do not build");
    let told = String::from_utf8(built.stdout).context("cargo's messages are no text")?;
    let (count, twice) = find_twice_built(&told);
    ensure!(count > 0, "cargo named no dependency");
    ensure!(
        twice.is_empty(),
        "compiled more than once: {}\nname the features of both in one place, as the \
         build-dependencies of host/cli do",
        twice.join("; ")
    );
    crate::print_line(&format!("{count} dependencies, each compiled once"));
    Ok(())
}

/// The number of libraries from a registry in cargo's messages, and a description of each library with
/// several builds.
fn find_twice_built(messages: &str) -> (usize, Vec<String>) {
    let mut builds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let (id, target) = (message["package_id"].as_str(), &message["target"]);
        let Some(id) = id.filter(|id| id.starts_with("registry+")) else { continue };
        let is =
            |kind: &str| target["kind"].as_array().is_some_and(|all| all.contains(&kind.into()));
        if message["reason"] != "compiler-artifact" || is("custom-build") {
            continue;
        }
        let name = id.rsplit_once('#').map_or(id, |(_, name)| name);
        let how = format!("{} {}", message["features"], message["profile"]["opt_level"]);
        builds.entry(name.to_owned()).or_default().push(how);
    }
    let several = builds.iter().filter(|(_, how)| how.len() > 1);
    let told = several.map(|(name, how)| format!("{name} with {}", how.join(" and ")));
    (builds.len(), told.collect())
}

#[cfg(test)]
mod tests {
    use super::find_twice_built;

    #[test]
    fn a_dependency_with_two_builds_is_named_with_what_they_differ_in() {
        let artifact = |id: &str, kind: &str, features: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"{id}","target":{{"kind":["{kind}"]}},"profile":{{"opt_level":"0"}},"features":[{features}]}}"#
            )
        };
        let other = "registry+https://example.org/index#log@0.4.1";
        let messages = [
            artifact(other, "lib", ""),
            artifact(other, "custom-build", ""),
            artifact(other, "lib", r#""std""#),
            artifact("registry+https://example.org/index#url@2.5.0", "lib", ""),
            artifact("path+file:///here#own@0.1.0", "lib", ""),
            artifact("path+file:///here#own@0.1.0", "lib", ""),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let (count, found) = find_twice_built(&messages.join("\n"));
        assert_eq!(count, 2);
        assert_eq!(found, [r#"log@0.4.1 with [] "0" and ["std"] "0""#]);
    }
}
