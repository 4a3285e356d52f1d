//! The cost of a JSON Schema, known before the schema is compiled or a value is checked.
//!
//! For example `{"items": {"pattern": "a{9}"}}` has 3 nodes and a pattern of some 10 states, so an array of 100
//! strings with 5,000 bytes in all takes at most 3 x 101 + 10 x 5,000 steps.

use std::collections::BTreeMap;

use belljar_policy::ShownText;
use belljar_work::StopSignal;
use jsonschema_regex::to_rust_regex;
use regex_automata::nfa::thompson::{Config, NFA, WhichCaptures};
use serde_json::{Map, Value};

use crate::limits::{
    MAX_PATTERN_MEMORY, MAX_SCHEMA_DEPTH, MAX_SCHEMA_STATES, MAX_SCHEMA_STEPS, MAX_SCHEMA_WEIGHT,
    PATTERN_CACHE,
};

/// Bytes of a compiled node of a schema, an estimate from above.
const NODE_BYTES: u64 = 1 << 10;

/// Bytes of a state in the lists of the regex matcher: two sets of states with slots.
const STATE_BYTES: u64 = 64;

/// Most bytes of a state in the regex crate's one-pass table, made for patterns with groups.
const ONE_PASS_STATE: u64 = 2 << 10;

/// Most bytes of a whole one-pass table.
const ONE_PASS: u64 = 1 << 20;

/// States that a `format` keyword counts as, because each format is checked by a small parser.
const FORMAT_STATES: u64 = 50;

/// Bytes of text whose comparison or count of characters costs one step.
const BYTES_PER_STEP: u64 = 32;

/// The keywords whose failed check keeps an error for each alternative or property name.
const BRANCHES: [&str; 3] = ["anyOf", "oneOf", "propertyNames"];

/// The cost of checking values against one schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SchemaCost {
    /// Nodes; the target of a `$ref` counts at each use.
    nodes: u64,
    /// Steps of a check, for each node of the value.
    steps: u64,
    /// States of all patterns that a check matches.
    states: u64,
    /// States of the largest pattern.
    largest: u64,
    /// Steps below the keywords in [`BRANCHES`].
    branches: u64,
    /// The cost of finding the properties or items that other keywords have evaluated: steps and states.
    marking: (u64, u64),
    /// Bytes of the compiled schema.
    pub(crate) memory: u64,
}

/// The size of a value that is to be checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ValueSize {
    nodes: u64,
    /// Bytes of all texts and property names.
    bytes: u64,
    /// The bytes of the longest text.
    longest: u64,
}

/// The size of a compiled pattern.
#[derive(Debug, Clone, Copy, Default)]
struct CompiledPattern {
    states: u64,
    memory: u64,
}

impl SchemaCost {
    /// Weighs a schema. An error names the part that is beyond a bound.
    ///
    /// # Errors
    ///
    /// A clause for a person, for example "is deeper than 64", with the place in the schema.
    pub(crate) fn from_schema(schema: &Value, stop: &StopSignal) -> Result<Self, String> {
        let mut scales = SchemaWeigher {
            root: schema,
            known: BTreeMap::new(),
            patterns: BTreeMap::new(),
            path: Vec::new(),
            stop,
        };
        let mut cost = scales.weigh_part(schema)?;
        cost.check_bounds()?;
        let patterns = scales.patterns.values().map(|pattern| pattern.memory);
        let nodes = cost.steps.saturating_mul(NODE_BYTES);
        cost.memory = patterns.fold(nodes, u64::saturating_add);
        Ok(cost)
    }

    /// The most steps that a check of a value of this size takes.
    pub(crate) fn check_steps(&self, size: ValueSize) -> u64 {
        let visits = self.steps.saturating_mul(size.nodes);
        let matched = self.states.saturating_mul(size.bytes);
        let compared = self.steps.saturating_mul(size.bytes) / BYTES_PER_STEP;
        visits.saturating_add(matched).saturating_add(compared)
    }

    /// The most steps of one pattern match in a value of this size.
    pub(crate) fn longest_match(&self, size: ValueSize) -> u64 {
        self.largest.saturating_mul(size.longest)
    }

    /// The most errors that a check of an invalid value of this size keeps at once.
    pub(crate) fn max_errors(&self, size: ValueSize) -> u64 {
        self.branches.saturating_mul(size.nodes)
    }

