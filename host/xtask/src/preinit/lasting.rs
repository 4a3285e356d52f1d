//! Makes objects of a Python interpreter immortal, so that stores share more memory.
//!
//! All stores of a Python component share the memory that the component starts with, except for the pages
//! that a store writes. An interpreter writes to nearly every object it uses, because it counts references.
//! Above a certain value the interpreter leaves the count alone, because the object is never freed. So this
//! module sets such a count in the objects that exist when the component is built.
//!
//! The tool lists these objects in its memory (`tools/run_python/src/lasting.py`). Some are freed before the
//! memory is saved, so each address is checked first.

use std::ops::Range;

use wasmparser::{DataKind, Operator, Parser, Payload};
use wasmtime::{Result, bail};

/// The bytes at the start of the list. The number of objects follows, then for each object its address and
/// the address of its type.
const MARK: &[u8; 16] = b"belljar: lasting";

/// The bytes of an address, and of each other number here.
const WORD: usize = 4;

/// A count of references that the interpreter leaves alone: `_Py_IMMORTAL_INITIAL_REFCNT` of CPython 3.14
/// with 32-bit addresses.
const LASTING: u32 = 5 << 28;

/// Real counts of references are from 1 to below this. If an object was freed, its memory has an address or
/// zero in place of the count; addresses are all higher than this.
const MAX_COUNT: u32 = 1 << 19;

/// Makes the listed objects of a component immortal, and blanks the list. Returns how many objects there
/// were.
///
/// # Errors
///
/// When it is no component, or there is no list in it.
pub(crate) fn make_lasting(component: &mut [u8]) -> Result<usize> {
    let memory = ModuleMemory::from_component(component)?;
    let lists = (0..memory.bytes.len().saturating_sub(MARK.len())).step_by(WORD);
    let mut lists = lists.filter_map(|at| memory.list_range(at));
    let (Some(list), None) = (lists.next(), lists.next()) else {
        bail!("there is not one list of lasting objects in the component's memory");
    };
    let mut lasting = 0;
    for at in list.clone().skip(MARK.len() + WORD).step_by(2 * WORD) {
        let (Some(object), Some(of)) = (memory.word_at(at), memory.word_at(at + WORD)) else {
            continue;
        };
        let object = object as usize;
        let count = memory.word_at(object).filter(|count| (1..MAX_COUNT).contains(count));
        if count.is_none() || memory.word_at(object + WORD) != Some(of) {
            continue;
        }
        // A count that ends in zeros may not be complete in the component's data.
        let (from, to) =
            (memory.component_offset(object), memory.component_offset(object + WORD - 1));
        if let (Some(from), Some(to)) = (from, to)
            && to - from == WORD - 1
            && let Some(place) = component.get_mut(from..=to)
        {
            place.copy_from_slice(&LASTING.to_le_bytes());
            lasting += 1;
        }
    }
    for at in list {
        if let Some(byte) = memory.component_offset(at).and_then(|from| component.get_mut(from)) {
            *byte = 0;
        }
    }
    Ok(lasting)
}

/// The initial memory of a module, as the component's data makes it.
struct ModuleMemory {
    bytes: Vec<u8>,
    /// Which parts of the memory the component's data has: their addresses, and where each part begins in the
    /// component.
    parts: Vec<(Range<usize>, usize)>,
}

impl ModuleMemory {
    /// The memory of the module with the most data, which is the interpreter's.
    fn from_component(component: &[u8]) -> Result<Self> {
        let (mut largest, mut most) = (Vec::new(), 0);
        for payload in Parser::new(0).parse_all(component) {
            let Payload::DataSection(section) = payload? else { continue };
            let mut parts = Vec::new();
            for data in section {
                let data = data?;
                let DataKind::Active { offset_expr, .. } = data.kind else { continue };
                if let Operator::I32Const { value } = offset_expr.get_operators_reader().read()? {
                    let from = usize::try_from(value.cast_unsigned())?;
                    let begin = data.range.end - data.data.len();
                    parts.push((from..from + data.data.len(), begin));
                }
            }
            let size = parts.iter().map(|(part, _)| part.len()).sum();
            if size > most {
                (largest, most) = (parts, size);
            }
        }
        largest.sort_by_key(|(part, _)| part.start);
        let end = largest.iter().map(|(part, _)| part.end).max().unwrap_or_default();
        let mut bytes = vec![0; end];
        for (part, begin) in &largest {
            if let (Some(to), Some(from)) =
                (bytes.get_mut(part.clone()), component.get(*begin..begin + part.len()))
            {
                to.copy_from_slice(from);
            }
        }
        Ok(Self { bytes, parts: largest })
    }

