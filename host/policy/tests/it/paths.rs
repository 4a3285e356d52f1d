//! Guest paths: a mount covers exactly the paths below it.

use std::path::{Component, Path};

use belljar_policy::{
    AskedRights, Grants, GuestPath, Mount, MountAccess, Rights, RightsQuestion, ToolAsk, ToolName,
    explain_tool,
};
use proptest::prelude::*;
use proptest::sample::select;

const PARTS: &[&str] =
    &["a", "b", "ab", "workspace", ".", "..", "...", "", ".belljar", "a b", "ä", "\u{7f}", "\0"];

/// Paths made of few names, so that one path is often below another.
fn path() -> impl Strategy<Value = String> {
    let parts = prop::collection::vec(select(PARTS), 0..5);
    (any::<bool>(), parts, any::<bool>()).prop_map(|(absolute, parts, slash)| {
        let start = if absolute { "/" } else { "" };
        let end = if slash { "/" } else { "" };
        format!("{start}{}{end}", parts.join("/"))
    })
}

/// The names of a path, if the path is absolute and has no `.` or `..`.
fn names(path: &str) -> Option<Vec<&str>> {
    let down = !path.split('/').any(|part| part == "." || part == "..");
    (path.starts_with('/') && down).then(|| {
        let normal = |part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        };
        Path::new(path).components().filter_map(normal).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn a_guest_path_is_absolute_plain_and_its_own_text(text in prop_oneof![path(), "\\PC{0,300}"]) {
        let Ok(guest) = GuestPath::new(&text) else { return Ok(()) };
        let plain = names(guest.as_str()).expect("absolute, without `.` and `..`");
        prop_assert!(!plain.is_empty() && guest.as_str().len() <= 255);
        prop_assert_eq!(format!("/{}", plain.join("/")), guest.as_str(), "no doubled slash");
        prop_assert!(!guest.as_str().contains(char::is_control));
        prop_assert_eq!(GuestPath::new(guest.as_str()), Ok(guest.clone()));
        prop_assert!(guest.covers_path(guest.as_str()));
    }

    #[test]
    fn a_mount_covers_what_lies_below_it_by_whole_names(mount in path(), other in path()) {
        let Ok(mount) = GuestPath::new(&mount) else { return Ok(()) };
        let above = names(mount.as_str()).expect("a plain path");
        if mount.covers_path(&other) {
            let below = names(&other).expect("only a path that goes down is covered");
            prop_assert!(below.starts_with(&above), "{} covers {:?}", mount, other);
        } else if let Ok(other) = GuestPath::new(&other) {
            let below = names(other.as_str()).expect("a plain path");
            prop_assert!(!below.starts_with(&above), "{} does not cover {}", mount, other);
        }
    }

    /// The answer of `explain` about a path agrees with the mounts of the tool's rights. A path that contains
    /// `..` is always denied.
    #[test]
    fn a_path_is_allowed_only_below_a_mount_with_that_access(
        mounts in prop::collection::vec((path(), select(vec![MountAccess::Read, MountAccess::ReadWrite])), 0..4),
        path in path(),
        wanted in select(vec![MountAccess::Read, MountAccess::ReadWrite]),
    ) {
        let tool = ToolName::new("file_read").unwrap();
        let mut grants = Grants::none();
        grants.tools.insert(tool, belljar_policy::CallPermission::Allow);
        for (guest, access) in mounts {
            let Ok(guest) = GuestPath::new(&guest) else { continue };
            if !grants.mounts.iter().any(|mount| mount.guest == guest) {
                grants.mounts.push(Mount { guest, host: "/srv".into(), access });
            }
        }
        let ask = ToolAsk { mounts: Some(MountAccess::ReadWrite), ..ToolAsk::default() };
        let question = RightsQuestion::Path(path.clone(), wanted);
        let answer = explain_tool("file_read", &question, &AskedRights::default(), &ask, &grants, None);
        let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
        let lies_below = |mount: &Mount| {
            let above = names(mount.guest.as_str()).expect("a plain path");
            names(&path).is_some_and(|below| below.starts_with(&above)) && mount.access >= wanted
        };
        if answer.decided_by.is_none() {
            prop_assert!(rights.mounts().iter().any(lies_below), "{:?} by {:?}", path, grants.mounts);
        } else if GuestPath::new(&path).is_ok() {
            prop_assert!(!rights.mounts().iter().any(lies_below), "{:?} by {:?}", path, grants.mounts);
        }
    }
}

/// The order of access levels: combining keeps the lesser level.
#[test]
fn an_overlay_is_more_than_reading_and_less_than_writing() {
    assert!(
        MountAccess::Read < MountAccess::Overlay && MountAccess::Overlay < MountAccess::ReadWrite
    );
    let left =
        belljar_policy::WriteScope::Nowhere.left_of(MountAccess::Overlay, &GuestPath::workspace());
    assert_eq!(left, MountAccess::Read);
    assert_eq!(MountAccess::ReadWrite.min(MountAccess::Overlay), MountAccess::Overlay);
}
