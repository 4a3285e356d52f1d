//! Builds archives byte by byte, as no honest program would.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The type bytes of the archive members that attacks use.
pub(super) const FILE: u8 = b'0';
pub(super) const HARD_LINK: u8 = b'1';
pub(super) const SYMBOLIC_LINK: u8 = b'2';
pub(super) const DEVICE: u8 = b'3';
pub(super) const FIFO: u8 = b'6';
pub(super) const LONG_NAME: u8 = b'L';
pub(super) const LONG_LINK: u8 = b'K';
pub(super) const PAX: u8 = b'x';
pub(super) const GLOBAL_PAX: u8 = b'g';
pub(super) const SPARSE: u8 = b'S';

/// The header of a member, with any values.
pub(super) fn build_header(path: &[u8], kind: u8, size: u64, link: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    let mut set = |at: usize, bytes: &[u8]| {
        for (to, from) in block.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    };
    set(0, path.get(..path.len().min(100)).unwrap_or_default());
    set(100, b"0000644\0");
    match size < 1 << 33 {
        true => set(124, format!("{size:011o}\0").as_bytes()),
        // A size that does not fit into octal digits is written in GNU's binary form.
        false => {
            set(124, &[0x80, 0, 0, 0]);
            set(128, &size.to_be_bytes());
        }
    }
    set(148, b"        ");
    set(156, &[kind]);
    set(157, link.as_bytes());
    set(257, b"ustar  \0");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    for (to, from) in block.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").as_bytes()) {
        *to = *from;
    }
    block
}

/// An archive member: header, content and padding.
pub(super) fn build_member(path: &[u8], kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut member = build_header(path, kind, bytes.len() as u64, "");
    member.extend_from_slice(bytes);
    member.resize(member.len().next_multiple_of(512), 0);
    member
}

/// An archive member with an agent file.
pub(super) fn agent_member(path: &str, name: &str, text: &str) -> Vec<u8> {
    build_member(path.as_bytes(), FILE, super::stage::agent_file(name, text).as_bytes())
}

/// A record of an extended (pax) header.
pub(super) fn pax_record(key: &str, value: &str) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let length = (1..8).map(|digits| rest + digits).find(|n| n.to_string().len() + rest == *n);
    format!("{} {key}={value}\n", length.unwrap_or(rest)).into_bytes()
}

/// One gzip member. Several of them, one after the other, are a valid gzip file.
pub(super) fn gzip_part(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// A complete compressed archive with the given members.
pub(super) fn gzip_archive(members: &[Vec<u8>]) -> io::Result<Vec<u8>> {
    gzip_part(&[members.concat(), vec![0; 1024]].concat())
}
