//! Attacks on files: by their paths, by file handles, and by notifications.

use super::{
    ARGUMENTS, CALLS, ENDS, INTRUDERS, KEPT, PATHS, TLS_KEYS, WORKS, WallAct, control_may, new_act,
};
use crate::wall::raw::{Done, RawArgument, call_kernel};
use crate::wall::stage::AttackTargets;

const HERE: i32 = libc::AT_FDCWD;
const PLANT: i32 = libc::O_WRONLY | libc::O_CREAT;

fn open_target(targets: &AttackTargets, path: &str, flags: i32) -> Done {
    let path = RawArgument::from_path(&targets.path_at(path));
    call_kernel(libc::SYS_openat, [HERE.into(), path, flags.into(), 0o600.into()])
}

/// Makes a system call on a path of the stage; `rest` are the arguments after the path.
fn by_path<const N: usize>(
    number: i64,
    path: &str,
    targets: &AttackTargets,
    rest: [RawArgument; N],
) -> Done {
    let [mut a, mut b, mut c] = [RawArgument::from(0), RawArgument::from(0), RawArgument::from(0)];
    for (place, one) in [&mut a, &mut b, &mut c].into_iter().zip(rest) {
        *place = one;
    }
    call_kernel(number, [HERE.into(), RawArgument::from_path(&targets.path_at(path)), a, b, c])
}

/// Performs the system call `number`, which moves or links `from` to `to`.
fn move_target(number: i64, from: &str, to: &str, targets: &AttackTargets) -> Done {
    let (from, to) = (
        RawArgument::from_path(&targets.path_at(from)),
        RawArgument::from_path(&targets.path_at(to)),
    );
    call_kernel(number, [HERE.into(), from, HERE.into(), to, 0.into()])
}

/// Opens a file in the `/proc` directory of the victim process.
fn open_victim_file(targets: &AttackTargets, file: &str, flags: i32) -> Done {
    let path = format!("/proc/{}/{file}", targets.victim);
    call_kernel(
        libc::SYS_openat,
        [HERE.into(), RawArgument::from_text(&path), flags.into(), 0.into()],
    )
}

const SECRET: &str = "outside/secret.txt";
const TENANT: &str = "home/sessions/tenants/red/home";
const WORK: &str = "home/sessions/workspaces/red";

