//! The messages between a process and its broker, all of bounded size.

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

/// The most descriptors of a request: for a hook or program, the child's stdin, stdout and stderr, and the
/// socket for the answers. Other requests have fewer.
pub(crate) const FILES: usize = 4;

/// The bytes of the buffer that receives a message's descriptors.
pub(crate) const SPACE: usize = rustix::cmsg_space!(ScmRights(FILES));

/// The most bytes of a request: the longest contains a digest of 64 digits.
const MAX_REQUEST: usize = 128;

/// The most bytes of an answer: the longest contains an escaped error text of a compiler.
pub(crate) const MAX_ANSWER: usize = 16 << 10;

/// The most bytes of the broker's first message: the hook commands and programs of a `belljar.toml` as JSON,
/// at most a MiB, and the programs' secrets.
pub(crate) const MAX_DUTIES: u64 = 8 << 20;

/// What the broker may start and read: sent once, as its first message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrokerDuties {
    pub(crate) hooks: Vec<String>,
    pub(crate) programs: Vec<KnownProgram>,
    /// The cache directory; `None`: there is no cache.
    pub(crate) cache: Option<PathBuf>,
    /// The file that [`BrokerRequest::Settings`] reads; `None`: there is none.
    pub(crate) settings: Option<PathBuf>,
}

/// A request to the broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BrokerRequest {
    /// Starts a hook command, by its number in the broker's list. Has four descriptors.
    Hook(usize),
    /// Finds a stored file made from the component with the given digest (in hexadecimal). Has two
    /// descriptors: a file to write to, and the socket for the answers.
    Find(DerivedFile, String),
    /// Makes a file from a component, and stores it. Has three descriptors: a file with the component, and
    /// the two of [`BrokerRequest::Find`].
    Make(DerivedFile),
    /// Reads the settings file. Has two descriptors, as [`BrokerRequest::Find`].
    Settings,
    /// Starts a program, by its number in the broker's list, if its present digest equals this one. Has four
    /// descriptors, as [`BrokerRequest::Hook`].
    Program(usize, String),
    /// Computes the present digest of the program with the given number. Has two descriptors, as
    /// [`BrokerRequest::Find`].
    Identify(usize),
}

/// What can be made from a component, outside of the process that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DerivedFile {
    /// The machine code.
    Code,
    /// The checked descriptions of the component's tools.
    Tools,
}

impl BrokerRequest {
    /// The number of descriptors that come with the request.
    pub(crate) fn descriptor_count(&self) -> usize {
        match self {
            Self::Hook(_) | Self::Program(..) => FILES,
            Self::Find(..) | Self::Settings | Self::Identify(_) => 2,
            Self::Make(_) => 3,
        }
    }
}

/// An answer of the broker, written as one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BrokerAnswer {
    /// The child runs.
    Started,
    /// The request is refused, for this reason, for example an unknown command. No answer follows.
    Refused(String),
    /// The program's digest is not the requested one, so it was not started. No answer follows.
    Changed,
    /// The child has ended with this exit status. No answer follows.
    Ended(i32),
    /// Whether the file asked for exists and was written. No answer follows.
    Given(bool),
}

/// A received message not checked.
pub(crate) struct ReceivedMessage {
    pub(crate) text: Vec<u8>,
    pub(crate) files: Vec<OwnedFd>,
    /// Whether the message was longer than the buffer.
    pub(crate) cut: bool,
}

/// Makes two connected sockets on which each message stays one message.
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let ends = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(ends)
}

/// Receives the next message; `None`: the other end is closed.
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
