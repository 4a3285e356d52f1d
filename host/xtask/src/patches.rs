//! Lists newer patch releases of the dependencies that matter most for security.
//!
//! A newer patch is only reported and never fails the check: a patch from last night is no fault of the
//! change under test. Without a network, nothing is reported.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

/// The watched crates: the WebAssembly engine, the OS sandbox, parsers of data from strangers, cryptography
/// and the store. A name that ends in `*` stands for all crates with that beginning.
const WATCHED: &[&str] = &[
    "aho-corasick",
    "axum*",
    "bytes",
    "cap-*",
    "cranelift*",
    "flate2",
    "getrandom",
    "h2",
    "hmac",
    "http*",
    "hyper*",
    "jsonschema",
    "landlock",
    "libsqlite3-sys",
    "memchr",
    "mio",
    "regalloc2",
    "regex*",
    "reqwest",
    "ring",
    "rustix",
    "rustls*",
    "seccompiler",
    "secrecy",
    "serde-saphyr",
    "serde_json",
    "sha2",
    "smallvec",
    "sqlx*",
    "subtle",
    "tar",
    "tempfile",
    "tokio*",
    "toml*",
    "tower*",
    "tungstenite",
    "url",
    "wasm*",
    "webpki*",
    "wit-*",
    "zeroize",
];

/// A stage of `cargo xtask check`: lists newer patches, and always succeeds.
pub(crate) fn check_patches(root: &Path) -> Result<()> {
    let asked = Command::new("cargo")
        .args(["update", "--dry-run", "--color", "never"])
        .current_dir(root)
        .stdin(Stdio::null())
        .output();
    let Some(done) = asked.ok().filter(|done| done.status.success()) else {
        crate::print_line("patches: not asked, the registry did not answer");
        return Ok(());
    };
    let newer = newer_patches(&String::from_utf8_lossy(&done.stderr));
    for line in &newer {
        crate::print_line(&format!("patches: {line}"));
    }
    if !newer.is_empty() {
        crate::print_line("patches: `cargo update NAME` takes one; read what it changes");
    }
    Ok(())
}

/// The watched crates among the lines `Updating NAME vOLD -> vNEW` of cargo's output.
fn newer_patches(told: &str) -> Vec<String> {
    let update = |line: &str| {
        let mut words = line.trim().strip_prefix("Updating ")?.split(' ');
        let (name, old, arrow, new) = (words.next()?, words.next()?, words.next()?, words.next()?);
        (arrow == "->" && is_watched(name)).then(|| format!("{name} {old} -> {new}"))
    };
    told.lines().filter_map(update).collect()
}

fn is_watched(name: &str) -> bool {
    WATCHED.iter().any(|watched| match watched.strip_suffix('*') {
        Some(family) => name.starts_with(family),
        None => name == *watched,
    })
}

#[cfg(test)]
mod tests {
    use super::newer_patches;

    #[test]
    fn a_newer_patch_of_what_security_rests_on_is_listed_and_others_are_not() {
        let told = "    Updating crates.io index\n     Locking 3 packages to latest versions\n\
                    \x20   Updating bstr v1.13.1 -> v1.14.0\n\
                    \x20   Updating landlock v0.4.7 -> v0.4.8\n\
                    \x20   Updating rustls-webpki v0.103.16 -> v0.103.17\n";
        assert_eq!(
            newer_patches(told),
            ["landlock v0.4.7 -> v0.4.8", "rustls-webpki v0.103.16 -> v0.103.17"]
        );
    }
}
