//! Messages between a process and its broker: small and bounded.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SocketFlags,
    SocketType,
};
use serde::{Deserialize, Serialize};

use crate::program::KnownProgram;

/// Descriptors of a request for a hook or a program: the child's stdin, stdout and stderr, and the socket for
/// the answers. Other requests have fewer.
pub(crate) const FILES: usize = 4;

/// The buffer size for the descriptors of a message.
pub(crate) const SPACE: usize = rustix::cmsg_space!(ScmRights(FILES));

/// Most bytes of a request, because the largest contains a digest of 64 digits.
const MAX_REQUEST: usize = 128;

/// Most bytes of an answer, because the largest contains a compiler's escaped message.
pub(crate) const MAX_ANSWER: usize = 16 << 10;

/// Most bytes of the broker's first message: the hook commands and programs of a `belljar.toml`, as JSON (at
/// most a mebibyte), and the programs' secrets.
pub(crate) const MAX_DUTIES: u64 = 8 << 20;

/// The programs that the broker may start, and the paths of its files; sent once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrokerDuties {
    pub(crate) hooks: Vec<String>,
    pub(crate) programs: Vec<KnownProgram>,
    /// `None` = no cache.
    pub(crate) cache: Option<PathBuf>,
    /// The file for [`BrokerRequest::Settings`]; `None` = no settings to read.
    pub(crate) settings: Option<PathBuf>,
}

/// A request to the broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BrokerRequest {
    /// Starts a hook command, by its index in the broker's list. Four descriptors.
    Hook(usize),
    /// Finds the stored file for the component with this digest, in hexadecimal digits. Two descriptors: a
    /// file to write to, and the socket for the answers.
    Find(DerivedFile, String),
    /// Makes the file from a component, and stores it. Three descriptors: a file with the component, and the
    /// two of [`BrokerRequest::Find`].
    Make(DerivedFile),
    /// Reads the settings file. Two descriptors, as for [`BrokerRequest::Find`].
    Settings,
    /// Starts a program, by its index in the broker's list, if the digest equals this one. Four descriptors,
    /// as for [`BrokerRequest::Hook`].
    Program(usize, String),
    /// Computes the present digest of a program. Two descriptors, as for [`BrokerRequest::Find`].
    Identify(usize),
}

/// A file made from a component, outside of the process that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DerivedFile {
    /// The machine code.
    Code,
    /// The checked descriptions of the component's tools.
    Tools,
}

impl BrokerRequest {
    /// The number of descriptors of the request.
    pub(crate) fn descriptor_count(&self) -> usize {
        match self {
            Self::Hook(_) | Self::Program(..) => FILES,
            Self::Find(..) | Self::Settings | Self::Identify(_) => 2,
            Self::Make(_) => 3,
        }
    }
}

/// An answer to a request, one a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BrokerAnswer {
    /// The child is running.
    Started,
    /// Refused, with the reason, for example an unknown command. The last answer.
    Refused(String),
    /// Refused: the program's digest differs. The last answer.
    Changed,
    /// The child has ended, with this exit status. The last answer.
    Ended(i32),
    /// Whether the requested content was written to the file; false = no such content. The last answer.
    Given(bool),
}

/// A message, unchecked.
pub(crate) struct ReceivedMessage {
    pub(crate) text: Vec<u8>,
    pub(crate) files: Vec<OwnedFd>,
    /// Whether the message was truncated.
    pub(crate) cut: bool,
}

/// Makes a pair of connected sockets that preserve message boundaries.
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let ends = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(ends)
}

/// Receives the next message; `None` = the connection is closed.
pub(crate) fn receive_message(socket: BorrowedFd<'_>) -> io::Result<Option<ReceivedMessage>> {
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
    Ok(Some(ReceivedMessage { text, files, cut }))
}
