//! Converts the arguments of a call from JSON to values of a component's types, and results back to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{Type, Val};

/// The most values in the arguments of a call, because each uses some 40 bytes of the host's memory, however
/// short it is in JSON.
const MAX_VALUES: usize = 1_000_000;

/// The most characters of a name that an error shows.
const MAX_SHOWN: usize = 64;

/// Numbers that JSON cannot write; they are passed as these texts.
const SPECIAL: [(&str, f64); 3] =
    [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)];

/// The parameters of a function, from a call's arguments. `Err`: what is wrong with the arguments.
pub(super) fn parse_arguments(
    function: &ComponentFunc,
    given: &Map<String, Value>,
) -> Result<Vec<Val>, String> {
    let mut maker = ValueBuilder { left: MAX_VALUES };
    maker
        .build_fields(function.params().map(|(name, ty)| (name.to_owned(), ty)), given)
        .map(|fields| fields.into_iter().map(|(_, value)| value).collect())
}

/// The types of a result's two cases, `ok` and `err`; `None`: the type is not a result.
pub(super) fn outcome_types(ty: &Type) -> Option<(Option<Type>, Option<Type>)> {
    match ty {
        Type::Result(result) => Some((result.ok(), result.err())),
        _ => None,
    }
}

/// The bytes of a value that is a list of bytes; `None`: something else.
pub(super) fn to_byte_list(ty: &Type, value: &Val) -> Option<Vec<u8>> {
    match (ty, value) {
        (Type::List(list), Val::List(items)) if list.ty() == Type::U8 => Some(collect_bytes(items)),
        _ => None,
    }
}

/// Converts a value to JSON. The type must be one for which a schema exists.
pub(super) fn to_json(ty: &Type, value: &Val) -> Value {
    if let Some(bytes) = to_byte_list(ty, value) {
        return Value::String(STANDARD.encode(bytes));
    }
    match (ty, value) {
        (_, Val::Bool(value)) => Value::Bool(*value),
        (_, Val::S8(number)) => (*number).into(),
        (_, Val::U8(number)) => (*number).into(),
        (_, Val::S16(number)) => (*number).into(),
        (_, Val::U16(number)) => (*number).into(),
        (_, Val::S32(number)) => (*number).into(),
        (_, Val::U32(number)) => (*number).into(),
        (_, Val::S64(number)) => (*number).into(),
        (_, Val::U64(number)) => (*number).into(),
        // Through the decimal text, as a person would write the number, because the 64-bit number nearest to
        // a 32-bit 0.1 has 17 digits.
        (_, Val::Float32(number)) => float_to_json(number.to_string().parse().unwrap_or(f64::NAN)),
        (_, Val::Float64(number)) => float_to_json(*number),
        (_, Val::Char(char)) => Value::String(char.to_string()),
        (_, Val::String(text)) => Value::String(text.clone()),
        (Type::List(list), Val::List(items)) => to_json_array(&list.ty(), items),
        (Type::FixedLengthList(list), Val::FixedLengthList(items)) => {
            to_json_array(&list.ty(), items)
        }
        (Type::Tuple(tuple), Val::Tuple(items)) => {
            tuple.types().zip(items).map(|(ty, item)| to_json(&ty, item)).collect()
        }
        (Type::Record(record), Val::Record(fields)) => {
            let fields = record.fields().zip(fields);
            let fields =
                fields.map(|(field, (name, value))| (name.clone(), to_json(&field.ty, value)));
            Value::Object(fields.collect())
        }
        (Type::Variant(variant), Val::Variant(name, value)) => {
            let find = |_| variant.cases().find(|case| case.name == name);
            let ty = value.as_ref().and_then(find).and_then(|case| case.ty);
            case_to_json(name, ty, value.as_deref())
        }
        (Type::Result(result), Val::Result(value)) => match value {
            Ok(value) => case_to_json("ok", result.ok(), value.as_deref()),
            Err(value) => case_to_json("err", result.err(), value.as_deref()),
        },
        (Type::Option(option), Val::Option(value)) => match value {
            None => Value::Null,
            Some(value) if matches!(option.ty(), Type::Option(_)) => {
                case_to_json("some", Some(option.ty()), Some(value))
            }
            Some(value) => to_json(&option.ty(), value),
        },
        (_, Val::Enum(name)) => Value::String(name.clone()),
        (_, Val::Flags(names)) => names.iter().cloned().map(Value::String).collect(),
        _ => Value::Null,
    }
}

fn to_json_array(ty: &Type, items: &[Val]) -> Value {
    items.iter().map(|item| to_json(ty, item)).collect()
}

