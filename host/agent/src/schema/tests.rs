//! Tests with schemas that a stranger wrote to be expensive, and with honest schemas that must still work.

use belljar_work::{MAX_RUNNING_PER_OWNER, MAX_WAITING_PER_OWNER};
use futures::future::join_all;
use serde_json::{Map, Value, json};

use super::*;
use crate::brought::{BroughtError, CallerInput};
use crate::limits::{MAX_SCHEMA_STATES, MAX_SCHEMAS_MEMORY};

/// Weighs and compiles one schema, as a caller's request does.
pub(crate) fn compiled(schema: &Value) -> Result<CompiledSchema, String> {
    let cost = CompiledSchema::weigh_schema(schema, &StopSignal::never_raised())?;
    CompiledSchema::compile(schema, cost)
}

/// The verdict of a check with the full number of steps for an answer.
fn check(schema: &CompiledSchema, text: &str) -> Verdict {
    schema.check_text(text, &mut { MAX_CHECK_STEPS }, &StopSignal::never_raised())
}

fn why(schema: &Value) -> String {
    compiled(schema).map(drop).unwrap_err()
}

/// A schema of `deep` levels, each made from the inner one by `level`.
fn nested(deep: usize, level: impl Fn(Value) -> Value) -> Value {
    (0..deep).fold(json!({"type": "string"}), |inner, _| level(inner))
}

#[test]
fn a_value_fits_or_it_is_said_where_it_does_not() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/n"}},
        "required": ["n"],
        "additionalProperties": false,
        "$defs": {"n": {"type": "integer"}},
    });
    let schema = compiled(&schema).unwrap();
    assert_eq!(check(&schema, " {\"n\": 1}\n"), Ok(()));
    assert!(check(&schema, "{\"n\": \"1\"}").unwrap_err().starts_with("at `/n`: "));
    assert!(check(&schema, "```json\n{}\n```").unwrap_err().contains("not one JSON value"));
    assert!(check(&schema, "{}").unwrap_err().contains('n'));
}

/// INV-283: an expensive schema is refused before it is compiled.
#[test]
fn a_schema_that_would_take_long_is_refused() {
    let circle = json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
    assert!(why(&circle).contains("circle"));
    let mut defs = Map::new();
    defs.insert("d0".to_owned(), json!({"type": "string"}));
    for n in 1..30 {
        let below = json!({"$ref": format!("#/$defs/d{}", n - 1)});
        defs.insert(format!("d{n}"), json!({"allOf": [below, below]}));
    }
    let doubling = json!({"$defs": defs, "$ref": "#/$defs/d29"});
    assert!(why(&doubling).contains("too large"), "{}", why(&doubling));
    assert!(why(&json!({"$ref": "https://example.com/x"})).contains("no part of it"));
    assert!(why(&json!({"$ref": "file:///etc/passwd"})).contains("no part of it"));
    assert!(why(&json!({"title": "x".repeat(1 << 20)})).contains("bytes"));
    assert!(why(&nested(100, |inner| json!({"items": inner}))).contains("deeper"));
    // A backtracking regex engine would hang on this pattern; belljar's engine matches in linear time, or
    // refuses.
    let slow = json!({"type": "string", "pattern": "^(a+)+$"});
    let schema = compiled(&slow).unwrap();
    assert!(check(&schema, &format!("\"{}b\"", "a".repeat(20_000))).is_err());
    assert!(compiled(&json!({"pattern": "(?<=a)b"})).is_err());
}

/// INV-400: the refusal names the place of the pattern, wherever the schema has it.
#[test]
fn a_pattern_that_is_large_when_it_is_compiled_is_refused_with_its_place() {
    let large = [
        r"\pL{180}0",
        r"((a{100}){100}){100}",
        r"((((a{20}){20}){20}){20}){20}",
        r"[^\x00]{9999}",
        r"(?:\p{L}|\p{N}|\p{S}){90}",
        r"(\w{1000}|\d{1000}){50}",
    ];
    for pattern in large {
        for (schema, at) in [
            (json!({"pattern": pattern}), "/pattern"),
            (json!({"patternProperties": {pattern: {}}}), "/patternProperties/"),
            (json!({"items": [{"not": {"pattern": pattern}}]}), "/items/0/not/pattern"),
            (json!({"propertyNames": {"pattern": pattern}}), "/propertyNames/pattern"),
            (
                json!({"$defs": {"a/b": {"pattern": pattern}}, "$ref": "#/$defs/a~1b"}),
                "/$defs/a~1b/pattern",
            ),
        ] {
            let why = why(&schema);
            assert!(why.contains(&format!("has at `{at}")), "{pattern}: {why}");
            assert!(why.contains("1048576 bytes"), "{pattern}: {why}");
        }
    }
}

