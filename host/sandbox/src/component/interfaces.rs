//! The interfaces that the host provides: one table for linking, refusals and `inspect`.

use crate::Need;

/// One interface that the host provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Package and name, without a version, for example `wasi:clocks/wall-clock`.
    pub(crate) name: &'static str,
    versions: Versions,
    /// The condition under which the interface works.
    pub(crate) need: Need,
}

/// The versions that the host supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Versions {
    /// Every `0.2.n` without a suffix.
    Wasi02,
    /// Every `0.1.n` and `0.2.n` without a suffix.
    Belljar,
    /// Every `0.2.n` without a suffix.
    Belljar02,
    /// Only this version, because versions before a release are incompatible.
    Exact(&'static str),
}

const fn wasi(name: &'static str, need: Need) -> Interface {
    Interface { name, versions: Versions::Wasi02, need }
}

const fn belljar(name: &'static str, versions: Versions, need: Need) -> Interface {
    Interface { name, versions, need }
}

/// All provided interfaces.
///
/// `wasi:filesystem` is always linked to the real host: without a mount, a guest only gets an empty list of
/// preopened directories, so its standard library reports an ordinary "no such file".
/// `wasi:sockets/{network,instance-network}` are inert: they return a useless handle, which C libraries
/// request before they get "access denied".
pub(crate) const INTERFACES: &[Interface] = &[
    belljar("belljar:tool/log", Versions::Belljar, Need::Contract),
    belljar("belljar:tool/progress", Versions::Belljar, Need::Contract),
    belljar("belljar:tool/types", Versions::Belljar02, Need::Contract),
    belljar("belljar:tool/peers", Versions::Belljar02, Need::Peers),
    wasi("wasi:io/error", Need::Base),
    wasi("wasi:io/poll", Need::Base),
    wasi("wasi:io/streams", Need::Base),
    wasi("wasi:clocks/monotonic-clock", Need::Base),
    wasi("wasi:clocks/wall-clock", Need::Base),
    wasi("wasi:random/random", Need::Base),
    wasi("wasi:random/insecure", Need::Base),
    wasi("wasi:random/insecure-seed", Need::Base),
    wasi("wasi:cli/environment", Need::Base),
    wasi("wasi:cli/exit", Need::Base),
    wasi("wasi:cli/stdin", Need::Base),
    wasi("wasi:cli/stdout", Need::Base),
    wasi("wasi:cli/stderr", Need::Base),
    wasi("wasi:cli/terminal-input", Need::Base),
    wasi("wasi:cli/terminal-output", Need::Base),
    wasi("wasi:cli/terminal-stdin", Need::Base),
    wasi("wasi:cli/terminal-stdout", Need::Base),
    wasi("wasi:cli/terminal-stderr", Need::Base),
    wasi("wasi:filesystem/types", Need::Files),
    wasi("wasi:filesystem/preopens", Need::Files),
    wasi("wasi:http/types", Need::Network),
    wasi("wasi:http/outgoing-handler", Need::Network),
    Interface {
        name: "wasi:config/store",
        versions: Versions::Exact("0.2.0-rc.1"),
        need: Need::Config,
    },
    wasi("wasi:sockets/network", Need::Base),
    wasi("wasi:sockets/instance-network", Need::Base),
    wasi("wasi:sockets/ip-name-lookup", Need::Denied),
    wasi("wasi:sockets/tcp", Need::Denied),
    wasi("wasi:sockets/tcp-create-socket", Need::Denied),
    wasi("wasi:sockets/udp", Need::Denied),
    wasi("wasi:sockets/udp-create-socket", Need::Denied),
];

/// The interface of an import, if the host supports its version.
pub(crate) fn interface(import: &str) -> Option<&'static Interface> {
    let (name, version) = import.split_once('@')?;
    let known = INTERFACES.iter().find(|known| known.name == name)?;
    let fits = match known.versions {
        Versions::Wasi02 | Versions::Belljar02 => is_patch_of("0.2.", version),
        Versions::Belljar => is_patch_of("0.1.", version) || is_patch_of("0.2.", version),
        Versions::Exact(exact) => version == exact,
    };
    fits.then_some(known)
}

/// The condition under which an import works.
pub(crate) fn need(import: &str) -> Need {
    interface(import).map_or(Need::Unknown, |known| known.need)
}

/// Whether an export is that of the tools' contract.
pub(crate) fn is_tool_export(name: &str) -> bool {
    name.split_once('@').is_some_and(|(name, version)| {
        let served = is_patch_of("0.1.", version) || is_patch_of("0.2.", version);
        name == "belljar:tool/tools" && served
    })
}

/// Whether an export is that of the hooks' contract.
pub(crate) fn is_hook_export(name: &str) -> bool {
    name.split_once('@')
        .is_some_and(|(name, version)| name == "belljar:hook/hooks" && is_patch_of("0.1.", version))
}

/// Whether an export is that of a command.
pub(crate) fn is_command_export(name: &str) -> bool {
    name.split_once('@')
        .is_some_and(|(name, version)| name == "wasi:cli/run" && is_patch_of("0.2.", version))
}

fn is_patch_of(prefix: &str, version: &str) -> bool {
    version
        .strip_prefix(prefix)
        .is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_released_versions_of_known_interfaces_are_known() {
        assert_eq!(need("wasi:filesystem/types@0.2.6"), Need::Files);
        assert_eq!(need("wasi:sockets/tcp@0.2.0"), Need::Denied);
        assert_eq!(need("wasi:config/store@0.2.0-rc.1"), Need::Config);
        assert_eq!(need("belljar:tool/log@0.1.0"), Need::Contract);
        assert_eq!(need("belljar:tool/log@0.2.1"), Need::Contract);
        assert_eq!(need("belljar:tool/peers@0.2.0"), Need::Peers);
        for unknown in [
            "wasi:filesystem/types",
            "wasi:filesystem/types@0.3.0",
            "wasi:filesystem/types@0.2.0-rc-1",
            "wasi:filesystem/types@0.2.",
            "wasi:config/store@0.2.0",
            "wasi:http/incoming-handler@0.2.0",
            "belljar:tool/peers@0.1.0",
            "belljar:tool/log@0.3.0",
            "env",
        ] {
            assert_eq!(need(unknown), Need::Unknown, "{unknown}");
        }
    }
}
