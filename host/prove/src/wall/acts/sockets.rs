//! Sockets: local ones, those that wait, those below any protocol.

use super::{ARGUMENTS, Act, CALLS, Control, PATHS, PORTS, WORKS, act, may};
use crate::wall::raw::{Arg, Done, call};
use crate::wall::stage::Targets;

fn socket(family: i32, kind: i32, protocol: i32) -> Done {
    call(libc::SYS_socket, [family.into(), kind.into(), protocol.into()])
}

/// A local address: of a path, or of a name that begins with a zero.
fn local(name: &[u8]) -> (Arg, Arg) {
    let mut bytes = libc::AF_UNIX.to_le_bytes()[..2].to_vec();
    bytes.extend_from_slice(name);
    let length = bytes.len();
    (Arg::Bytes(bytes), Arg::Number(i64::try_from(length).unwrap_or_default()))
}

fn path(targets: &Targets, path: &str) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    targets.at(path).as_os_str().as_bytes().to_vec()
}

fn nameless(targets: &Targets) -> Vec<u8> {
    [b"\0", targets.name.as_bytes()].concat()
}

fn connect(kind: i32, name: &[u8]) -> Done {
    let (address, length) = local(name);
    let own = socket(libc::AF_UNIX, kind, 0)?;
    call(libc::SYS_connect, [own.into(), address, length])
}

/// One end of a pair.
fn pair(kind: i32) -> Done {
    let mut room = vec![0; 8];
    call(
        libc::SYS_socketpair,
        [libc::AF_UNIX.into(), kind.into(), 0.into(), Arg::Number(room.as_mut_ptr() as i64)],
    )?;
    Ok(i64::from(room.first().copied().unwrap_or_default()))
}

fn inet(port: u16) -> Arg {
    let mut bytes = libc::AF_INET.to_le_bytes()[..2].to_vec();
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes.extend_from_slice(&[127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    Arg::Bytes(bytes)
}

pub(super) const ACTS: &[Act] = &[
    act("wall-socket-daemon", ARGUMENTS, WORKS, |t| {
        connect(libc::SOCK_STREAM, &path(t, "outside/daemon.sock"))
    }),
    act("wall-socket-daemon-without-a-path", ARGUMENTS, WORKS, |t| {
        connect(libc::SOCK_STREAM, &nameless(t))
    }),
    act("wall-socket-datagram", ARGUMENTS, WORKS, |t| {
        connect(libc::SOCK_DGRAM, &path(t, "outside/log.sock"))
    }),
    act("wall-socket-packets-in-order", ARGUMENTS, WORKS, |_| {
        socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0)
    }),
    act("wall-socket-pair-sent-elsewhere", ARGUMENTS, WORKS, |t| {
        let (address, length) = local(&path(t, "outside/log.sock"));
        let own = pair(libc::SOCK_DGRAM)?;
        call(libc::SYS_connect, [own.into(), address, length])
    }),
    act("wall-socket-pair-named", PATHS, WORKS, |t| {
        let own = pair(libc::SOCK_STREAM)?;
        let (address, length) = local(&path(t, "workspace/own.sock"));
        call(libc::SYS_bind, [own.into(), address, length])
    }),
    act("wall-socket-listen", CALLS, WORKS, |_| {
        let own = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        call(libc::SYS_listen, [own.into(), 1.into()])
    }),
    Act {
        id: "wall-socket-bind",
        by: PORTS,
        landlock: 4,
        control: Control::Works,
        run: |t| {
            let own = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
            call(libc::SYS_bind, [own.into(), inet(t.port), 16.into()])
        },
    },
    act("wall-socket-raw", ARGUMENTS, may("root alone may"), |_| {
        socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)
    }),
    act("wall-socket-ping", ARGUMENTS, may("the system says which groups may"), |_| {
        socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP)
    }),
    act("wall-socket-sctp", ARGUMENTS, may("not every kernel has it"), |_| {
        socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP)
    }),
    act("wall-socket-frames", ARGUMENTS, may("root alone may"), |_| {
        socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
    }),
    act("wall-socket-machines", ARGUMENTS, may("not every kernel has it"), |_| {
        socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0)
    }),
    act("wall-socket-ciphers", ARGUMENTS, may("not every kernel has it"), |_| {
        socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)
    }),
    act("wall-socket-audit", ARGUMENTS, may("not every kernel has it"), |_| {
        socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT)
    }),
    act("wall-socket-firewall", ARGUMENTS, may("not every kernel has it"), |_| {
        socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)
    }),
    act("wall-socket-filter", ARGUMENTS, WORKS, |_| {
        let own = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        // One instruction, which drops every packet, and how many there are of it and where.
        let mut drop_all = vec![6_u8, 0, 0, 0, 0, 0, 0, 0];
        let at = drop_all.as_mut_ptr() as u64;
        let program = [1_u64.to_le_bytes(), at.to_le_bytes()].concat();
        let (level, attach) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
        call(
            libc::SYS_setsockopt,
            [own.into(), level.into(), attach.into(), Arg::Bytes(program), 16.into()],
        )
    }),
];
