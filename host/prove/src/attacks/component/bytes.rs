//! Attacks by bytes that are no component, or an enormous one.

use super::forge::{self, append_sections, build_section, build_vector, encode_leb};
use super::{none_loaded, not_loaded};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Stopped};
use crate::guests::{FILE_READ, PLAIN};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "component-garbage",
        kind: AttackKind::Component,
        tries: "is nothing, a text, zeroes, or random bytes",
        stopped_by: "the first bytes are looked at before anything else (INV-22)",
        told: "not a WebAssembly file",
        embedded: true,
        run: |arena| {
            let noise = (0..100_000).map(|_| fastrand::u8(1..)).collect();
            let all = vec![Vec::new(), b"#!/bin/sh\n".to_vec(), vec![0; 1 << 20], noise];
            Box::pin(none_loaded(arena, all))
        },
    },
    Attack {
        id: "component-core-module",
        kind: AttackKind::Component,
        tries: "is a core module, which knows no types and no interfaces",
        stopped_by: "only components are taken (INV-22)",
        told: "a core module, not a component",
        embedded: true,
        run: |arena| {
            let modules = vec![forge::MODULE.to_vec(), forge::build_module(3, &[0x20, 0, 0x0b])];
            Box::pin(none_loaded(arena, modules))
        },
    },
    Attack {
        id: "component-truncated",
        kind: AttackKind::Component,
        tries: "ends in the middle, at any of 200 places",
        stopped_by: "its sections are walked to their end before it is compiled (INV-22)",
        told: "not a valid component",
        embedded: true,
        run: |arena| Box::pin(load_truncated(arena)),
    },
    Attack {
        id: "component-of-an-unknown-version",
        kind: AttackKind::Component,
        tries: "has the header of a format that is to come",
        stopped_by: "only the one version is taken (INV-22)",
        told: "not a valid component",
        embedded: true,
        run: |arena| {
            let header = b"\0asm\x0e\0\x01\0".as_slice();
            let whole = FILE_READ.unpack_bytes();
            let whole = whole.get(header.len()..).unwrap_or_default();
            Box::pin(not_loaded(arena, [header, whole].concat()))
        },
    },
    Attack {
        id: "component-past-the-size",
        kind: AttackKind::Component,
        tries: "is a working tool with 64 MB of padding",
        stopped_by: "a bound on its size (INV-22)",
        told: "and at most 67108864 are accepted",
        embedded: true,
        run: |arena| Box::pin(load_padded(arena)),
    },
    Attack {
        id: "component-claims-of-4-gib",
        kind: AttackKind::Component,
        tries: "says that a section, a list and a name of it have 4 GiB",
        stopped_by: "lengths are checked against the bytes that are there (INV-22)",
        told: "not a valid component",
        embedded: true,
        run: |arena| Box::pin(load_false_lengths(arena)),
    },
    Attack {
        id: "component-many-imports",
        kind: AttackKind::Component,
        tries: "imports 100,000 things",
        stopped_by: "a bound on imports, before it is compiled (INV-22)",
        told: "it has over 1000 imports or exports",
        embedded: true,
        run: |arena| Box::pin(many_imports(arena)),
    },
];

/// Attack `component-truncated`: the attacker ends in the middle, at any of 200 places.
async fn load_truncated(arena: &Arena) -> Stopped {
    let whole = FILE_READ.unpack_bytes();
    let cut = |part: usize| whole.get(..9 + (whole.len() - 10) * part / 200);
    let all = (0..=200).filter_map(cut).map(<[u8]>::to_vec).collect();
    none_loaded(arena, all).await
}

/// Attack `component-past-the-size`: the attacker is a valid tool, padded beyond the accepted 64 MiB.
async fn load_padded(arena: &Arena) -> Stopped {
    let padding = build_section(forge::CUSTOM, &[vec![1, b'x'], vec![0; 64 << 20]].concat());
    not_loaded(arena, append_sections(&PLAIN.unpack_bytes(), &[padding])).await
}

/// Attack `component-claims-of-4-gib`: the attacker says that a section, a list and a name of it have 4 GiB.
async fn load_false_lengths(arena: &Arena) -> Stopped {
    let most = encode_leb(0xffff_ffff);
    let long_section = [vec![forge::CUSTOM], most.clone(), b"x".to_vec()].concat();
    let long_list = build_section(forge::IMPORT, &[most.as_slice(), &[0, 1, b'a', 1, 0]].concat());
    let long_name = build_section(forge::IMPORT, &[&[1, 0], most.as_slice(), b"a"].concat());
    let all = [long_section, long_list, long_name];
    none_loaded(
        arena,
        all.map(|section| append_sections(&PLAIN.unpack_bytes(), &[section])).to_vec(),
    )
    .await
}

/// Attack `component-many-imports`: the attacker imports 100,000 things.
async fn many_imports(arena: &Arena) -> Stopped {
    let import = |n: usize| {
        let name = format!("a{n}");
        // One import: a name, and the index of the first function type.
        [&[0], encode_leb(name.len()).as_slice(), name.as_bytes(), &[1, 0]].concat()
    };
    let imports = build_vector(&(0..100_000).map(import).collect::<Vec<_>>());
    not_loaded(
        arena,
        append_sections(&PLAIN.unpack_bytes(), &[build_section(forge::IMPORT, &imports)]),
    )
    .await
}
