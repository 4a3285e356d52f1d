//! The table of the interfaces that the host provides, used for linking, for refusals and by `inspect`.

use crate::ImportNeed;

/// An interface the host provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostInterface {
    /// The package and the name without a version, for example `wasi:clocks/wall-clock`.
    pub(crate) name: &'static str,
    versions: InterfaceVersions,
    /// What a tool needs so that the interface works.
    pub(crate) need: ImportNeed,
}

/// The versions of an interface that the host supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InterfaceVersions {
    /// Every version `0.2.n` without a suffix, for WASI's interfaces.
    Wasi02,
    /// Every version `0.1.n` and `0.2.n` without a suffix.
    Belljar,
    /// Every version `0.2.n` without a suffix, for interfaces the contract 0.1 lacks.
    Belljar02,
    /// This version only, because versions before a release are incompatible.
    Exact(&'static str),
}

const fn wasi_interface(name: &'static str, need: ImportNeed) -> HostInterface {
    HostInterface { name, versions: InterfaceVersions::Wasi02, need }
}

const fn belljar_interface(
    name: &'static str,
    versions: InterfaceVersions,
    need: ImportNeed,
) -> HostInterface {
    HostInterface { name, versions, need }
}

/// All interfaces the host provides.
///
/// `wasi:filesystem` is always linked to the real host. A guest without a mount gets an empty list of
/// directories, so its standard library reports an ordinary "no such file". `wasi:sockets/network` and
/// `instance-network` do nothing: they return a useless handle, which C libraries request before they ask
/// for a socket, which is refused.
pub(crate) const INTERFACES: &[HostInterface] = &[
    belljar_interface("belljar:tool/log", InterfaceVersions::Belljar, ImportNeed::Contract),
    belljar_interface("belljar:tool/progress", InterfaceVersions::Belljar, ImportNeed::Contract),
    belljar_interface("belljar:tool/types", InterfaceVersions::Belljar02, ImportNeed::Contract),
    belljar_interface("belljar:tool/peers", InterfaceVersions::Belljar02, ImportNeed::Peers),
    wasi_interface("wasi:io/error", ImportNeed::Base),
    wasi_interface("wasi:io/poll", ImportNeed::Base),
    wasi_interface("wasi:io/streams", ImportNeed::Base),
    wasi_interface("wasi:clocks/monotonic-clock", ImportNeed::Base),
    wasi_interface("wasi:clocks/wall-clock", ImportNeed::Base),
    wasi_interface("wasi:random/random", ImportNeed::Base),
    wasi_interface("wasi:random/insecure", ImportNeed::Base),
    wasi_interface("wasi:random/insecure-seed", ImportNeed::Base),
    wasi_interface("wasi:cli/environment", ImportNeed::Base),
    wasi_interface("wasi:cli/exit", ImportNeed::Base),
    wasi_interface("wasi:cli/stdin", ImportNeed::Base),
    wasi_interface("wasi:cli/stdout", ImportNeed::Base),
    wasi_interface("wasi:cli/stderr", ImportNeed::Base),
    wasi_interface("wasi:cli/terminal-input", ImportNeed::Base),
    wasi_interface("wasi:cli/terminal-output", ImportNeed::Base),
    wasi_interface("wasi:cli/terminal-stdin", ImportNeed::Base),
    wasi_interface("wasi:cli/terminal-stdout", ImportNeed::Base),
    wasi_interface("wasi:cli/terminal-stderr", ImportNeed::Base),
    wasi_interface("wasi:filesystem/types", ImportNeed::Files),
    wasi_interface("wasi:filesystem/preopens", ImportNeed::Files),
    wasi_interface("wasi:http/types", ImportNeed::Network),
    wasi_interface("wasi:http/outgoing-handler", ImportNeed::Network),
    HostInterface {
        name: "wasi:config/store",
        versions: InterfaceVersions::Exact("0.2.0-rc.1"),
        need: ImportNeed::Config,
    },
    wasi_interface("wasi:sockets/network", ImportNeed::Base),
    wasi_interface("wasi:sockets/instance-network", ImportNeed::Base),
    wasi_interface("wasi:sockets/ip-name-lookup", ImportNeed::Denied),
    wasi_interface("wasi:sockets/tcp", ImportNeed::Denied),
    wasi_interface("wasi:sockets/tcp-create-socket", ImportNeed::Denied),
    wasi_interface("wasi:sockets/udp", ImportNeed::Denied),
    wasi_interface("wasi:sockets/udp-create-socket", ImportNeed::Denied),
];

/// The interface for an import, if the host supports the import's version.
pub(crate) fn find_interface(import: &str) -> Option<&'static HostInterface> {
    let (name, version) = import.split_once('@')?;
    let known = INTERFACES.iter().find(|known| known.name == name)?;
    let fits = match known.versions {
        InterfaceVersions::Wasi02 | InterfaceVersions::Belljar02 => is_patch_of("0.2.", version),
        InterfaceVersions::Belljar => is_patch_of("0.1.", version) || is_patch_of("0.2.", version),
        InterfaceVersions::Exact(exact) => version == exact,
    };
    fits.then_some(known)
}

/// What a tool needs so that this import works.
pub(crate) fn import_need(import: &str) -> ImportNeed {
    find_interface(import).map_or(ImportNeed::Unknown, |known| known.need)
}

/// Whether an export's name is the tool contract's.
pub(crate) fn is_tool_export(name: &str) -> bool {
    name.split_once('@').is_some_and(|(name, version)| {
        let served = is_patch_of("0.1.", version) || is_patch_of("0.2.", version);
        name == "belljar:tool/tools" && served
    })
}

/// Whether an export's name is the hook contract's.
pub(crate) fn is_hook_export(name: &str) -> bool {
    name.split_once('@')
        .is_some_and(|(name, version)| name == "belljar:hook/hooks" && is_patch_of("0.1.", version))
}

/// Whether an export's name is `wasi:cli/run`, which every program built for WASI exports.
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
        assert_eq!(import_need("wasi:filesystem/types@0.2.6"), ImportNeed::Files);
        assert_eq!(import_need("wasi:sockets/tcp@0.2.0"), ImportNeed::Denied);
        assert_eq!(import_need("wasi:config/store@0.2.0-rc.1"), ImportNeed::Config);
        assert_eq!(import_need("belljar:tool/log@0.1.0"), ImportNeed::Contract);
        assert_eq!(import_need("belljar:tool/log@0.2.1"), ImportNeed::Contract);
        assert_eq!(import_need("belljar:tool/peers@0.2.0"), ImportNeed::Peers);
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
            assert_eq!(import_need(unknown), ImportNeed::Unknown, "{unknown}");
        }
    }
}
