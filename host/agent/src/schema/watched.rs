//! A JSON value for the schema checker whose check can be ended early.
//!
//! The crate jsonschema cannot be interrupted, but accepts any representation of JSON. [`WatchedValue`]
//! counts how often the checker reads it. Once the stop signal is raised, lists and objects have no further
//! members and no part is a text, so a check of millions of parts ends after the present ones. The
//! verdict is then void, and the owner of the signal ignores it.

use std::borrow::Cow;
use std::cell::Cell;
use std::slice;

use belljar_work::StopSignal;
use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp, unique};
use serde_json::{Map, Number, Value, map};

/// How many reads, and bytes of text, are counted between two checks of the signal. Each check reads a clock.
const LOOK_EVERY: usize = 1 << 12;

/// The representation of JSON that jsonschema uses here.
pub(crate) enum WatchedJson {}

/// The stop signal of one check, and the number of reads since the signal was checked.
#[derive(Debug)]
pub(crate) struct CheckWatch<'a> {
    stop: &'a StopSignal,
    asked: Cell<usize>,
    is_over: Cell<bool>,
    /// The number of all reads.
    #[cfg(test)]
    all: Cell<usize>,
}

/// A part of a checked value. A property name checked as a text has no watch, because the object around the
/// name has a watch.
#[derive(Clone, Copy)]
pub(crate) struct WatchedValue<'a> {
    value: &'a Value,
    watch: Option<&'a CheckWatch<'a>>,
}

impl<'a> CheckWatch<'a> {
    /// A watch that ends the check once `stop` is raised.
    pub(crate) fn new(stop: &'a StopSignal) -> Self {
        Self {
            stop,
            asked: Cell::new(0),
            is_over: Cell::new(false),
            #[cfg(test)]
            all: Cell::new(0),
        }
    }

    /// The number of all reads.
    #[cfg(test)]
    pub(crate) fn question_count(&self) -> usize {
        self.all.get()
    }

    /// The whole value, watched.
    pub(crate) fn watch_value(&'a self, value: &'a Value) -> WatchedValue<'a> {
        WatchedValue { value, watch: Some(self) }
    }

    /// Counts `asked` reads, and returns whether the check has to end.
    fn is_over(&self, asked: usize) -> bool {
        #[cfg(test)]
        self.all.set(self.all.get().saturating_add(asked));
        let sum = self.asked.get().saturating_add(asked);
        self.asked.set(if sum < LOOK_EVERY { sum } else { 0 });
        if sum >= LOOK_EVERY && self.stop.is_raised() {
            self.is_over.set(true);
        }
        self.is_over.get()
    }
}

impl<'a> WatchedValue<'a> {
    /// The value, or null once the stop signal is raised.
    fn ask_value(&self) -> &'a Value {
        if is_over(self.watch, 1) { &Value::Null } else { self.value }
    }

    fn bounded_text(&self) -> Option<&'a str> {
        let text = self.value.as_str()?;
        (!is_over(self.watch, text.len().saturating_add(1))).then_some(text)
    }
}

fn is_over(watch: Option<&CheckWatch<'_>>, asked: usize) -> bool {
    watch.is_some_and(|watch| watch.is_over(asked))
}

impl Json for WatchedJson {
    type Node<'a> = WatchedValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        f: impl FnOnce(WatchedValue<'_>) -> T,
    ) -> T {
        *buffer = Value::String(string.to_owned());
        f(WatchedValue { value: buffer, watch: None })
    }
}

impl<'a> Node<'a, WatchedJson> for WatchedValue<'a> {
    type Object = ObjectFields<'a>;
    type Array = ListItems<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<ObjectFields<'a>> {
        let map = self.ask_value().as_object()?;
        Some(ObjectFields { map, watch: self.watch })
    }

    fn as_array(&self) -> Option<ListItems<'a>> {
        let list = self.ask_value().as_array()?;
        Some(ListItems { list, watch: self.watch })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.bounded_text().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.ask_value().as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.ask_value().as_bool()
    }

    fn is_null(&self) -> bool {
        self.ask_value().is_null()
    }

    fn json_type(&self) -> JsonType {
        match self.ask_value() {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.bounded_text()?;
        u64::try_from(text.chars().count()).ok()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        cmp::equal(self.ask_value(), expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.value).addr()))
    }
}

/// The members of a watched object.
pub(crate) struct ObjectFields<'a> {
    map: &'a Map<String, Value>,
    watch: Option<&'a CheckWatch<'a>>,
}

/// Iterates over the members of an object, until the check has to end.
pub(crate) struct FieldsIter<'a> {
    left: map::Iter<'a>,
    watch: Option<&'a CheckWatch<'a>>,
}

impl<'a> Object<'a, WatchedJson> for ObjectFields<'a> {
    type Node = WatchedValue<'a>;
    type MemberName = &'a str;
    type MembersIter = FieldsIter<'a>;

    fn len(&self) -> usize {
        self.map.len()
    }

    fn get(&self, key: &String) -> Option<WatchedValue<'a>> {
        let value = self.map.get(key).filter(|_| !is_over(self.watch, 1))?;
        Some(WatchedValue { value, watch: self.watch })
    }

    fn members(&self) -> FieldsIter<'a> {
        FieldsIter { left: self.map.iter(), watch: self.watch }
    }
}

impl<'a> Iterator for FieldsIter<'a> {
    type Item = (&'a str, WatchedValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.left.next()?;
        let over = is_over(self.watch, name.len().saturating_add(1));
        (!over).then_some((name.as_str(), WatchedValue { value, watch: self.watch }))
    }
}

/// The items of a watched list.
pub(crate) struct ListItems<'a> {
    list: &'a [Value],
    watch: Option<&'a CheckWatch<'a>>,
}

/// Iterates over the items of a list, until the check has to end.
pub(crate) struct ItemsIter<'a> {
    left: slice::Iter<'a, Value>,
    watch: Option<&'a CheckWatch<'a>>,
}

impl<'a> Array<'a, WatchedJson> for ListItems<'a> {
    type Node = WatchedValue<'a>;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.list.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter { left: self.list.iter(), watch: self.watch }
    }

    fn is_unique(&self) -> bool {
        unique::is_unique(self.list)
    }
}

impl<'a> Iterator for ItemsIter<'a> {
    type Item = WatchedValue<'a>;

    fn next(&mut self) -> Option<WatchedValue<'a>> {
        let value = self.left.next()?;
        (!is_over(self.watch, 1)).then_some(WatchedValue { value, watch: self.watch })
    }
}
