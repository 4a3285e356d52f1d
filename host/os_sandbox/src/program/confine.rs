//! The wall of a program, raised before the program's first instruction.

use std::path::Path;

use super::Program;
use crate::wall::{AllowedAccess, SYSTEM, Wall, other_threads};

/// The oldest version of landlock that prevents truncating an outside file by its path.
const LEAST_LANDLOCK: u32 = 3;

/// The version that restricts signals to processes behind the wall. On an older kernel a program can only
/// signal itself.
const SCOPES_SIGNALS: u32 = 6;

/// The directories of the system's programs and their libraries, without [`KEPT_OUT`].
const PROGRAMS: &[&str] = &["/bin", "/gnu/store", "/lib", "/lib64", "/nix/store", "/sbin", "/usr"];

/// Settings, states and keys of services inside readable directories: of software built on this machine, and
/// of TLS libraries with unusual paths.
const KEPT_OUT: &[&str] = &[
    "/usr/etc",
    "/usr/lib/ssl/private",
    "/usr/local/apache2/conf",
    "/usr/local/etc",
    "/usr/local/lib/ssl/private",
    "/usr/local/nginx/conf",
    "/usr/local/openssl/private",
    "/usr/local/ssl/private",
    "/usr/local/var",
    "/usr/share/ssl/private",
];

/// Files of the machine that language runtimes read: none about other processes, and only public files of
/// `/etc`.
const MACHINE: &[&str] = &[
    "/dev/zero",
    "/etc/gitconfig",
    "/etc/lsb-release",
    "/etc/mime.types",
    "/etc/os-release",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
];

/// Confines this process to the program's grants.
///
/// # Errors
///
/// A part of the confinement is missing. The program must not be started then.
pub(super) fn confine_to_grants(program: &Program) -> Result<(), String> {
    match other_threads()? {
        0 => {}
        count => return Err(format!("{count} threads would stay outside")),
    }
    let paths = program_wall(program)?.let_through();
    let no_sandbox =
        |part: &str, why: String| format!("the OS sandbox does not stand: {part}: {why}");
    let (version, _) = crate::files::confine_files(&paths, program.network)
        .map_err(|why| no_sandbox("landlock", why))?;
    if version < LEAST_LANDLOCK {
        let why =
            format!("the kernel has version {version} of it, and {LEAST_LANDLOCK} is the least");
        return Err(no_sandbox("landlock", why));
    }
    crate::process::drop_privileges().map_err(|error| format!("giving up privileges: {error}"))?;
    let signals = version >= SCOPES_SIGNALS;
    crate::calls::confine_program(program.network, program.processes > 0, signals)
        .map_err(|why| no_sandbox("seccomp", why))
}

/// The wall around the system's files, the same for every program.
fn system_wall() -> Wall {
    let mut wall = Wall::default();
    for path in SYSTEM.iter().chain(MACHINE) {
        wall.allow_path(Path::new(path), AllowedAccess::Read);
    }
    for path in PROGRAMS {
        wall.allow_path(Path::new(path), AllowedAccess::Run);
    }
    for path in KEPT_OUT {
        wall.exclude_directory(Path::new(path));
    }
    wall.allow_certificates();
    wall.keep_keys_out();
    wall
}

/// The wall of a program: the system's files and the operator's grants. Grants come last, so that a granted
/// directory is let through even if the system's part excludes it.
fn program_wall(program: &Program) -> Result<Wall, String> {
    let mut wall = Wall::default();
    for (path, allowed) in system_wall().let_through() {
        wall.allow_path(&path, allowed);
    }
    // No terminal, because a program must not prompt the person.
    wall.allow_path(Path::new("/dev/null"), AllowedAccess::Device);
    wall.allow_path(&program.path, AllowedAccess::Run);
    let given = program.read.iter().map(|path| (path, AllowedAccess::Run));
    for (path, allowed) in
        given.chain(program.write.iter().map(|path| (path, AllowedAccess::Write)))
    {
        if !path.exists() {
            return Err(format!("`{}` of its directories is not there", path.to_string_lossy()));
        }
        wall.allow_path(path, allowed);
    }
    Ok(wall)
}
