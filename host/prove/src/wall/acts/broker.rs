//! Requests to the broker that its process would never make.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::sockopt::socket_type;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, sendmsg};

use super::{Act, BROKER, Control, act};
use crate::wall::raw::{Arg, Done, borrowed, call};

/// Descriptors that are looked at for the broker's.
const DESCRIPTORS: std::ops::Range<i32> = 3..256;

/// A file without a name, with this in it.
fn file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let number = call(libc::SYS_memfd_create, [Arg::text("forged"), 0.into()])?;
    let number = i32::try_from(number).map_err(io::Error::other)?;
    let mut file = std::fs::File::from(borrowed(number).try_clone_to_owned()?);
    file.write_all(bytes)?;
    io::Seek::rewind(&mut file)?;
    Ok(file.into())
}

/// Sends a request with these files; whatever is answered but a refusal is what was asked for.
fn ask(text: &str, files: &[OwnedFd]) -> Done {
    let is_brokers = |number: &i32| {
        socket_type(borrowed(*number)).is_ok_and(|kind| kind == SocketType::SEQPACKET)
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
    sendmsg(borrowed(broker), &text, &mut ancillary, SendFlags::NOSIGNAL)?;
    drop(theirs);
    let mut answer = String::new();
    own.read_to_string(&mut answer)?;
    let refused =
        answer.is_empty() || answer.contains("\"refused\"") || answer.contains("{\"given\":false}");
    if refused { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(1) }
}

fn of_files(count: usize, text: &str) -> Done {
    let files = (0..count).map(|_| file(b"\0asm forged")).collect::<io::Result<Vec<_>>>()?;
    ask(text, &files)
}

/// A request that the broker executes: the smallest component is compiled.
const ANSWERS: Control = Control::Beside(|_| {
    let smallest = b"\0asm\x0d\0\x01\0";
    ask(r#"{"make":"code"}"#, &[file(smallest)?, file(b"")?])
});

pub(super) const ACTS: &[Act] = &[
    act("wall-broker-program", BROKER, ANSWERS, |_| {
        of_files(3, r#"{"hook":{"program":"/bin/sh","arguments":["-c","id"]}}"#)
    }),
    act("wall-broker-command", BROKER, ANSWERS, |_| of_files(3, r#"{"hook":"touch planted"}"#)),
    act("wall-broker-unknown-hook", BROKER, ANSWERS, |_| of_files(3, r#"{"hook":7}"#)),
    act("wall-broker-key", BROKER, ANSWERS, |_| of_files(1, r#"{"find":["code","../key"]}"#)),
    act("wall-broker-path", BROKER, ANSWERS, |_| of_files(1, r#"{"find":["code","/etc/passwd"]}"#)),
    act("wall-broker-plant", BROKER, ANSWERS, |_| of_files(1, r#"{"put":["code","00"]}"#)),
    act("wall-broker-digest", BROKER, ANSWERS, |_| {
        let digest = "0".repeat(64);
        of_files(2, &format!(r#"{{"make":["code","{digest}"]}}"#))
    }),
    act("wall-broker-code", BROKER, ANSWERS, |_| of_files(2, r#"{"make":"code"}"#)),
    act("wall-broker-tools", BROKER, ANSWERS, |_| of_files(2, r#"{"make":"tools"}"#)),
    act("wall-broker-waiting", BROKER, ANSWERS, |_| {
        let (pipe, held) = io::pipe()?;
        let asked = ask(r#"{"make":"code"}"#, &[pipe.into(), file(b"")?]);
        drop(held);
        asked
    }),
    act("wall-broker-flood", BROKER, ANSWERS, |_| of_files(7, r#"{"make":"code"}"#)),
];