fn case_to_json(name: &str, ty: Option<Type>, value: Option<&Val>) -> Value {
    match (ty, value) {
        (Some(ty), Some(value)) => {
            let mut object = Map::new();
            object.insert(name.to_owned(), to_json(&ty, value));
            Value::Object(object)
        }
        _ => Value::String(name.to_owned()),
    }
}

fn float_to_json(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => Value::from("NaN"),
        None if number > 0.0 => Value::from("Infinity"),
        None => Value::from("-Infinity"),
    }
}

fn collect_bytes(items: &[Val]) -> Vec<u8> {
    let byte = |item: &Val| match item {
        Val::U8(byte) => Some(*byte),
        _ => None,
    };
    items.iter().filter_map(byte).collect()
}

/// Makes values from JSON, and counts them. Callers prefix an error with the field's name, so that it says
/// where.
struct ValueBuilder {
    /// How many more values may be made.
    left: usize,
}

impl ValueBuilder {
    fn count_values(&mut self, values: usize) -> Result<(), String> {
        match self.left.checked_sub(values) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(format!("the arguments hold over {MAX_VALUES} values")),
        }
    }

    /// Converts a JSON value to a component value of the given type, recursively. The error completes a
    /// sentence about the argument, for example "is not one character".
    fn build_value(&mut self, ty: &Type, given: &Value) -> Result<Val, String> {
        self.count_values(1)?;
        Ok(match ty {
            Type::Bool => Val::Bool(given.as_bool().ok_or("is not true or false")?),
            Type::S8 => Val::S8(parse_signed(given)?),
            Type::S16 => Val::S16(parse_signed(given)?),
            Type::S32 => Val::S32(parse_signed(given)?),
            Type::S64 => Val::S64(parse_signed(given)?),
            Type::U8 => Val::U8(parse_unsigned(given)?),
            Type::U16 => Val::U16(parse_unsigned(given)?),
            Type::U32 => Val::U32(parse_unsigned(given)?),
            Type::U64 => Val::U64(parse_unsigned(given)?),
            Type::Float32 => {
                let double = parse_double(given)?;
                #[expect(clippy::cast_possible_truncation, reason = "rounded, as any f32 is")]
                let float = double as f32;
                if float.is_infinite() && double.is_finite() {
                    return Err("is too large for 32 bits".to_owned());
                }
                Val::Float32(float)
            }
            Type::Float64 => Val::Float64(parse_double(given)?),
            Type::Char => {
                let mut chars = expect_text(given)?.chars();
                match (chars.next(), chars.next()) {
                    (Some(char), None) => Val::Char(char),
                    _ => return Err("is not one character".to_owned()),
                }
            }
            Type::String => Val::String(expect_text(given)?.to_owned()),
            Type::List(list) if list.ty() == Type::U8 && given.is_string() => {
                let bytes = STANDARD.decode(expect_text(given)?).map_err(|_| "is not base64")?;
                self.count_values(bytes.len())?;
                Val::List(bytes.into_iter().map(Val::U8).collect())
            }
            Type::List(list) => Val::List(self.build_items(&list.ty(), expect_array(given)?)?),
            Type::FixedLengthList(list) => {
                let items = expect_array(given)?;
                if u32::try_from(items.len()) != Ok(list.len()) {
                    return Err(format!("does not have {} items", list.len()));
                }
                Val::FixedLengthList(self.build_items(&list.ty(), items)?)
            }
            Type::Tuple(tuple) => {
                let (types, items) = (tuple.types(), expect_array(given)?);
                if types.len() != items.len() {
                    return Err(format!("does not have {} items", types.len()));
                }
                let pairs = types.zip(items).enumerate();
                let values = pairs.map(|(turn, (ty, item))| {
                    self.build_value(&ty, item).map_err(|why| format!("[{turn}] {why}"))
                });
                Val::Tuple(values.collect::<Result<_, _>>()?)
            }
            Type::Record(record) => {
                let given = given.as_object().ok_or("is not an object")?;
                let fields = record.fields().map(|field| (field.name.to_owned(), field.ty));
                Val::Record(self.build_fields(fields, given)?)
            }
            Type::Variant(variant) => {
                let (name, value) = parse_case(given)?;
                let case = variant.cases().find(|case| case.name == name);
                let case = case.ok_or_else(|| no_case(name))?;
                Val::Variant(name.to_owned(), self.build_payload(case.ty, value)?)
            }
            Type::Result(result) => {
                let (name, value) = parse_case(given)?;
                Val::Result(match name {
                    "ok" => Ok(self.build_payload(result.ok(), value)?),
                    "err" => Err(self.build_payload(result.err(), value)?),
                    _ => return Err(no_case(name)),
                })
            }
            Type::Enum(names) => {
                let name = expect_text(given)?;
                if !names.names().any(|known| known == name) {
                    return Err(no_case(name));
                }
                Val::Enum(name.to_owned())
            }
            Type::Flags(flags) => {
                let mut set = Vec::new();
                for name in expect_array(given)? {
                    let name = expect_text(name)?;
                    if !flags.names().any(|known| known == name) {
                        return Err(no_case(name));
                    }
                    self.count_values(1)?;
                    if !set.iter().any(|known| known == name) {
                        set.push(name.to_owned());
                    }
                }
                Val::Flags(set)
            }
            Type::Option(_) if given.is_null() => Val::Option(None),
            Type::Option(option) if matches!(option.ty(), Type::Option(_)) => {
                let inner = match parse_case(given)? {
                    ("some", Some(inner)) => inner,
                    _ => return Err("is neither null nor an object with `some`".to_owned()),
                };
                Val::Option(Some(Box::new(self.build_value(&option.ty(), inner)?)))
            }
            Type::Option(option) => {
                Val::Option(Some(Box::new(self.build_value(&option.ty(), given)?)))
            }
            Type::Map(_)
            | Type::Own(_)
            | Type::Borrow(_)
            | Type::Future(_)
            | Type::Stream(_)
            | Type::ErrorContext => return Err("is of a type that JSON cannot hold".to_owned()),
        })
    }

    fn build_items(&mut self, ty: &Type, given: &[Value]) -> Result<Vec<Val>, String> {
        let pairs = given.iter().enumerate();
        let values = pairs.map(|(turn, item)| {
            self.build_value(ty, item).map_err(|why| format!("[{turn}] {why}"))
        });
        values.collect()
    }

    /// The values of a record's fields or a function's parameters. Fields of an option type may be missing;
    /// unknown fields are refused.
    fn build_fields(
        &mut self,
        fields: impl Iterator<Item = (String, Type)>,
        given: &Map<String, Value>,
    ) -> Result<Vec<(String, Val)>, String> {
        let mut made = Vec::new();
        let mut used = 0_usize;
        for (name, ty) in fields {
            let value = match given.get(&name) {
                Some(value) => {
                    used += 1;
                    self.build_value(&ty, value).map_err(|why| format!("`{name}` {why}"))?
                }
                None if matches!(ty, Type::Option(_)) => Val::Option(None),
                None => return Err(format!("`{name}` is missing")),
            };
            made.push((name, value));
        }
        if used == given.len() {
            return Ok(made);
        }
        let other = given.keys().find(|key| made.iter().all(|(name, _)| name != *key));
        let other =
            belljar_policy::ShownText::clip_line(other.map_or("", String::as_str), MAX_SHOWN);
        Err(format!("there is no `{other}`"))
    }

    /// Converts the optional value of a variant, an option or a result. The value has to be present exactly
    /// if there is a type.
    fn build_payload(
        &mut self,
        ty: Option<Type>,
        given: Option<&Value>,
    ) -> Result<Option<Box<Val>>, String> {
        match (ty, given) {
            (None, None | Some(Value::Null)) => Ok(None),
            (Some(ty), Some(given)) => Ok(Some(Box::new(self.build_value(&ty, given)?))),
            (None, Some(_)) => Err("has a value, and its case takes none".to_owned()),
            (Some(_), None) => Err("has no value, and its case takes one".to_owned()),
        }
    }
}