    fn word_at(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// The position in the component of the byte at an address.
    fn component_offset(&self, at: usize) -> Option<usize> {
        let next = self.parts.partition_point(|(part, _)| part.start <= at);
        let (part, begin) = self.parts.get(next.checked_sub(1)?)?;
        part.contains(&at).then(|| begin + at - part.start)
    }

    /// The range of the list at this address; `None` if there is no list, or it names addresses outside of
    /// the memory.
    fn list_range(&self, at: usize) -> Option<Range<usize>> {
        if !self.bytes.get(at..)?.starts_with(MARK) {
            return None;
        }
        let begin = at + MARK.len() + WORD;
        let count = self.word_at(begin - WORD)? as usize;
        let end = begin.checked_add(count.checked_mul(2 * WORD)?)?;
        let whole = count > 0
            && self.bytes.get(begin..end)?.chunks_exact(WORD).all(|word| {
                word.first_chunk().is_some_and(|word| {
                    let address = u32::from_le_bytes(*word);
                    address >= MAX_COUNT && (address as usize) < self.bytes.len()
                })
            });
        whole.then_some(at..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address at which the data of the tests begins.
    const BASE: u32 = 1 << 20;

    /// Makes a component around a module whose memory contains these words.
    fn component(words: &[u32]) -> Vec<u8> {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let text: String = data.iter().map(|byte| format!("\\{byte:02x}")).collect();
        let module = format!("(memory 32) (data (i32.const {BASE}) \"{text}\")");
        wat::parse_str(format!("(component (core module {module}))")).unwrap()
    }

    /// The words in the memory of the component's module.
    fn words(component: &[u8]) -> Vec<u32> {
        let memory = ModuleMemory::from_component(component).unwrap();
        let bytes = memory.bytes.get(BASE as usize..).unwrap();
        bytes.chunks_exact(WORD).map(|it| u32::from_le_bytes(it.try_into().unwrap())).collect()
    }

    fn list(pairs: &[(u32, u32)]) -> Vec<u32> {
        let mark = MARK.chunks_exact(WORD).map(|it| u32::from_le_bytes(it.try_into().unwrap()));
        let pairs_as_words = pairs.iter().flat_map(|(object, of)| [*object, *of]);
        mark.chain([pairs.len() as u32]).chain(pairs_as_words).collect()
    }

    #[test]
    fn listed_objects_last_and_the_list_is_gone() {
        let of = BASE + 64;
        // In this order: an object that lasts, an object that is not listed, a word that is no count, an
        // object of another type.
        let objects = [3, of, 3, of, BASE, of, 3, of + 4];
        let addresses = [0, 16, 24].map(|at| (BASE + at, of));
        let before = [&objects[..], &list(&addresses)].concat();
        let mut component = component(&before);
        assert_eq!(make_lasting(&mut component).unwrap(), 1);
        let after = words(&component);
        assert_eq!(after[..8], [LASTING, of, 3, of, BASE, of, 3, of + 4]);
        assert!(after[8..].iter().all(|word| *word == 0));
        assert_eq!(after.len(), before.len());
    }

    #[test]
    fn a_mark_without_a_whole_list_is_none() {
        let outside = list(&[(BASE, BASE + (1 << 20))]);
        for words in [&[1, 2, 3, 4][..], &list(&[]), &outside] {
            let mut component = component(words);
            let before = component.clone();
            assert!(make_lasting(&mut component).is_err());
            assert_eq!(component, before);
        }
        assert!(make_lasting(&mut b"no component".to_vec()).is_err());
    }
}