/// The attacks: reading and writing by paths; modes, owners and attributes; handles and notifications.
pub(super) const ACTS: &[WallAct] = &[
    new_act("wall-files-read", PATHS, WORKS, |t| open_target(t, SECRET, libc::O_RDONLY)),
    new_act("wall-files-read-openat2", PATHS, WORKS, |t| {
        let how = RawArgument::Bytes(vec![0; 24]);
        by_path(libc::SYS_openat2, SECRET, t, [how, 24.into()])
    }),
    new_act("wall-files-users", PATHS, WORKS, |_| {
        call_kernel(
            libc::SYS_openat,
            [HERE.into(), RawArgument::from_text("/etc/passwd"), 0.into(), 0.into()],
        )
    }),
    new_act("wall-files-tls-key", TLS_KEYS, WORKS, |t| {
        open_target(t, "outside/tls/private/machine.key", libc::O_RDONLY)
    }),
    new_act("wall-files-tls-key-among-certificates", TLS_KEYS, WORKS, |t| {
        open_target(t, "outside/tls/certs/proxy.pem", libc::O_RDONLY)
    }),
    new_act(
        "wall-files-tls-keys-of-the-machine",
        TLS_KEYS,
        control_may("the machine has none"),
        |_| {
            let list = libc::O_DIRECTORY;
            call_kernel(
                libc::SYS_openat,
                [HERE.into(), RawArgument::from_text("/etc/ssl"), list.into(), 0.into()],
            )
        },
    ),
    new_act("wall-files-list", PATHS, WORKS, |t| {
        open_target(t, "outside/private", libc::O_DIRECTORY)
    }),
    new_act("wall-files-write", PATHS, WORKS, |t| open_target(t, SECRET, libc::O_WRONLY)),
    new_act("wall-files-plant", PATHS, WORKS, |t| open_target(t, "outside/planted", PLANT)),
    new_act("wall-files-empty", PATHS, WORKS, |t| {
        open_target(t, SECRET, libc::O_WRONLY | libc::O_TRUNC)
    }),
    new_act("wall-files-truncate", CALLS, WORKS, |t| {
        call_kernel(libc::SYS_truncate, [RawArgument::from_path(&t.path_at(SECRET)), 0.into()])
    }),
    new_act("wall-files-remove", PATHS, WORKS, |t| {
        by_path(libc::SYS_unlinkat, SECRET, t, [0.into()])
    }),
    new_act("wall-files-mkdir", PATHS, WORKS, |t| {
        by_path(libc::SYS_mkdirat, "outside/made", t, [0o700.into()])
    }),
    new_act("wall-files-move-out", PATHS, WORKS, |t| {
        move_target(libc::SYS_renameat2, "workspace/note.txt", "outside/moved", t)
    }),
    new_act("wall-files-move-in", PATHS, WORKS, |t| {
        move_target(libc::SYS_renameat2, SECRET, "workspace/moved", t)
    }),
    new_act("wall-files-link-in", PATHS, WORKS, |t| {
        move_target(libc::SYS_linkat, SECRET, "workspace/linked", t)
    }),
    new_act("wall-files-symlink", PATHS, WORKS, |t| {
        let (to, at) =
            (RawArgument::from_text("/etc"), RawArgument::from_path(&t.path_at("workspace/etc")));
        call_kernel(libc::SYS_symlinkat, [to, HERE.into(), at])
    }),
    new_act("wall-files-device", CALLS, WORKS, |t| {
        let kind = i64::from(libc::S_IFIFO) | 0o600;
        by_path(libc::SYS_mknodat, "workspace/fifo", t, [kind.into(), 0.into()])
    }),
    new_act("wall-files-mode", CALLS, WORKS, |t| {
        by_path(libc::SYS_fchmodat, SECRET, t, [0o777.into()])
    }),
    new_act("wall-files-mode-fchmodat2", CALLS, control_may("not every kernel has it"), |t| {
        by_path(libc::SYS_fchmodat2, SECRET, t, [0o777.into()])
    }),
    new_act("wall-files-owner", CALLS, WORKS, |t| {
        // The owner does not change, which everybody may do with an own file.
        by_path(libc::SYS_fchownat, SECRET, t, [(-1).into(), (-1).into(), 0.into()])
    }),
    new_act("wall-files-attribute", CALLS, control_may("not every file system has it"), |t| {
        let (path, name) =
            (RawArgument::from_path(&t.path_at(SECRET)), RawArgument::from_text("user.x"));
        call_kernel(
            libc::SYS_setxattr,
            [path, name, RawArgument::from_text("x"), 1.into(), 0.into()],
        )
    }),
    new_act("wall-files-read-attribute", CALLS, control_may("the file has none"), |t| {
        let (path, name) =
            (RawArgument::from_path(&t.path_at(SECRET)), RawArgument::from_text("user.x"));
        call_kernel(libc::SYS_getxattr, [path, name, RawArgument::with_room(64), 64.into()])
    }),
    new_act("wall-files-tenant-settings", KEPT, WORKS, |t| {
        open_target(t, &format!("{TENANT}/belljar.toml"), libc::O_WRONLY)
    }),
    new_act("wall-files-tenant-agent", KEPT, WORKS, |t| {
        open_target(t, &format!("{TENANT}/agents/red.md"), libc::O_RDWR)
    }),
    new_act("wall-files-tenant-plant", KEPT, WORKS, |t| {
        open_target(t, &format!("{TENANT}/agents/new.md"), PLANT)
    }),
    new_act("wall-files-tenant-replace", KEPT, WORKS, |t| {
        let to = format!("{TENANT}/belljar.toml");
        move_target(libc::SYS_renameat2, &format!("{WORK}/note.txt"), &to, t)
    }),
    new_act("wall-files-tenant-exchange", KEPT, WORKS, |t| {
        let (home, work) =
            (RawArgument::from_path(&t.path_at(TENANT)), RawArgument::from_path(&t.path_at(WORK)));
        let exchange = i64::from(libc::RENAME_EXCHANGE);
        call_kernel(libc::SYS_renameat2, [HERE.into(), work, HERE.into(), home, exchange.into()])
    }),
    new_act("wall-files-tenant-take", KEPT, WORKS, |t| {
        let to = format!("{WORK}/taken");
        move_target(libc::SYS_renameat2, &format!("{TENANT}/belljar.toml"), &to, t)
    }),
    new_act("wall-files-tenant-link", KEPT, WORKS, |t| {
        let to = format!("{WORK}/linked");
        move_target(libc::SYS_linkat, &format!("{TENANT}/belljar.toml"), &to, t)
    }),
    new_act("wall-files-tenant-beside", KEPT, WORKS, |t| {
        by_path(libc::SYS_mkdirat, "home/sessions/tenants/red/new", t, [0o700.into()])
    }),
    new_act("wall-files-tenant-symlink", PATHS, WORKS, |t| {
        let (to, at) = (
            RawArgument::from_text("/etc"),
            RawArgument::from_path(&t.path_at(&format!("{WORK}/../other"))),
        );
        call_kernel(libc::SYS_symlinkat, [to, HERE.into(), at])
    }),
    new_act("wall-files-tenant-remove", KEPT, WORKS, |t| {
        by_path(libc::SYS_unlinkat, &format!("{TENANT}/belljar.toml"), t, [0.into()])
    }),
    new_act("wall-files-tenant-make", KEPT, WORKS, |t| {
        by_path(libc::SYS_mkdirat, "home/sessions/tenants/new", t, [0o700.into()])
    }),
    new_act("wall-files-own-settings", KEPT, WORKS, |t| {
        open_target(t, "home/belljar.toml", libc::O_WRONLY)
    }),
    new_act("wall-files-own-agent", KEPT, WORKS, |t| open_target(t, "home/agents/new.md", PLANT)),
    new_act("wall-files-cache-key", KEPT, WORKS, |t| {
        open_target(t, "home/cache/key", libc::O_RDONLY)
    }),
    new_act("wall-files-cache-entry", KEPT, WORKS, |t| {
        open_target(t, "home/cache/planted-by-nobody.cwasm", libc::O_RDONLY)
    }),
    new_act("wall-files-cache-plant", KEPT, WORKS, |t| {
        open_target(t, "home/cache/new.cwasm", PLANT)
    }),
    new_act("wall-files-cache-replace", KEPT, WORKS, |t| {
        move_target(
            libc::SYS_renameat2,
            "workspace/note.txt",
            "home/cache/planted-by-nobody.cwasm",
            t,
        )
    }),
    new_act("wall-files-cache-link", KEPT, WORKS, |t| {
        move_target(libc::SYS_linkat, "home/cache/key", "workspace/key", t)
    }),
    new_act("wall-files-cache-remove", KEPT, WORKS, |t| {
        by_path(libc::SYS_unlinkat, "home/cache/key", t, [0.into()])
    }),
    new_act("wall-files-of-a-process-environ", PATHS, WORKS, |t| open_victim_file(t, "environ", 0)),
    new_act(
        "wall-files-of-a-process-memory",
        PATHS,
        control_may("the kernel may want a parent or root for it"),
        |t| open_victim_file(t, "mem", libc::O_RDWR),
    ),
    new_act("wall-files-of-a-process-root", PATHS, WORKS, |t| {
        open_victim_file(t, "root/etc/passwd", 0)
    }),
    new_act("wall-files-of-a-process-descriptors", PATHS, WORKS, |t| {
        open_victim_file(t, "fd", libc::O_DIRECTORY)
    }),
    new_act(
        "wall-files-own-environ",
        PATHS,
        control_may("belljar itself closes it to all but root"),
        |_| {
            call_kernel(
                libc::SYS_openat,
                [HERE.into(), RawArgument::from_text("/proc/self/environ"), 0.into(), 0.into()],
            )
        },
    ),
    new_act("wall-files-core-pattern", PATHS, control_may("root alone may"), |_| {
        let path = RawArgument::from_text("/proc/sys/kernel/core_pattern");
        call_kernel(libc::SYS_openat, [HERE.into(), path, libc::O_WRONLY.into(), 0.into()])
    }),
    new_act("wall-files-handle", CALLS, control_may("not every file system has it"), |t| {
        // The buffer begins with its size.
        let handle = RawArgument::Bytes([128_u32.to_le_bytes().to_vec(), vec![0; 256]].concat());
        by_path(
            libc::SYS_name_to_handle_at,
            SECRET,
            t,
            [handle, RawArgument::with_room(8), 0.into()],
        )
    }),
    new_act("wall-files-by-handle", INTRUDERS, ENDS, |_| {
        call_kernel(
            libc::SYS_open_by_handle_at,
            [HERE.into(), RawArgument::with_room(256), 0.into()],
        )
    }),
    new_act("wall-files-watch", CALLS, WORKS, |t| {
        let path = RawArgument::from_path(&t.path_at("outside/private"));
        call_kernel(libc::SYS_inotify_add_watch, [t.held.watch.into(), path, 0xfff.into()])
    }),
    new_act("wall-files-watch-open", CALLS, WORKS, |_| {
        call_kernel(libc::SYS_inotify_init1, [0.into()])
    }),
    new_act("wall-files-watch-all", CALLS, control_may("root alone may"), |_| {
        call_kernel(libc::SYS_fanotify_init, [0.into(), 0.into()])
    }),
    new_act(
        "wall-files-watch-mark",
        CALLS,
        control_may("it needs what `wall-files-watch-all` is refused"),
        |t| {
            let path = RawArgument::from_path(&t.path_at("outside/private"));
            call_kernel(libc::SYS_fanotify_mark, [0.into(), 1.into(), 32.into(), HERE.into(), path])
        },
    ),
    new_act("wall-files-watch-signal", ARGUMENTS, control_may("not every kernel has it"), |t| {
        let directory = open_target(t, "workspace", libc::O_DIRECTORY)?;
        call_kernel(libc::SYS_fcntl, [directory.into(), 1_026.into(), 4.into()])
    }),
];
