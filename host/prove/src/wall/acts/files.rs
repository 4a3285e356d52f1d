//! Files: by their paths, by handles, by what is told of them.

use super::{ARGUMENTS, Act, CALLS, ENDS, INTRUDERS, KEPT, PATHS, TLS_KEYS, WORKS, act, may};
use crate::wall::raw::{Arg, Done, call};
use crate::wall::stage::Targets;

const HERE: i32 = libc::AT_FDCWD;
const PLANT: i32 = libc::O_WRONLY | libc::O_CREAT;

fn open(targets: &Targets, path: &str, flags: i32) -> Done {
    let path = Arg::path(&targets.at(path));
    call(libc::SYS_openat, [HERE.into(), path, flags.into(), 0o600.into()])
}

fn by_path<const N: usize>(number: i64, path: &str, targets: &Targets, rest: [Arg; N]) -> Done {
    let [mut a, mut b, mut c] = [Arg::from(0), Arg::from(0), Arg::from(0)];
    for (place, one) in [&mut a, &mut b, &mut c].into_iter().zip(rest) {
        *place = one;
    }
    call(number, [HERE.into(), Arg::path(&targets.at(path)), a, b, c])
}

fn moved(number: i64, from: &str, to: &str, targets: &Targets) -> Done {
    let (from, to) = (Arg::path(&targets.at(from)), Arg::path(&targets.at(to)));
    call(number, [HERE.into(), from, HERE.into(), to, 0.into()])
}

fn of_victim(targets: &Targets, file: &str, flags: i32) -> Done {
    let path = format!("/proc/{}/{file}", targets.victim);
    call(libc::SYS_openat, [HERE.into(), Arg::text(&path), flags.into(), 0.into()])
}

const SECRET: &str = "outside/secret.txt";
const TENANT: &str = "home/sessions/tenants/red/home";
const WORK: &str = "home/sessions/workspaces/red";

