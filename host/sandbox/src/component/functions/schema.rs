//! Converts a function's parameters to a JSON Schema.
//!
//! A type that is short to write can be enormous when its parts are written out, so every walk over types
//! counts its steps.

use serde_json::{Map, Value, json};
use wasmtime::component::Type;
use wasmtime::component::types::ComponentFunc;

/// The deepest nesting of types. Each level makes up to three levels of JSON, of which 64 are allowed.
const MAX_DEPTH: usize = 16;

/// The most types within one function, with the cases of variants, enums and flags. A type counts each time
/// it is used, because parsing a value compares it with all cases.
const MAX_TYPES: usize = 500;

/// The most bytes of a parameter's name, because providers of models refuse longer properties.
const MAX_PARAMETER: usize = 64;

/// The JSON Schema of a function's arguments. `Err`: why the function has none, for example because of a
/// stream.
pub(super) fn arguments_schema(function: &ComponentFunc) -> Result<Value, String> {
    let mut left = MAX_TYPES;
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, ty) in function.params() {
        if name.len() > MAX_PARAMETER {
            return Err(format!("a parameter's name has over {MAX_PARAMETER} bytes"));
        }
        let schema = type_schema(&ty, MAX_DEPTH, &mut left)
            .map_err(|why| format!("its parameter `{name}` {why}"))?;
        if !matches!(ty, Type::Option(_)) {
            required.push(name.to_owned());
        }
        properties.insert(name.to_owned(), schema);
    }
    Ok(object_schema(properties, required))
}

/// Checks that the function's result can be converted to JSON.
pub(super) fn check_result(function: &ComponentFunc) -> Result<(), String> {
    let mut left = MAX_TYPES;
    for ty in function.results() {
        type_schema(&ty, MAX_DEPTH, &mut left).map_err(|why| format!("its result {why}"))?;
    }
    Ok(())
}

fn type_schema(ty: &Type, depth: usize, left: &mut usize) -> Result<Value, String> {
    if depth == 0 {
        return Err(format!("nests deeper than {MAX_DEPTH} levels"));
    }
    *left = left
        .checked_sub(1)
        .ok_or_else(|| format!("has over {MAX_TYPES} types within each other"))?;
    *left = left
        .checked_sub(count_cases(ty))
        .ok_or_else(|| format!("has over {MAX_TYPES} types and cases"))?;
    let depth = depth - 1;
    Ok(match ty {
        Type::Bool => json!({ "type": "boolean" }),
        Type::S8 => integer_schema(i8::MIN, i8::MAX),
        Type::U8 => integer_schema(u8::MIN, u8::MAX),
        Type::S16 => integer_schema(i16::MIN, i16::MAX),
        Type::U16 => integer_schema(u16::MIN, u16::MAX),
        Type::S32 => integer_schema(i32::MIN, i32::MAX),
        Type::U32 => integer_schema(u32::MIN, u32::MAX),
        Type::S64 => integer_schema(i64::MIN, i64::MAX),
        Type::U64 => integer_schema(u64::MIN, u64::MAX),
        Type::Float32 | Type::Float64 => json!({ "type": "number" }),
        Type::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        Type::String => json!({ "type": "string" }),
        Type::List(list) if list.ty() == Type::U8 => {
            json!({ "type": "string", "contentEncoding": "base64" })
        }
        Type::List(list) => {
            json!({ "type": "array", "items": type_schema(&list.ty(), depth, left)? })
        }
        Type::FixedLengthList(list) => {
            let items = type_schema(&list.ty(), depth, left)?;
            let length = list.len();
            json!({ "type": "array", "items": items, "minItems": length, "maxItems": length })
        }
        Type::Tuple(tuple) => {
            let items = tuple.types().map(|ty| type_schema(&ty, depth, left));
            let items = items.collect::<Result<Vec<_>, _>>()?;
            let length = items.len();
            json!({
                "type": "array", "prefixItems": items, "minItems": length, "maxItems": length,
            })
        }
        Type::Record(record) => {
            let (mut properties, mut required) = (Map::new(), Vec::new());
            for field in record.fields() {
                if !matches!(field.ty, Type::Option(_)) {
                    required.push(field.name.to_owned());
                }
                properties.insert(field.name.to_owned(), type_schema(&field.ty, depth, left)?);
            }
            object_schema(properties, required)
        }
        Type::Variant(variant) => {
            let cases = variant.cases().map(|it| case_schema(it.name, it.ty, depth, left));
            json!({ "oneOf": cases.collect::<Result<Vec<_>, _>>()? })
        }
        Type::Result(result) => {
            let (ok, err) = (result.ok(), result.err());
            json!({ "oneOf": [case_schema("ok", ok, depth, left)?, case_schema("err", err, depth, left)?] })
        }
        Type::Enum(names) => json!({ "enum": names.names().collect::<Vec<_>>() }),
        Type::Flags(flags) => {
            let names: Vec<_> = flags.names().collect();
            json!({ "type": "array", "items": { "enum": names }, "uniqueItems": true })
        }
        // With two options in each other, `null` could mean either, so the inner one is an object with
        // `some`.
        Type::Option(option) if matches!(option.ty(), Type::Option(_)) => {
            json!({ "anyOf": [case_schema("some", Some(option.ty()), depth, left)?, { "type": "null" }] })
        }
        Type::Option(option) => {
            json!({ "anyOf": [type_schema(&option.ty(), depth, left)?, { "type": "null" }] })
        }
        Type::Own(_) | Type::Borrow(_) => {
            return Err("holds a resource, which JSON cannot name".to_owned());
        }
        Type::Future(_) | Type::Stream(_) => {
            return Err("holds a stream or a future, which JSON cannot hold".to_owned());
        }
        Type::ErrorContext => return Err("holds an error context".to_owned()),
        Type::Map(_) => return Err("holds a map, which is not supported".to_owned()),
    })
}

/// The number of cases of a variant, an enum or flags; 0 for other types.
fn count_cases(ty: &Type) -> usize {
    match ty {
        Type::Variant(variant) => variant.cases().count(),
        Type::Enum(names) => names.names().count(),
        Type::Flags(flags) => flags.names().count(),
        _ => 0,
    }
}

/// The schema of a case of a variant: its name, or an object with one property if the case has a value.
fn case_schema(
    name: &str,
    ty: Option<Type>,
    depth: usize,
    left: &mut usize,
) -> Result<Value, String> {
    match ty {
        None => Ok(json!({ "const": name })),
        Some(ty) => {
            let mut properties = Map::new();
            properties.insert(name.to_owned(), type_schema(&ty, depth, left)?);
            Ok(object_schema(properties, vec![name.to_owned()]))
        }
    }
}

fn object_schema(properties: Map<String, Value>, required: Vec<String>) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn integer_schema<T: Into<serde_json::Number>>(least: T, most: T) -> Value {
    let (least, most) = (Value::Number(least.into()), Value::Number(most.into()));
    json!({ "type": "integer", "minimum": least, "maximum": most })
}