/// INV-400: a pattern within its own bound may still exceed the bound of all patterns together.
#[test]
fn many_patterns_have_a_bound_together() {
    let pattern = |n: usize| json!({"pattern": format!("a[ab]{{{}}}[^ab]", 850 + n)});
    let forty = json!({"allOf": (0..40).map(pattern).collect::<Vec<_>>()});
    assert!(why(&forty).contains(&format!("at most {MAX_SCHEMA_STATES}")), "{}", why(&forty));
    // A pattern that is used at many places is counted at each.
    let reused = json!({
        "$defs": {"p": pattern(0)},
        "allOf": vec![json!({"$ref": "#/$defs/p"}); 40],
    });
    assert!(why(&reused).contains("states"), "{}", why(&reused));
    let names: Map<_, _> = (0..400).map(|n| (format!("(x{n})[a-f]{{100}}"), json!({}))).collect();
    assert!(why(&json!({"patternProperties": names})).contains("states"));
    assert!(compiled(&pattern(0)).is_ok());
}

/// INV-400: the schemas of a request's tools and of its answer have one bound together.
#[test]
fn the_schemas_of_a_request_have_a_bound_together() {
    let tool = |n: usize| {
        let patterns: Vec<Value> =
            (0..4).map(|m| json!({"pattern": format!("^\\p{{L}}{{2}}{n}x{m}$")})).collect();
        (format!("tools[{n}].parameters"), json!({"type": "object", "allOf": patterns}))
    };
    let few: Vec<_> = (0..2).map(tool).collect();
    assert!(SchemaSet::compile_all(few, &StopSignal::never_raised()).is_ok());
    let many: Vec<_> = (0..64).map(tool).collect();
    let error = SchemaSet::compile_all(many, &StopSignal::never_raised()).unwrap_err();
    let BroughtError::Unfit(unfit) = error else { panic!("{error}") };
    assert!(unfit.at.starts_with("tools["), "{unfit}");
    assert!(unfit.why.contains(&MAX_SCHEMAS_MEMORY.to_string()), "{unfit}");
}

/// INV-400: each of these levels checks all levels below again, so thirty levels would take for ever.
#[test]
fn unevaluated_properties_in_each_other_are_refused_before_they_are_compiled() {
    for key in ["unevaluatedProperties", "unevaluatedItems"] {
        let deep = nested(30, |inner| json!({"anyOf": [inner, {"minLength": 1}], key: false}));
        assert!(why(&deep).contains("in each other"), "{}", why(&deep));
        let flat = nested(1, |inner| json!({"anyOf": [inner, {"minProperties": 1}], key: false}));
        assert!(compiled(&flat).is_ok());
    }
}

/// INV-401: the steps are counted before the check begins.
#[test]
fn a_value_that_would_take_long_to_check_is_refused_before_it_is_checked() {
    let slow = compiled(&json!({"pattern": "a[ab]{850}[^ab]"})).unwrap();
    let long = format!("\"{}\"", "ab".repeat(100_000));
    let why = check(&slow, &long).unwrap_err();
    assert!(why.contains("too long") && why.contains("at most 100000000 are made"), "{why}");
    assert!(check(&slow, "\"abc\"").unwrap_err().contains("does not match"));
    // A single match cannot be interrupted, so its bound is lower than the bound of a whole check.
    let long = format!("\"{}\"", "ab".repeat(25_000));
    let why = check(&slow, &long).unwrap_err();
    assert!(why.contains("one text") && why.contains(&MAX_MATCH_STEPS.to_string()), "{why}");
    let many = compiled(&json!({"items": {"pattern": "a[ab]{850}[^ab]"}})).unwrap();
    let texts = vec!["ab".repeat(50); 500];
    assert!(check(&many, &json!(texts).to_string()).unwrap_err().contains("does not match"));
    // A schema with many parts, checked against an array with many values.
    let parts: Vec<_> = (0..1_000).map(|n| json!({"not": {"const": n}})).collect();
    let wide = compiled(&json!({"items": {"allOf": parts}})).unwrap();
    let many = format!("[{}-1]", "-1,".repeat(50_000));
    assert!(check(&wide, &many).unwrap_err().contains("too long"));
    assert_eq!(check(&wide, "[-1, -2]"), Ok(()));
}