/// The name and the value of a variant's case in JSON: the name alone, or an object with one property.
fn parse_case(given: &Value) -> Result<(&str, Option<&Value>), String> {
    if let Some(name) = given.as_str() {
        return Ok((name, None));
    }
    let mut fields = given.as_object().into_iter().flatten();
    match (fields.next(), fields.next()) {
        (Some((name, value)), None) => Ok((name, Some(value))),
        _ => Err("is neither a name nor an object of one property".to_owned()),
    }
}

fn no_case(name: &str) -> String {
    format!("has no case `{}`", belljar_policy::ShownText::clip_line(name, MAX_SHOWN))
}

fn expect_text(given: &Value) -> Result<&str, String> {
    given.as_str().ok_or_else(|| "is not a text".to_owned())
}

fn expect_array(given: &Value) -> Result<&[Value], String> {
    given.as_array().map(Vec::as_slice).ok_or_else(|| "is not a list".to_owned())
}

fn parse_signed<T: TryFrom<i64>>(given: &Value) -> Result<T, String> {
    let number = given.as_i64().and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| "is not a whole number of its range".to_owned())
}

fn parse_unsigned<T: TryFrom<u64>>(given: &Value) -> Result<T, String> {
    let number = given.as_u64().and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| "is not a whole number of its range".to_owned())
}

fn parse_double(given: &Value) -> Result<f64, String> {
    let special =
        |text: &str| SPECIAL.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    let number = given.as_f64().or_else(|| given.as_str().and_then(special));
    number.ok_or_else(|| "is not a number".to_owned())
}