    /// Checks the sums of a whole schema against the limits. The error is a clause for a person.
    fn check_bounds(&self) -> Result<(), String> {
        if self.nodes > MAX_SCHEMA_WEIGHT {
            return Err(format!(
                "is too large where it refers to parts of itself: it has more than \
                 {MAX_SCHEMA_WEIGHT} nodes then"
            ));
        }
        if self.steps > MAX_SCHEMA_STEPS {
            return Err(format!(
                "has parts with `unevaluatedProperties` or `unevaluatedItems` in each other that \
                 take more than {MAX_SCHEMA_STEPS} steps to check"
            ));
        }
        if self.states > MAX_SCHEMA_STATES {
            return Err(format!(
                "has patterns of {} states when they are compiled, and at most {MAX_SCHEMA_STATES} \
                 are accepted: use fewer or shorter ones, and smaller counts in `{{n}}`",
                self.states
            ));
        }
        Ok(())
    }

    /// Adds the cost of a nested schema.
    fn add_part(&mut self, part: Self) {
        let sum = u64::saturating_add;
        self.nodes = sum(self.nodes, part.nodes);
        self.steps = sum(self.steps, part.steps);
        self.states = sum(self.states, part.states);
        self.largest = self.largest.max(part.largest);
        self.branches = sum(self.branches, part.branches);
        self.marking.0 = sum(self.marking.0, sum(part.steps, part.marking.0));
        self.marking.1 = sum(self.marking.1, sum(part.states, part.marking.1));
    }

    fn add_states(&mut self, states: u64) {
        self.states = self.states.saturating_add(states);
        self.largest = self.largest.max(states);
        self.marking.1 = self.marking.1.saturating_add(states);
    }

    /// Adds the cost of finding evaluated properties, for a schema with `unevaluatedProperties` or
    /// `unevaluatedItems`.
    fn with_marking(mut self) -> Self {
        self.steps = self.steps.saturating_add(self.marking.0);
        self.states = self.states.saturating_add(self.marking.1);
        self
    }
}

impl ValueSize {
    /// Counts the nodes and bytes of a value.
    pub(crate) fn from_value(value: &Value) -> Self {
        let mut size = Self::default();
        size.add_value(value);
        size
    }

