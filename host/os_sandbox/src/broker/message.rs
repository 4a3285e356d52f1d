//! What goes between a process and its broker: small, bounded messages.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SocketFlags,
    SocketType,
};
use serde::{Deserialize, Serialize};

/// Descriptors of a request: stdin, stdout and stderr of what is started, and the socket for
/// the answers.
pub(crate) const FILES: usize = 4;

/// Room for the descriptors in a message.
pub(crate) const SPACE: usize = rustix::cmsg_space!(ScmRights(FILES));

/// Most bytes of a request: the largest has twenty.
const MAX_REQUEST: usize = 64;

/// Most bytes of an answer: what a system says of a failure, and some more.
pub(crate) const MAX_ANSWER: usize = 1 << 10;

/// Most bytes of what the broker is told at first: the hook commands of a `belljar.toml`, which
/// has a mebibyte at most, as JSON.
pub(crate) const MAX_DUTIES: u64 = 8 << 20;

/// What the broker may start; told once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Duties {
    pub(crate) hooks: Vec<String>,
}

/// What is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    /// The compiler's child.
    Compiler,
    /// One of the commands that it was told of, by its place.
    Hook(usize),
}

/// What became of a request, a line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// It runs.
    Started,
    /// It does not, and why. The last word.
    Refused(String),
    /// It has ended, with this status as the system gives it. The last word.
    Ended(i32),
}

/// A request as it came, unchecked.
pub(crate) struct Received {
    pub(crate) text: Vec<u8>,
    pub(crate) files: Vec<OwnedFd>,
    /// Something did not fit.
    pub(crate) cut: bool,
}

/// Both ends of a connection that keeps messages apart.
pub(crate) fn socket() -> io::Result<(OwnedFd, OwnedFd)> {
    let ends = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(ends)
}

/// The next message; `None` = there are no more.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Received>> {
    let mut text = vec![0; MAX_REQUEST];
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let mut into = [IoSliceMut::new(&mut text)];
        match rustix::net::recvmsg(socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            got => break got?,
        }
    };
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            files.extend(sent);
        }
    }
    if got.bytes == 0 && files.is_empty() {
        return Ok(None);
    }
    text.truncate(got.bytes);
    let cut = got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    Ok(Some(Received { text, files, cut }))
}
