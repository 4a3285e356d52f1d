//! Attacks on sockets: local ones, listening ones, and raw ones.

use super::{ARGUMENTS, CALLS, ControlProof, PATHS, PORTS, WORKS, WallAct, control_may, new_act};
use crate::wall::raw::{Done, RawArgument, call_kernel};
use crate::wall::stage::AttackTargets;

fn open_socket(family: i32, kind: i32, protocol: i32) -> Done {
    call_kernel(libc::SYS_socket, [family.into(), kind.into(), protocol.into()])
}

/// A local address: a path, or an abstract name, which begins with a zero byte.
fn local_address(name: &[u8]) -> (RawArgument, RawArgument) {
    let mut bytes = libc::AF_UNIX.to_le_bytes()[..2].to_vec();
    bytes.extend_from_slice(name);
    let length = bytes.len();
    (RawArgument::Bytes(bytes), RawArgument::Number(i64::try_from(length).unwrap_or_default()))
}

fn path_bytes(targets: &AttackTargets, path: &str) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    targets.path_at(path).as_os_str().as_bytes().to_vec()
}

fn nameless_address(targets: &AttackTargets) -> Vec<u8> {
    [b"\0", targets.name.as_bytes()].concat()
}

fn connect_local(kind: i32, name: &[u8]) -> Done {
    let (address, length) = local_address(name);
    let own = open_socket(libc::AF_UNIX, kind, 0)?;
    call_kernel(libc::SYS_connect, [own.into(), address, length])
}

/// One end of a pair of sockets.
fn socket_pair(kind: i32) -> Done {
    let mut room = vec![0; 8];
    call_kernel(
        libc::SYS_socketpair,
        [
            libc::AF_UNIX.into(),
            kind.into(),
            0.into(),
            RawArgument::Number(room.as_mut_ptr() as i64),
        ],
    )?;
    Ok(i64::from(room.first().copied().unwrap_or_default()))
}

/// The address 127.0.0.1 with a port, in the form that the kernel reads.
fn inet_address(port: u16) -> RawArgument {
    let mut bytes = libc::AF_INET.to_le_bytes()[..2].to_vec();
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes.extend_from_slice(&[127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    RawArgument::Bytes(bytes)
}

pub(super) const ACTS: &[WallAct] = &[
    new_act("wall-socket-daemon", ARGUMENTS, WORKS, |t| {
        connect_local(libc::SOCK_STREAM, &path_bytes(t, "outside/daemon.sock"))
    }),
    new_act("wall-socket-daemon-without-a-path", ARGUMENTS, WORKS, |t| {
        connect_local(libc::SOCK_STREAM, &nameless_address(t))
    }),
    new_act("wall-socket-datagram", ARGUMENTS, WORKS, |t| {
        connect_local(libc::SOCK_DGRAM, &path_bytes(t, "outside/log.sock"))
    }),
    new_act("wall-socket-packets-in-order", ARGUMENTS, WORKS, |_| {
        open_socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0)
    }),
    new_act("wall-socket-pair-sent-elsewhere", ARGUMENTS, WORKS, |t| {
        let (address, length) = local_address(&path_bytes(t, "outside/log.sock"));
        let own = socket_pair(libc::SOCK_DGRAM)?;
        call_kernel(libc::SYS_connect, [own.into(), address, length])
    }),
    new_act("wall-socket-pair-named", PATHS, WORKS, |t| {
        let own = socket_pair(libc::SOCK_STREAM)?;
        let (address, length) = local_address(&path_bytes(t, "workspace/own.sock"));
        call_kernel(libc::SYS_bind, [own.into(), address, length])
    }),
    new_act("wall-socket-listen", CALLS, WORKS, |_| {
        let own = open_socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        call_kernel(libc::SYS_listen, [own.into(), 1.into()])
    }),
    WallAct {
        id: "wall-socket-bind",
        by: PORTS,
        landlock: 4,
        control: ControlProof::Works,
        run: |t| {
            let own = open_socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
            call_kernel(libc::SYS_bind, [own.into(), inet_address(t.port), 16.into()])
        },
    },
    new_act("wall-socket-raw", ARGUMENTS, control_may("root alone may"), |_| {
        open_socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)
    }),
    new_act("wall-socket-ping", ARGUMENTS, control_may("the system says which groups may"), |_| {
        open_socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP)
    }),
    new_act("wall-socket-sctp", ARGUMENTS, control_may("not every kernel has it"), |_| {
        open_socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP)
    }),
    new_act("wall-socket-frames", ARGUMENTS, control_may("root alone may"), |_| {
        open_socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
    }),
    new_act("wall-socket-machines", ARGUMENTS, control_may("not every kernel has it"), |_| {
        open_socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0)
    }),
    new_act("wall-socket-ciphers", ARGUMENTS, control_may("not every kernel has it"), |_| {
        open_socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)
    }),
    new_act("wall-socket-audit", ARGUMENTS, control_may("not every kernel has it"), |_| {
        open_socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT)
    }),
    new_act("wall-socket-firewall", ARGUMENTS, control_may("not every kernel has it"), |_| {
        open_socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)
    }),
    new_act("wall-socket-filter", ARGUMENTS, WORKS, |_| {
        let own = open_socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        // A filter of one instruction, which drops every packet, with the filter's length and address.
        let mut drop_all = vec![6_u8, 0, 0, 0, 0, 0, 0, 0];
        let at = drop_all.as_mut_ptr() as u64;
        let program = [1_u64.to_le_bytes(), at.to_le_bytes()].concat();
        let (level, attach) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
        call_kernel(
            libc::SYS_setsockopt,
            [own.into(), level.into(), attach.into(), RawArgument::Bytes(program), 16.into()],
        )
    }),
];