    /// Adds the nodes and bytes of a value and of all values in it.
    fn add_value(&mut self, value: &Value) {
        self.nodes = self.nodes.saturating_add(1);
        match value {
            Value::String(text) => self.add_text(text),
            Value::Array(list) => list.iter().for_each(|one| self.add_value(one)),
            Value::Object(map) => {
                for (name, one) in map {
                    self.add_text(name);
                    self.add_value(one);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        self.bytes = self.bytes.saturating_add(len_as_u64(text.len()));
        self.longest = self.longest.max(len_as_u64(text.len()));
    }
}

/// The state while one schema is weighed.
struct SchemaWeigher<'a> {
    root: &'a Value,
    /// The cost of parts that a `$ref` refers to; `None` = the part is being weighed, so a second visit is a
    /// circle.
    known: BTreeMap<&'a str, Option<SchemaCost>>,
    patterns: BTreeMap<&'a str, CompiledPattern>,
    /// The path of the present node, for errors.
    path: Vec<String>,
    stop: &'a StopSignal,
}

impl<'a> SchemaWeigher<'a> {
    /// Weighs one node of the schema and all nodes below.
    fn weigh_part(&mut self, part: &'a Value) -> Result<SchemaCost, String> {
        if self.path.len() > MAX_SCHEMA_DEPTH {
            return Err(format!("is deeper than {MAX_SCHEMA_DEPTH}"));
        }
        let mut cost = SchemaCost { nodes: 1, steps: 1, marking: (1, 0), ..SchemaCost::default() };
        match part {
            Value::Object(map) => return self.weigh_object(map, cost),
            Value::Array(list) => {
                for (at, value) in list.iter().enumerate() {
                    cost.add_part(self.weigh_at(&at.to_string(), value)?);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(cost)
    }

    /// Weighs an object of the schema, keyword by keyword.
    fn weigh_object(
        &mut self,
        map: &'a Map<String, Value>,
        mut cost: SchemaCost,
    ) -> Result<SchemaCost, String> {
        for (key, value) in map {
            match (key.as_str(), value) {
                ("$ref", Value::String(reference)) => {
                    cost.add_part(self.weigh_reference(reference)?)
                }
                ("$dynamicRef" | "$recursiveRef" | "$id" | "$anchor", Value::String(_)) => {
                    return Err(format!("has `{key}`, which is not supported"));
                }
                ("pattern", Value::String(pattern)) => {
                    let states = self.weigh_at_key(key, |it| it.weigh_pattern(pattern))?;
                    cost.add_states(states);
                    cost.add_part(self.weigh_at(key, value)?);
                }
                ("patternProperties", Value::Object(patterns)) => {
                    for pattern in patterns.keys() {
                        let states = self.weigh_at_key(key, |it| {
                            it.weigh_at_key(pattern, |it| it.weigh_pattern(pattern))
                        })?;
                        cost.add_states(states);
                    }
                    cost.add_part(self.weigh_at(key, value)?);
                }
                _ => {
                    if key == "format" && value.is_string() {
                        cost.add_states(FORMAT_STATES);
                    }
                    let mut part = self.weigh_at(key, value)?;
                    if BRANCHES.contains(&key.as_str()) {
                        part.branches = part.branches.saturating_add(part.steps);
                    }
                    cost.add_part(part);
                }
            }
        }
        let marks = ["unevaluatedProperties", "unevaluatedItems"];
        let marks = marks.iter().any(|key| map.contains_key(*key));
        Ok(if marks { cost.with_marking() } else { cost })
    }

    fn weigh_at(&mut self, key: &str, part: &'a Value) -> Result<SchemaCost, String> {
        self.weigh_at_key(key, |it| it.weigh_part(part))
    }

    /// Runs `weigh` with `key` added to the path.
    fn weigh_at_key<T>(
        &mut self,
        key: &str,
        weigh: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        self.path.push(key.to_owned());
        let weighed = weigh(self)?;
        self.path.pop();
        Ok(weighed)
    }

    /// Weighs the target of a `$ref`. A second use of the same target takes the known cost.
    fn weigh_reference(&mut self, reference: &'a str) -> Result<SchemaCost, String> {
        match self.known.get(reference) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err("refers to itself in a circle".to_owned()),
            None => {}
        }
        let part = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let part = part.ok_or_else(|| {
            let reference = ShownText::clip_line(reference, 60);
            format!("refers to `{reference}`, which is no part of it")
        })?;
        self.known.insert(reference, None);
        let cost = self.weigh_at("$ref", part)?;
        self.known.insert(reference, Some(cost));
        Ok(cost)
    }

    /// The number of states of a pattern. An invalid pattern is left to the schema compiler, which reports
    /// it.
    fn weigh_pattern(&mut self, pattern: &'a str) -> Result<u64, String> {
        if let Some(known) = self.patterns.get(pattern) {
            return Ok(known.states);
        }
        self.stop.check_raised().map_err(|stopped| format!("was not compiled: {stopped}"))?;
        let measured = measure_pattern(pattern).map_err(|TooLarge| {
            let at = self.path.iter().fold(String::new(), |at, key| {
                at + "/" + &key.replace('~', "~0").replace('/', "~1")
            });
            format!(
                "has at `{}` a pattern that takes more than {MAX_PATTERN_MEMORY} bytes when it is \
                 compiled: use smaller counts in `{{n}}` and fewer classes such as `\\p{{L}}`",
                ShownText::clip_line(&at, 120)
            )
        })?;
        self.patterns.insert(pattern, measured);
        Ok(measured.states)
    }
}

/// The error that a pattern exceeds [`MAX_PATTERN_MEMORY`] when compiled.
struct TooLarge;

/// Compiles a pattern forwards and backwards, as the matcher does, and returns only its size.
fn measure_pattern(pattern: &str) -> Result<CompiledPattern, TooLarge> {
    let Ok(translated) = to_rust_regex(pattern) else { return Ok(CompiledPattern::default()) };
    let config = Config::new().nfa_size_limit(Some(MAX_PATTERN_MEMORY)).shrink(false);
    let build = |config| {
        let built = NFA::compiler().configure(config).build(&translated);
        built.map_err(|error| error.size_limit().is_some())
    };
    // The regex crate refuses a backward automaton with captures.
    let reverse = config.clone().reverse(true).which_captures(WhichCaptures::None);
    let (forward, backward) = match (build(config), build(reverse)) {
        (Ok(forward), Ok(backward)) => (forward, backward),
        (Err(true), _) | (_, Err(true)) => return Err(TooLarge),
        (Err(false), _) | (_, Err(false)) => return Ok(CompiledPattern::default()),
    };
    // The matcher searches backwards with a cached automaton, which fails if its cache is too small.
    let states = len_as_u64(forward.states().len());
    let groups = forward.group_info().explicit_slot_len() > 0;
    let one_pass = if groups { states.saturating_mul(ONE_PASS_STATE).min(ONE_PASS) } else { 0 };
    let automata =
        len_as_u64(forward.memory_usage()).saturating_add(len_as_u64(backward.memory_usage()));
    let caches = len_as_u64(2 * PATTERN_CACHE).saturating_add(states.saturating_mul(STATE_BYTES));
    let memory = automata.saturating_add(caches).saturating_add(one_pass);
    Ok(CompiledPattern { states, memory })
}

fn len_as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
