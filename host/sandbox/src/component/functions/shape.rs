//! Writes a function's type as one line, close to WIT's syntax, for the tool's description: the schema of
//! the arguments does not show the type of the result.

use wasmtime::component::Type;
use wasmtime::component::types::ComponentFunc;

/// The most bytes of the line; a longer one ends in `...`.
const MAX_SHAPE: usize = 1_000;

/// The type of a function, for example `func(a: u32) -> string`.
pub(super) fn format_function(function: &ComponentFunc) -> String {
    let mut text = String::from("func(");
    for (turn, (name, ty)) in function.params().enumerate() {
        if turn > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
        text.push_str(": ");
        format_type(&ty, &mut text);
    }
    text.push(')');
    if let Some(ty) = function.results().next() {
        text.push_str(" -> ");
        format_type(&ty, &mut text);
    }
    if text.len() > MAX_SHAPE {
        text.truncate(text.floor_char_boundary(MAX_SHAPE));
        text.push_str("...");
    }
    text
}

/// Appends a type's text. Only types with a schema occur here, so the depth is bounded; the length is
/// bounded because appending stops at the limit.
fn format_type(ty: &Type, text: &mut String) {
    if text.len() > MAX_SHAPE {
        return;
    }
    match ty {
        Type::Bool => text.push_str("bool"),
        Type::S8 => text.push_str("s8"),
        Type::U8 => text.push_str("u8"),
        Type::S16 => text.push_str("s16"),
        Type::U16 => text.push_str("u16"),
        Type::S32 => text.push_str("s32"),
        Type::U32 => text.push_str("u32"),
        Type::S64 => text.push_str("s64"),
        Type::U64 => text.push_str("u64"),
        Type::Float32 => text.push_str("f32"),
        Type::Float64 => text.push_str("f64"),
        Type::Char => text.push_str("char"),
        Type::String => text.push_str("string"),
        Type::List(list) => format_enclosed("list<", [Some(list.ty())], text),
        Type::FixedLengthList(list) => format_enclosed("list<", [Some(list.ty())], text),
        Type::Option(option) => format_enclosed("option<", [Some(option.ty())], text),
        Type::Result(result) => format_enclosed("result<", [result.ok(), result.err()], text),
        Type::Tuple(tuple) => format_enclosed("tuple<", tuple.types().map(Some), text),
        Type::Record(record) => {
            let fields = record.fields().map(|field| (field.name.to_owned(), Some(field.ty)));
            format_braced("record", fields, text);
        }
        Type::Variant(variant) => {
            let cases = variant.cases().map(|case| (case.name.to_owned(), case.ty));
            format_braced("variant", cases, text);
        }
        Type::Enum(names) => {
            format_braced("enum", names.names().map(|name| (name.to_owned(), None)), text);
        }
        Type::Flags(flags) => {
            format_braced("flags", flags.names().map(|name| (name.to_owned(), None)), text);
        }
        Type::Map(_)
        | Type::Own(_)
        | Type::Borrow(_)
        | Type::Future(_)
        | Type::Stream(_)
        | Type::ErrorContext => text.push('_'),
    }
}

/// Writes the types between `open` and `>`, separated by commas. A missing type is written as `_`.
fn format_enclosed(open: &str, types: impl IntoIterator<Item = Option<Type>>, text: &mut String) {
    text.push_str(open);
    for (turn, ty) in types.into_iter().enumerate() {
        if turn > 0 {
            text.push_str(", ");
        }
        match ty {
            Some(ty) => format_type(&ty, text),
            None => text.push('_'),
        }
    }
    text.push('>');
}

/// Writes a record-like type as `word { name: type, ... }`. Stops when the text is too long.
fn format_braced(
    word: &str,
    items: impl Iterator<Item = (String, Option<Type>)>,
    text: &mut String,
) {
    text.push_str(word);
    text.push_str(" { ");
    for (turn, (name, ty)) in items.enumerate() {
        if turn > 0 {
            text.push_str(", ");
        }
        if text.len() > MAX_SHAPE {
            return;
        }
        text.push_str(&name);
        if let Some(ty) = ty {
            text.push_str(": ");
            format_type(&ty, text);
        }
    }
    text.push_str(" }");
}
