//! Rights with other mounts: further folders to read, and no lasting effects.

use super::{AskedRights, Rights};
use crate::{HostScope, Mount, MountAccess, MountAsk};

impl Rights {
    /// The same rights with further directories to read, whose files belong to what the agent may use anyway,
    /// for example the folders of skills. Each is read-only, whatever `access` states. One that the definition's
    /// `mounts` leave out is not added, and neither is one whose guest path overlaps that of a mount.
    #[must_use]
    pub fn with_folders(
        mut self,
        folders: impl IntoIterator<Item = Mount>,
        asked: &AskedRights,
    ) -> Self {
        for folder in folders {
            let wanted = |asks: &Vec<MountAsk>| asks.iter().any(|ask| ask.guest == folder.guest);
            let overlaps = |mount: &Mount| {
                mount.guest.covers_path(folder.guest.as_str())
                    || folder.guest.covers_path(mount.guest.as_str())
            };
            if asked.mounts.as_ref().is_none_or(wanted) && !self.mounts.iter().any(overlaps) {
                self.mounts.push(Mount { access: MountAccess::Read, ..folder });
            }
        }
        self
    }

    /// The same rights where no overlay can be stored: overlaid mounts become read-only.
    #[must_use]
    pub fn without_overlays(mut self) -> Self {
        for mount in self.mounts.iter_mut().filter(|mount| mount.access == MountAccess::Overlay) {
            mount.access = MountAccess::Read;
        }
        self
    }

    /// Returns the rights without lasting effects in mounts: writable mounts become overlays. Unless
    /// `network` is set, all hosts and secrets are removed too.
    #[must_use]
    pub fn for_rehearsal(mut self, network: bool) -> Self {
        for mount in &mut self.mounts {
            mount.access = mount.access.min(MountAccess::Overlay);
        }
        if !network {
            self.hosts = HostScope::none();
            self.secrets.clear();
        }
        self
    }
}