/// INV-401: all checks of a step share one number of steps.
#[test]
fn the_checks_of_one_step_have_a_bound_together() {
    let schema = compiled(&json!({"pattern": "a[ab]{850}[^ab]"})).unwrap();
    let text = format!("\"{}\"", "ab".repeat(15_000));
    let check = SchemaCheck { schema, text };
    let verdicts =
        SchemaCheck::run_all(&vec![check.clone(); 32], &StopSignal::never_raised()).unwrap();
    let long = verdicts.iter().filter(|it| it.as_ref().unwrap_err().contains("too long"));
    assert!((29..32).contains(&long.count()), "{:?}", verdicts.first());
    let stop = StopSignal::never_raised();
    stop.raise();
    assert_eq!(SchemaCheck::run_all(&[check], &stop), None);
}

/// One error for each alternative of each item would take gigabytes of memory.
#[test]
fn a_large_value_that_fits_no_alternative_is_refused_without_a_list() {
    let parts: Vec<_> = (0..300).map(|n| json!({"items": {"const": n}})).collect();
    let schema = compiled(&json!({"anyOf": parts})).unwrap();
    let many = format!("[{}\"x\"]", "\"x\",".repeat(20_000));
    assert!(check(&schema, &many).unwrap_err().contains("too large to say where"));
    assert!(check(&schema, "[\"x\"]").unwrap_err().contains("anyOf"));
}

#[test]
fn what_people_write_in_schemas_is_accepted() {
    let schema = json!({
        "type": "object",
        "properties": {
            "email": {"type": "string", "pattern": r"^[\w.+-]+@[\w-]+\.[\w.-]+$"},
            "name": {"type": "string", "pattern": r"^[\p{L}\p{M} .'-]{1,8}$"},
            "date": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$", "format": "date"},
            "uuid": {"pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": true},
        },
        "patternProperties": {"^x-": {"type": "string", "maxLength": 200}},
        "required": ["email"],
        "unevaluatedProperties": false,
    });
    let schema = compiled(&schema).unwrap();
    let answer = json!({"email": "a@b.org", "name": "Zoë", "date": "2026-01-01", "x-a": "b"});
    assert_eq!(check(&schema, &answer.to_string()), Ok(()));
    let long = json!({"email": "a@b.org", "x-a": "x".repeat(200), "tags": ["a"]});
    assert_eq!(check(&schema, &long.to_string()), Ok(()));
    assert!(check(&schema, "{\"email\": \"a\"}").unwrap_err().starts_with("at `/email`"));
}

/// INV-480: neither error says that the schema is at fault.
#[tokio::test(flavor = "multi_thread")]
async fn schemas_that_were_not_compiled_in_time_or_for_others_are_not_unfit() {
    let stop = StopSignal::never_raised();
    stop.raise();
    for schema in [json!({"type": "object"}), json!({"pattern": "a{2}"}), json!({"type": "no"})] {
        let error = SchemaSet::compile_all(vec![("form".to_owned(), schema)], &stop).unwrap_err();
        assert!(matches!(error, BroughtError::Work(WorkError::TimedOut { .. })), "{error}");
    }
    // Fills the queue of one owner.
    let owner = "an owner whose queue is full";
    let all = MAX_RUNNING_PER_OWNER + MAX_WAITING_PER_OWNER;
    let brought = CallerInput { form: Some(json!({"type": "object"})), ..CallerInput::default() };
    let jobs: Vec<_> = (0..all)
        .map(|_| {
            Box::pin(belljar_work::run_job(&COMPILING, owner, |stop| {
                while !stop.is_raised() {
                    std::thread::yield_now();
                }
            }))
        })
        .collect();
    let mut jobs = Box::pin(join_all(jobs));
    // Each job has a place in the queue once it was polled.
    tokio::select! {
        biased;
        _ = &mut jobs => panic!("they run until they are dropped"),
        () = std::future::ready(()) => {}
    }
    for refused in
        [brought.check_inputs(owner).await.err(), brought.schema_memory(owner).await.err()]
    {
        let busy = WorkError::Busy { kind: COMPILING.name };
        assert_eq!(refused, Some(BroughtError::Work(busy)));
    }
    assert_eq!(brought.check_inputs("a neighbour").await, Ok(()));
    drop(jobs);
}

