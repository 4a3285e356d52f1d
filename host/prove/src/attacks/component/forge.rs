//! Builds components byte by byte, as no compiler would.

/// The first bytes of a component.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// The first bytes of a core module.
pub(super) const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// The numbers of sections in a component and in a core module.
pub(super) const CUSTOM: u8 = 0;
pub(super) const CORE_MODULE: u8 = 1;
pub(super) const CORE_INSTANCE: u8 = 2;
pub(super) const NESTED: u8 = 4;
pub(super) const INSTANCE: u8 = 5;
pub(super) const TYPE: u8 = 7;
pub(super) const IMPORT: u8 = 10;

pub(super) fn build_component(sections: &[Vec<u8>]) -> Vec<u8> {
    [COMPONENT, &sections.concat()].concat()
}

/// A component with more sections added at its end.
pub(super) fn append_sections(wasm: &[u8], sections: &[Vec<u8>]) -> Vec<u8> {
    [wasm, &sections.concat()].concat()
}

pub(super) fn build_section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], encode_leb(content.len()).as_slice(), content].concat()
}

pub(super) fn build_vector(items: &[Vec<u8>]) -> Vec<u8> {
    [encode_leb(items.len()), items.concat()].concat()
}

/// An unsigned number in the encoding of the binary format (LEB128).
pub(super) fn encode_leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        bytes.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return bytes;
        }
    }
}

/// The number of sections of a kind at the top level of a component.
pub(super) fn count_sections(wasm: &[u8], id: u8) -> usize {
    let (mut rest, mut found) = (wasm.get(COMPONENT.len()..).unwrap_or_default(), 0);
    while let Some((kind, after)) = rest.split_first() {
        let (mut length, mut shift, mut at) = (0_usize, 0, 0);
        while let Some(byte) = after.get(at) {
            length |= usize::from(byte & 0x7f) << shift;
            (shift, at) = (shift + 7, at + 1);
            if byte & 0x80 == 0 {
                break;
            }
        }
        found += usize::from(*kind == id);
        rest = after.get(at.saturating_add(length)..).unwrap_or_default();
    }
    found
}

/// A core module with `functions` functions that all have this body.
pub(super) fn build_module(functions: usize, body: &[u8]) -> Vec<u8> {
    // One function type: (func (param i64) (result i64)).
    let types = build_section(1, &[1, 0x60, 1, 0x7e, 1, 0x7e]);
    let declared = [encode_leb(functions), vec![0; functions]].concat();
    let code = [encode_leb(body.len() + 1), vec![0], body.to_vec()].concat();
    let bodies = [encode_leb(functions), code.repeat(functions)].concat();
    [MODULE, &types, &build_section(3, &declared), &build_section(10, &bodies)].concat()
}

/// A component that contains `depth` components within each other.
pub(super) fn build_nested(depth: usize) -> Vec<u8> {
    // Built from the innermost component outwards, in reverse byte order, so each level is written once.
    let (mut length, mut heads) = (COMPONENT.len(), Vec::with_capacity(depth));
    for _ in 0..depth {
        let head = [&[NESTED], encode_leb(length).as_slice()].concat();
        length += head.len() + COMPONENT.len();
        heads.push(head);
    }
    let mut whole = Vec::with_capacity(length);
    for head in heads.iter().rev() {
        whole.extend(COMPONENT);
        whole.extend(head);
    }
    whole.extend(COMPONENT);
    whole
}

/// A component that contains `wide` to the power of `levels` core instances when it is instantiated: some
/// hundred bytes that a compiler has to unfold.
pub(super) fn build_unfolding(levels: usize, wide: usize) -> Vec<u8> {
    let module = build_section(CORE_MODULE, MODULE);
    let mut whole = build_component(&[module, build_section(CORE_INSTANCE, &[1, 0, 0, 0])]);
    for _ in 0..levels {
        let instances = build_vector(&vec![vec![0, 0, 0]; wide]);
        whole =
            build_component(&[build_section(NESTED, &whole), build_section(INSTANCE, &instances)]);
    }
    whole
}
