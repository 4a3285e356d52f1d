//! Keeps the exit code of a WASI preview 1 command, which would be lost when it becomes a component.
//!
//! The adapter ends a program with `exit`, which only reports success or failure. So the module is changed
//! to import `exit-with-code` in place of `proc_exit`: both have one number as their argument.

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The imported function, as module and name, and its replacement.
const OLD: (&[u8], &[u8]) = (b"wasi_snapshot_preview1", b"proc_exit");
const NEW: (&[u8], &[u8]) = (b"wasi:cli/exit@0.2.12", b"exit-with-code");

/// The interface of the replacement, in the adapter's version.
const WIT: &str = "package wasi:cli@0.2.12;
interface exit {
  exit: func(status: result);
  exit-with-code: func(status-code: u8);
}
world ends { import exit; }";

/// The id of a module's import section.
const IMPORTS: u8 = 2;

/// The bytes before a module's first section: the magic number and the version.
const HEADER: usize = 8;

/// Returns the module with the import replaced and the type of the new import added. A module without such
/// an import is returned unchanged. `None`: the sections cannot be parsed.
pub(super) fn with_code(module: &[u8]) -> Option<Vec<u8>> {
    let mut made = module.get(..HEADER)?.to_vec();
    let mut rest = module.get(HEADER..)?;
    let mut changed = false;
    while let Some((id, after)) = rest.split_first() {
        let (length, after) = read_number(after)?;
        let (content, after) = after.split_at_checked(length)?;
        let renamed = if *id == IMPORTS { rename_imports(content)? } else { None };
        changed |= renamed.is_some();
        let content = renamed.as_deref().unwrap_or(content);
        made.push(*id);
        put_number(&mut made, content.len());
        made.extend_from_slice(content);
        rest = after;
    }
    if !changed {
        return Some(module.to_vec());
    }
    let mut resolve = Resolve::default();
    let package = resolve.push_str("exit.wit", WIT).ok()?;
    let world = resolve.select_world(&[package], None).ok()?;
    embed_component_metadata(&mut made, &resolve, world, StringEncoding::UTF8).ok()?;
    Some(made)
}

/// The import section's content with the function replaced. The inner `None`: there is nothing to replace.
fn rename_imports(content: &[u8]) -> Option<Option<Vec<u8>>> {
    let (count, mut rest) = read_number(content)?;
    let mut made = Vec::with_capacity(content.len());
    put_number(&mut made, count);
    let mut changed = false;
    for _ in 0..count {
        let (module, after) = read_name(rest)?;
        let (field, after) = read_name(after)?;
        let kind = description_length(after)?;
        let (kind, after) = after.split_at_checked(kind)?;
        let is_old = (module, field) == OLD;
        changed |= is_old;
        let (module, field) = if is_old { NEW } else { (module, field) };
        for part in [module, field] {
            put_number(&mut made, part.len());
            made.extend_from_slice(part);
        }
        made.extend_from_slice(kind);
        rest = after;
    }
    Some(changed.then_some(made))
}

/// The bytes of an import's description. `None` if it is not a function, because a command of preview 1
/// imports functions only.
fn description_length(bytes: &[u8]) -> Option<usize> {
    let (kind, after) = bytes.split_first()?;
    if *kind != 0 {
        return None;
    }
    let (_, rest) = read_number(after)?;
    bytes.len().checked_sub(rest.len())
}

fn read_name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, after) = read_number(bytes)?;
    after.split_at_checked(length)
}

fn read_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (turn, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * turn);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, bytes.get(turn + 1..)?));
        }
    }
    None
}

fn put_number(into: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        into.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_import_is_renamed_and_the_rest_stays() {
        let mut content = vec![2];
        for (module, field) in [(OLD.0, &b"fd_write"[..]), OLD] {
            put_number(&mut content, module.len());
            content.extend_from_slice(module);
            put_number(&mut content, field.len());
            content.extend_from_slice(field);
            content.extend_from_slice(&[0, 3]);
        }
        let made = rename_imports(&content).unwrap().unwrap();
        let text = String::from_utf8_lossy(&made);
        assert!(text.contains("fd_write") && text.contains("exit-with-code"), "{text}");
        assert!(!text.contains("proc_exit"));
        assert_eq!(rename_imports(&made).unwrap(), None);
        // A length beyond the end, and an import of a memory.
        assert_eq!(rename_imports(&content[..content.len() - 1]), None);
        assert_eq!(rename_imports(b"\x01\x01a\x01b\x02\0\x01"), None);
    }

    #[test]
    fn sections_that_cannot_be_followed_are_left() {
        assert_eq!(with_code(b"\0asm\x01\0\0\0\x02\x7f"), None);
        assert_eq!(with_code(b"\0asm\x01\0\0\0").unwrap(), b"\0asm\x01\0\0\0");
        assert_eq!(with_code(b"\0as"), None);
        assert_eq!(with_code(b"\0asm\x01\0\0\0\x01\xff\xff\xff\xff\xff\x01"), None);
    }
}
