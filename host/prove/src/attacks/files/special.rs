//! Attacks by special files: FIFOs, sockets and devices.

use belljar_policy::MountAccess;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use super::{open_writer, place_at, place_itself, read_step};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Stopped};
use crate::guests;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "files-fifo",
        kind: AttackKind::Files,
        tries: "opens a FIFO, which would hold a thread of the host for good",
        stopped_by: "nothing but regular files and directories is opened (INV-8)",
        told: "access",
        embedded: true,
        run: |arena| Box::pin(open_fifo(arena)),
    },
    Attack {
        id: "files-socket",
        kind: AttackKind::Files,
        tries: "opens a socket that lies in the mount",
        stopped_by: "nothing but regular files and directories is opened (INV-8)",
        told: "access",
        embedded: true,
        run: |arena| Box::pin(open_socket(arena)),
    },
    Attack {
        id: "files-devices",
        kind: AttackKind::Files,
        tries: "reads devices through a mount of `/dev`",
        stopped_by: "nothing but regular files and directories is opened (INV-8)",
        told: "access",
        embedded: true,
        run: |arena| Box::pin(read_devices(arena)),
    },
    Attack {
        id: "files-own-process",
        kind: AttackKind::Files,
        tries: "leaves a mount of `/proc/self` through the links of the system",
        stopped_by: "links of the system lead out like any other (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(read_proc(arena)),
    },
];

/// Attack `files-fifo`: the attacker opens a FIFO, which would hold a thread of the host for good.
async fn open_fifo(arena: &Arena) -> Stopped {
    let path = arena.workspace().join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).map_err(std::io::Error::from)?;
    expect_open_refused(arena, "fifo").await
}

/// Attack `files-socket`: the attacker opens a socket that lies in the mount.
async fn open_socket(arena: &Arena) -> Stopped {
    let _listener = std::os::unix::net::UnixListener::bind(arena.workspace().join("socket"))?;
    expect_open_refused(arena, "socket").await
}

/// Checks that opening the file is refused with every combination of flags.
async fn expect_open_refused(arena: &Arena, name: &str) -> Stopped {
    let open = |open: &str, mode: &str| json!({ "do": "open", "place": place_at(name), "open": open, "mode": mode });
    let jar = open_writer(arena).await?;
    let steps = json!([
        read_step(name),
        open("", "read"),
        open("", "write"),
        open("", "read write"),
        open("create", "write"),
        open("truncate", "write"),
    ]);
    jar.run_steps(steps).await?.all_refused(0, &["access"])
}

/// Attack `files-devices`: the attacker reads devices through a mount of `/dev`.
async fn read_devices(arena: &Arena) -> Stopped {
    let jar = arena
        .jar_builder(&[guests::PROBE])
        .mount_host("dev", "/dev", MountAccess::Read)
        .open()
        .await?;
    let device = |name: &str| json!({ "do": "read-file", "place": { "at": "/dev", "path": name, "follow": true } });
    let steps = json!([device("zero"), device("null"), device("random"), device("tty")]);
    jar.run_steps(steps).await?.all_refused(0, &["access", "no-entry"])
}

/// Attack `files-own-process`: the attacker leaves a mount of `/proc/self` through the links of the system.
async fn read_proc(arena: &Arena) -> Stopped {
    let builder = arena.jar_builder(&[guests::PROBE]);
    let jar = builder.mount_host("proc", "/proc/self", MountAccess::Read).open().await?;
    let there = |path: &str| json!({ "at": "/proc", "path": path, "follow": true });
    let steps = json!([
        { "do": "list", "place": there("root") },
        { "do": "list", "place": there("cwd") },
        { "do": "read-file", "place": there("exe") },
        { "do": "read-file", "place": there("root/etc/passwd") },
        { "do": "list", "place": there("task/../cwd") },
        { "do": "stat", "place": place_itself("../x") },
    ]);
    jar.run_steps(steps).await?.all_refused(0, &["not-permitted"])
}
