//! Restricts the files a process can reach, with landlock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    NetPort, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use crate::wall::AllowedAccess;

/// The version of landlock that is asked for: the newest one that was tested. An older kernel enforces the
/// part it knows.
const WANTED: ABI = ABI::V7;

/// Directories of `/proc` that stay open for good: a closed one may come back with another identity, which
/// its rule would not match.
static HELD: Mutex<Vec<PathFd>> = Mutex::new(Vec::new());

/// The TCP connections that a process may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TcpReach {
    Nowhere,
    /// To this port, at any address.
    OnePort(u16),
    Anywhere,
}

/// Confines this thread and threads made later. Returns the version of the interface in force, and the parts
/// that an old kernel lacks.
pub(crate) fn confine_files(
    paths: &BTreeMap<PathBuf, AllowedAccess>,
    reach: TcpReach,
) -> Result<(u32, Option<String>), String> {
    let status = restrict_paths(paths, reach).map_err(|error| error.to_string())?;
    let version = match status.landlock {
        LandlockStatus::NotEnabled => return Err("the kernel has it switched off".to_owned()),
        LandlockStatus::NotImplemented => return Err("the kernel does not have it".to_owned()),
        LandlockStatus::Available { effective_abi, kernel_abi } => kernel_abi
            .and_then(|version| u32::try_from(version).ok())
            .unwrap_or(effective_abi as u32),
    };
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok((version, None)),
        RulesetStatus::PartiallyEnforced => {
            let wanted = WANTED as u32;
            let why = format!("landlock: the kernel has version {version} of it, not {wanted}");
            Ok((version, Some(why)))
        }
        RulesetStatus::NotEnforced => Err("the kernel did not take it".to_owned()),
    }
}

fn restrict_paths(
    paths: &BTreeMap<PathBuf, AllowedAccess>,
    reach: TcpReach,
) -> Result<RestrictionStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        // This process opens no port; its outgoing connections pass the network gate.
        .handle_access(AccessNet::BindTcp)?
        // No signals to processes outside, and no connection to their abstract sockets: the broker and its
        // children are reached by requests only.
        .scope(Scope::from_all(WANTED))?;
    if reach != TcpReach::Anywhere {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut created = ruleset.create()?;
    if let TcpReach::OnePort(port) = reach {
        created = created.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    for (path, allowed) in paths {
        // A path that does not exist needs no rule.
        let Ok(fd) = PathFd::new(path) else { continue };
        if path.starts_with("/proc") {
            hold_open(path);
        }
        let rights = access_rights(*allowed, path);
        created = created.add_rule(PathBeneath::new(fd, rights))?;
    }
    created.restrict_self()
}

fn hold_open(path: &Path) {
    if let Ok(fd) = PathFd::new(path) {
        HELD.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(fd);
    }
}

/// The rights of landlock for an access. `Empty` becomes the right to remove directories, which the kernel
/// allows for empty ones only. The rule of a file gets no rights of directories, for example to list.
fn access_rights(allowed: AllowedAccess, path: &Path) -> BitFlags<AccessFs> {
    let rights = match allowed {
        AllowedAccess::Empty => return AccessFs::RemoveDir.into(),
        AllowedAccess::List => AccessFs::ReadDir.into(),
        AllowedAccess::Read => make_bitflags!(AccessFs::{ReadFile | ReadDir}),
        AllowedAccess::Run => make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute}),
        AllowedAccess::Write => make_bitflags!(AccessFs::{
            ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | RemoveFile | RemoveDir
                | Refer
        }),
        AllowedAccess::Device => make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev}),
    };
    if path.is_dir() { rights } else { rights & AccessFs::from_file(WANTED) }
}
