//! Attacks by requests to the broker that its own process would never send.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::sockopt::socket_type;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, sendmsg};

use super::{BROKER, ControlProof, WallAct, new_act};
use crate::wall::raw::{Done, RawArgument, borrow_descriptor, call_kernel};

/// The descriptor numbers among which the broker's socket is searched for.
const DESCRIPTORS: std::ops::Range<i32> = 3..256;

/// An anonymous file with these bytes.
fn memory_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let number = call_kernel(libc::SYS_memfd_create, [RawArgument::from_text("forged"), 0.into()])?;
    let number = i32::try_from(number).map_err(io::Error::other)?;
    let mut file = std::fs::File::from(borrow_descriptor(number).try_clone_to_owned()?);
    file.write_all(bytes)?;
    io::Seek::rewind(&mut file)?;
    Ok(file.into())
}

/// Sends a request with these files to the broker. Any answer except a refusal counts as success of the
/// attack.
fn ask_broker(text: &str, files: &[OwnedFd]) -> Done {
    let is_brokers = |number: &i32| {
        socket_type(borrow_descriptor(*number)).is_ok_and(|kind| kind == SocketType::SEQPACKET)
    };
    let broker = DESCRIPTORS.into_iter().find(is_brokers);
    let broker = broker.ok_or_else(|| io::Error::other("there is no broker to ask"))?;
    let (mut own, theirs) = UnixStream::pair()?;
    own.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
    let all: Vec<_> = files.iter().map(OwnedFd::as_fd).chain([theirs.as_fd()]).collect();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&all)) {
        return Err(io::Error::other("too many descriptors"));
    }
    let text = [IoSlice::new(text.as_bytes())];
    sendmsg(borrow_descriptor(broker), &text, &mut ancillary, SendFlags::NOSIGNAL)?;
    drop(theirs);
    let mut answer = String::new();
    own.read_to_string(&mut answer)?;
    let refused =
        answer.is_empty() || answer.contains("\"refused\"") || answer.contains("{\"given\":false}");
    if refused { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(1) }
}

fn ask_with_files(count: usize, text: &str) -> Done {
    let files = (0..count).map(|_| memory_file(b"\0asm forged")).collect::<io::Result<Vec<_>>>()?;
    ask_broker(text, &files)
}

/// The control: a request that the broker does execute, which compiles the smallest component.
const ANSWERS: ControlProof = ControlProof::Beside(|_| {
    let smallest = b"\0asm\x0d\0\x01\0";
    ask_broker(r#"{"make":"code"}"#, &[memory_file(smallest)?, memory_file(b"")?])
});

pub(super) const ACTS: &[WallAct] = &[
    new_act("wall-broker-program", BROKER, ANSWERS, |_| {
        ask_with_files(3, r#"{"hook":{"program":"/bin/sh","arguments":["-c","id"]}}"#)
    }),
    new_act("wall-broker-command", BROKER, ANSWERS, |_| {
        ask_with_files(3, r#"{"hook":"touch planted"}"#)
    }),
    new_act("wall-broker-unknown-hook", BROKER, ANSWERS, |_| ask_with_files(3, r#"{"hook":7}"#)),
    new_act("wall-broker-key", BROKER, ANSWERS, |_| {
        ask_with_files(1, r#"{"find":["code","../key"]}"#)
    }),
    new_act("wall-broker-path", BROKER, ANSWERS, |_| {
        ask_with_files(1, r#"{"find":["code","/etc/passwd"]}"#)
    }),
    new_act("wall-broker-plant", BROKER, ANSWERS, |_| {
        ask_with_files(1, r#"{"put":["code","00"]}"#)
    }),
    new_act("wall-broker-digest", BROKER, ANSWERS, |_| {
        let digest = "0".repeat(64);
        ask_with_files(2, &format!(r#"{{"make":["code","{digest}"]}}"#))
    }),
    new_act("wall-broker-code", BROKER, ANSWERS, |_| ask_with_files(2, r#"{"make":"code"}"#)),
    new_act("wall-broker-tools", BROKER, ANSWERS, |_| ask_with_files(2, r#"{"make":"tools"}"#)),
    new_act("wall-broker-waiting", BROKER, ANSWERS, |_| {
        let (pipe, held) = io::pipe()?;
        let asked = ask_broker(r#"{"make":"code"}"#, &[pipe.into(), memory_file(b"")?]);
        drop(held);
        asked
    }),
    new_act("wall-broker-flood", BROKER, ANSWERS, |_| ask_with_files(7, r#"{"make":"code"}"#)),
];