/// INV-481: a turn that has ended does not wait until a check has used its steps.
#[test]
fn a_check_that_has_begun_ends_with_its_turn() {
    let parts: Vec<_> = (0..1_000).map(|n| json!({"not": {"const": n}})).collect();
    let wide = compiled(&json!({"items": {"allOf": parts}})).unwrap();
    let named = compiled(&json!({"additionalProperties": {"allOf": parts}})).unwrap();
    let list = Value::from(vec![-1; 5_000]);
    let object: Map<String, Value> = (0..5_000).map(|n| (format!("n{n}"), json!(-1))).collect();
    for (schema, value) in [(wide, list), (named, Value::from(object))] {
        let (validator, _) = &*schema.0;
        let stop = StopSignal::never_raised();
        let whole = CheckWatch::new(&stop);
        assert!(validator.is_valid(whole.watch_value(&value)));
        let asked = whole.question_count();
        assert!(asked > 4_000_000, "{asked}");
        stop.raise();
        let ended = CheckWatch::new(&stop);
        let _ = validator.is_valid(ended.watch_value(&value));
        assert!(ended.question_count() < 10_000, "{}", ended.question_count());
        let ended = CheckWatch::new(&stop);
        let _ = validator.validate(ended.watch_value(&value));
        assert!(ended.question_count() < 10_000, "{}", ended.question_count());
        let check = SchemaCheck { schema: schema.clone(), text: value.to_string() };
        assert_eq!(SchemaCheck::run_all(&[check], &stop), None);
    }
}

/// The checker sees the same JSON through a watched value as through serde_json's.
#[test]
fn a_watched_value_has_the_verdicts_of_a_plain_one() {
    let schemas = [
        json!({"type": ["integer", "null"]}),
        json!({"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^.[é-ü]"}),
        json!({"items": {"type": "number", "multipleOf": 0.5}, "uniqueItems": true}),
        json!({"properties": {"a": {"const": 1.0}}, "required": ["a"], "minProperties": 2}),
        json!({"propertyNames": {"maxLength": 1}, "additionalProperties": {"enum": [1, null]}}),
        json!({"patternProperties": {"^a": {"type": "boolean"}}, "unevaluatedProperties": false}),
        json!({"anyOf": [{"contains": {"const": 2}}, {"not": {"type": "array"}}]}),
        json!({"prefixItems": [true, {"type": "string"}], "items": false, "minItems": 1}),
        json!({"if": {"type": "object"}, "then": {"dependentRequired": {"a": ["b"]}}}),
    ];
    let values = json!([
        null, true, 1, 1.0, -2.5, "", "aé", "aéé", "aéééé", [], [1, 1.0], [0.5, 2], [1, "x"],
        [1, "x", 2], {}, {"a": 1}, {"a": true}, {"a": 1, "b": null}, {"ab": 1}, {"b": [{"a": 1}]}
    ]);
    for schema in schemas {
        let plain = jsonschema::options().build(&schema).unwrap();
        let watched = compiled(&schema).unwrap();
        for value in values.as_array().unwrap() {
            let stop = StopSignal::never_raised();
            let watch = CheckWatch::new(&stop);
            let verdict =
                watched.0.0.validate(watch.watch_value(value)).map_err(|it| it.to_string());
            let expected = plain.validate(value).map_err(|it| it.to_string());
            assert_eq!(verdict, expected, "{schema} {value}");
            assert_eq!(watched.0.0.is_valid(watch.watch_value(value)), expected.is_ok());
        }
    }
}
