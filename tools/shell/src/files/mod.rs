//! The files a script sees: the jar's mounts, a `/tmp` in memory, and nothing else.

mod errors;
mod modes;
mod mount;
mod outside;

pub(crate) use mount::Disk;
pub use mount::Mount;
pub(crate) use outside::Outside;

/// The directories that this instance was given.
#[cfg(target_family = "wasm")]
pub(crate) fn mounts() -> Vec<Mount> {
    let given = wasip2::filesystem::preopens::get_directories();
    given.into_iter().map(|(_, name)| Mount { host: name.clone().into(), guest: name }).collect()
}

/// Natively the workspace is the current directory.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn mounts() -> Vec<Mount> {
    vec![Mount { guest: crate::session::START.to_owned(), host: ".".into() }]
}