/// Reading and writing by paths; modes, owners, attributes; handles and watches.
pub(super) const ACTS: &[Act] = &[
    act("wall-files-read", PATHS, WORKS, |t| open(t, SECRET, libc::O_RDONLY)),
    act("wall-files-read-openat2", PATHS, WORKS, |t| {
        let how = Arg::Bytes(vec![0; 24]);
        by_path(libc::SYS_openat2, SECRET, t, [how, 24.into()])
    }),
    act("wall-files-users", PATHS, WORKS, |_| {
        call(libc::SYS_openat, [HERE.into(), Arg::text("/etc/passwd"), 0.into(), 0.into()])
    }),
    act("wall-files-tls-key", TLS_KEYS, WORKS, |t| {
        open(t, "outside/tls/private/machine.key", libc::O_RDONLY)
    }),
    act("wall-files-tls-key-among-certificates", TLS_KEYS, WORKS, |t| {
        open(t, "outside/tls/certs/proxy.pem", libc::O_RDONLY)
    }),
    act("wall-files-tls-keys-of-the-machine", TLS_KEYS, may("the machine has none"), |_| {
        let list = libc::O_DIRECTORY;
        call(libc::SYS_openat, [HERE.into(), Arg::text("/etc/ssl"), list.into(), 0.into()])
    }),
    act("wall-files-list", PATHS, WORKS, |t| open(t, "outside/private", libc::O_DIRECTORY)),
    act("wall-files-write", PATHS, WORKS, |t| open(t, SECRET, libc::O_WRONLY)),
    act("wall-files-plant", PATHS, WORKS, |t| open(t, "outside/planted", PLANT)),
    act("wall-files-empty", PATHS, WORKS, |t| open(t, SECRET, libc::O_WRONLY | libc::O_TRUNC)),
    act("wall-files-truncate", CALLS, WORKS, |t| {
        call(libc::SYS_truncate, [Arg::path(&t.at(SECRET)), 0.into()])
    }),
    act("wall-files-remove", PATHS, WORKS, |t| by_path(libc::SYS_unlinkat, SECRET, t, [0.into()])),
    act("wall-files-mkdir", PATHS, WORKS, |t| {
        by_path(libc::SYS_mkdirat, "outside/made", t, [0o700.into()])
    }),
    act("wall-files-move-out", PATHS, WORKS, |t| {
        moved(libc::SYS_renameat2, "workspace/note.txt", "outside/moved", t)
    }),
    act("wall-files-move-in", PATHS, WORKS, |t| {
        moved(libc::SYS_renameat2, SECRET, "workspace/moved", t)
    }),
    act("wall-files-link-in", PATHS, WORKS, |t| {
        moved(libc::SYS_linkat, SECRET, "workspace/linked", t)
    }),
    act("wall-files-symlink", PATHS, WORKS, |t| {
        let (to, at) = (Arg::text("/etc"), Arg::path(&t.at("workspace/etc")));
        call(libc::SYS_symlinkat, [to, HERE.into(), at])
    }),
    act("wall-files-device", CALLS, WORKS, |t| {
        let kind = i64::from(libc::S_IFIFO) | 0o600;
        by_path(libc::SYS_mknodat, "workspace/fifo", t, [kind.into(), 0.into()])
    }),
    act("wall-files-mode", CALLS, WORKS, |t| {
        by_path(libc::SYS_fchmodat, SECRET, t, [0o777.into()])
    }),
    act("wall-files-mode-fchmodat2", CALLS, may("not every kernel has it"), |t| {
        by_path(libc::SYS_fchmodat2, SECRET, t, [0o777.into()])
    }),
    act("wall-files-owner", CALLS, WORKS, |t| {
        // To whom it belongs already, as anybody may.
        by_path(libc::SYS_fchownat, SECRET, t, [(-1).into(), (-1).into(), 0.into()])
    }),
    act("wall-files-attribute", CALLS, may("not every file system has it"), |t| {
        let (path, name) = (Arg::path(&t.at(SECRET)), Arg::text("user.x"));
        call(libc::SYS_setxattr, [path, name, Arg::text("x"), 1.into(), 0.into()])
    }),
    act("wall-files-read-attribute", CALLS, may("the file has none"), |t| {
        let (path, name) = (Arg::path(&t.at(SECRET)), Arg::text("user.x"));
        call(libc::SYS_getxattr, [path, name, Arg::room(64), 64.into()])
    }),
    act("wall-files-tenant-settings", KEPT, WORKS, |t| {
        open(t, &format!("{TENANT}/belljar.toml"), libc::O_WRONLY)
    }),
    act("wall-files-tenant-agent", KEPT, WORKS, |t| {
        open(t, &format!("{TENANT}/agents/red.md"), libc::O_RDWR)
    }),
    act("wall-files-tenant-plant", KEPT, WORKS, |t| {
        open(t, &format!("{TENANT}/agents/new.md"), PLANT)
    }),
    act("wall-files-tenant-replace", KEPT, WORKS, |t| {
        let to = format!("{TENANT}/belljar.toml");
        moved(libc::SYS_renameat2, &format!("{WORK}/note.txt"), &to, t)
    }),
    act("wall-files-tenant-exchange", KEPT, WORKS, |t| {
        let (home, work) = (Arg::path(&t.at(TENANT)), Arg::path(&t.at(WORK)));
        let exchange = i64::from(libc::RENAME_EXCHANGE);
        call(libc::SYS_renameat2, [HERE.into(), work, HERE.into(), home, exchange.into()])
    }),
    act("wall-files-tenant-take", KEPT, WORKS, |t| {
        let to = format!("{WORK}/taken");
        moved(libc::SYS_renameat2, &format!("{TENANT}/belljar.toml"), &to, t)
    }),
    act("wall-files-tenant-link", KEPT, WORKS, |t| {
        let to = format!("{WORK}/linked");
        moved(libc::SYS_linkat, &format!("{TENANT}/belljar.toml"), &to, t)
    }),
    act("wall-files-tenant-beside", KEPT, WORKS, |t| {
        by_path(libc::SYS_mkdirat, "home/sessions/tenants/red/new", t, [0o700.into()])
    }),
    act("wall-files-tenant-symlink", PATHS, WORKS, |t| {
        let (to, at) = (Arg::text("/etc"), Arg::path(&t.at(&format!("{WORK}/../other"))));
        call(libc::SYS_symlinkat, [to, HERE.into(), at])
    }),
    act("wall-files-tenant-remove", KEPT, WORKS, |t| {
        by_path(libc::SYS_unlinkat, &format!("{TENANT}/belljar.toml"), t, [0.into()])
    }),
    act("wall-files-tenant-make", KEPT, WORKS, |t| {
        by_path(libc::SYS_mkdirat, "home/sessions/tenants/new", t, [0o700.into()])
    }),
    act("wall-files-own-settings", KEPT, WORKS, |t| open(t, "home/belljar.toml", libc::O_WRONLY)),
    act("wall-files-own-agent", KEPT, WORKS, |t| open(t, "home/agents/new.md", PLANT)),
    act("wall-files-cache-key", KEPT, WORKS, |t| open(t, "home/cache/key", libc::O_RDONLY)),
    act("wall-files-cache-entry", KEPT, WORKS, |t| {
        open(t, "home/cache/planted-by-nobody.cwasm", libc::O_RDONLY)
    }),
    act("wall-files-cache-plant", KEPT, WORKS, |t| open(t, "home/cache/new.cwasm", PLANT)),
    act("wall-files-cache-replace", KEPT, WORKS, |t| {
        moved(libc::SYS_renameat2, "workspace/note.txt", "home/cache/planted-by-nobody.cwasm", t)
    }),
    act("wall-files-cache-link", KEPT, WORKS, |t| {
        moved(libc::SYS_linkat, "home/cache/key", "workspace/key", t)
    }),
    act("wall-files-cache-remove", KEPT, WORKS, |t| {
        by_path(libc::SYS_unlinkat, "home/cache/key", t, [0.into()])
    }),
    act("wall-files-of-a-process-environ", PATHS, WORKS, |t| of_victim(t, "environ", 0)),
    act(
        "wall-files-of-a-process-memory",
        PATHS,
        may("the kernel may want a parent or root for it"),
        |t| of_victim(t, "mem", libc::O_RDWR),
    ),
    act("wall-files-of-a-process-root", PATHS, WORKS, |t| of_victim(t, "root/etc/passwd", 0)),
    act("wall-files-of-a-process-descriptors", PATHS, WORKS, |t| {
        of_victim(t, "fd", libc::O_DIRECTORY)
    }),
    act("wall-files-own-environ", PATHS, may("belljar itself closes it to all but root"), |_| {
        call(libc::SYS_openat, [HERE.into(), Arg::text("/proc/self/environ"), 0.into(), 0.into()])
    }),
    act("wall-files-core-pattern", PATHS, may("root alone may"), |_| {
        let path = Arg::text("/proc/sys/kernel/core_pattern");
        call(libc::SYS_openat, [HERE.into(), path, libc::O_WRONLY.into(), 0.into()])
    }),
    act("wall-files-handle", CALLS, may("not every file system has it"), |t| {
        // It begins with the room that it has.
        let handle = Arg::Bytes([128_u32.to_le_bytes().to_vec(), vec![0; 256]].concat());
        by_path(libc::SYS_name_to_handle_at, SECRET, t, [handle, Arg::room(8), 0.into()])
    }),
    act("wall-files-by-handle", INTRUDERS, ENDS, |_| {
        call(libc::SYS_open_by_handle_at, [HERE.into(), Arg::room(256), 0.into()])
    }),
    act("wall-files-watch", CALLS, WORKS, |t| {
        let path = Arg::path(&t.at("outside/private"));
        call(libc::SYS_inotify_add_watch, [t.held.watch.into(), path, 0xfff.into()])
    }),
    act("wall-files-watch-open", CALLS, WORKS, |_| call(libc::SYS_inotify_init1, [0.into()])),
    act("wall-files-watch-all", CALLS, may("root alone may"), |_| {
        call(libc::SYS_fanotify_init, [0.into(), 0.into()])
    }),
    act(
        "wall-files-watch-mark",
        CALLS,
        may("it needs what `wall-files-watch-all` is refused"),
        |t| {
            let path = Arg::path(&t.at("outside/private"));
            call(libc::SYS_fanotify_mark, [0.into(), 1.into(), 32.into(), HERE.into(), path])
        },
    ),
    act("wall-files-watch-signal", ARGUMENTS, may("not every kernel has it"), |t| {
        let directory = open(t, "workspace", libc::O_DIRECTORY)?;
        call(libc::SYS_fcntl, [directory.into(), 1_026.into(), 4.into()])
    }),
];
