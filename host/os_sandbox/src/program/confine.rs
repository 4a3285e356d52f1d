//! Confines a program, before its first instruction.

use std::path::Path;

use super::Program;
use crate::files::TcpReach;
use crate::wall::{AllowedAccess, SYSTEM, Wall, other_threads};

/// The oldest version of landlock that prevents truncating a file outside by its path.
const LEAST_LANDLOCK: u32 = 3;

/// The version of landlock that lets a program signal processes in its own OS sandbox only. On an older
/// kernel a program may signal itself only.
const SCOPES_SIGNALS: u32 = 6;

/// The system's directories of programs and libraries. A confined program may read and run the files in
/// them, except in the directories of [`KEPT_OUT`].
const PROGRAMS: &[&str] = &["/bin", "/gnu/store", "/lib", "/lib64", "/nix/store", "/sbin", "/usr"];

/// Directories inside of readable ones that contain settings, data and keys of services: of software that
/// was built on the local machine, and of TLS libraries in unusual places.
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

/// Files about the machine that language runtimes read. None is about other processes, and those of `/etc`
/// are public.
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

/// Confines the current process to what the operator granted the program.
///
/// # Errors
///
/// A part of the OS sandbox cannot be put in force. The program must not be started then.
pub(super) fn confine_to_grants(program: &Program) -> Result<(), String> {
    match other_threads()? {
        0 => {}
        count => return Err(format!("{count} threads would stay outside")),
    }
    let paths = program_wall(program)?.let_through();
    let no_sandbox =
        |part: &str, why: String| format!("the OS sandbox does not stand: {part}: {why}");
    let reach = match (program.network, program.only_port) {
        (false, _) => TcpReach::Nowhere,
        (true, Some(port)) => TcpReach::OnePort(port),
        (true, None) => TcpReach::Anywhere,
    };
    let (version, _) =
        crate::files::confine_files(&paths, reach).map_err(|why| no_sandbox("landlock", why))?;
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

/// The OS sandbox around the files of the system, the same for every program.
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

/// The OS sandbox of a program: the files of the system, and the operator's grants. Grants come last, so
/// that a granted directory is allowed even if the system's part leaves it out.
fn program_wall(program: &Program) -> Result<Wall, String> {
    let mut wall = Wall::default();
    for (path, allowed) in system_wall().let_through() {
        wall.allow_path(&path, allowed);
    }
    // Not the terminal, because a program must not prompt the person.
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
