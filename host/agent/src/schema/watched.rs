//! A value for the schema checker that ends the check when the verdict is no longer needed.
//!
//! jsonschema cannot be interrupted, but accepts any representation of JSON. `Part` counts the checker's
//! reads of its value. Once the signal is raised, lists and objects have no further members and no part is a
//! text, so that a check of millions of parts ends after the present ones. The verdict is void then, and the
//! owner of the signal ignores it.

use std::borrow::Cow;
use std::cell::Cell;
use std::slice;

use belljar_work::StopSignal;
use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp, unique};
use serde_json::{Map, Number, Value, map};

/// Questions and bytes of texts between two checks of the signal, because each check reads a clock.
const LOOK_EVERY: usize = 1 << 12;

/// The representation.
pub(crate) enum Watched {}

/// The signal of one check, with the count of questions since the last look.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    stop: &'a StopSignal,
    asked: Cell<usize>,
    is_over: Cell<bool>,
    /// The number of all questions.
    #[cfg(test)]
    all: Cell<usize>,
}

/// A part of a value. A property's name that is checked as a text has no watch: its object has.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    value: &'a Value,
    watch: Option<&'a Watch<'a>>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(stop: &'a StopSignal) -> Self {
        Self {
            stop,
            asked: Cell::new(0),
            is_over: Cell::new(false),
            #[cfg(test)]
            all: Cell::new(0),
        }
    }

    /// The number of all questions.
    #[cfg(test)]
    pub(crate) fn asked(&self) -> usize {
        self.all.get()
    }

    /// A value that is watched as a whole.
    pub(crate) fn over(&'a self, value: &'a Value) -> Part<'a> {
        Part { value, watch: Some(self) }
    }

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

impl<'a> Part<'a> {
    /// The value; null once the check is over.
    fn asked(&self) -> &'a Value {
        if is_over(self.watch, 1) { &Value::Null } else { self.value }
    }

    fn text(&self) -> Option<&'a str> {
        let text = self.value.as_str()?;
        (!is_over(self.watch, text.len().saturating_add(1))).then_some(text)
    }
}

fn is_over(watch: Option<&Watch<'_>>, asked: usize) -> bool {
    watch.is_some_and(|watch| watch.is_over(asked))
}

impl Json for Watched {
    type Node<'a> = Part<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Part<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(Part { value: buffer, watch: None })
    }
}

impl<'a> Node<'a, Watched> for Part<'a> {
    type Object = Fields<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Fields<'a>> {
        let map = self.asked().as_object()?;
        Some(Fields { map, watch: self.watch })
    }

    fn as_array(&self) -> Option<Items<'a>> {
        let list = self.asked().as_array()?;
        Some(Items { list, watch: self.watch })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.text().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.asked().as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.asked().as_bool()
    }

    fn is_null(&self) -> bool {
        self.asked().is_null()
    }

    fn json_type(&self) -> JsonType {
        match self.asked() {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.text()?;
        u64::try_from(text.chars().count()).ok()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        cmp::equal(self.asked(), expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.value).addr()))
    }
}

/// The members of an object.
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    watch: Option<&'a Watch<'a>>,
}

/// Iterates over an object's members, until the check is over.
pub(crate) struct FieldsIter<'a> {
    left: map::Iter<'a>,
    watch: Option<&'a Watch<'a>>,
}

impl<'a> Object<'a, Watched> for Fields<'a> {
    type Node = Part<'a>;
    type MemberName = &'a str;
    type MembersIter = FieldsIter<'a>;

    fn len(&self) -> usize {
        self.map.len()
    }

    fn get(&self, key: &String) -> Option<Part<'a>> {
        let value = self.map.get(key).filter(|_| !is_over(self.watch, 1))?;
        Some(Part { value, watch: self.watch })
    }

    fn members(&self) -> FieldsIter<'a> {
        FieldsIter { left: self.map.iter(), watch: self.watch }
    }
}

impl<'a> Iterator for FieldsIter<'a> {
    type Item = (&'a str, Part<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.left.next()?;
        let over = is_over(self.watch, name.len().saturating_add(1));
        (!over).then_some((name.as_str(), Part { value, watch: self.watch }))
    }
}

/// The items of a list.
pub(crate) struct Items<'a> {
    list: &'a [Value],
    watch: Option<&'a Watch<'a>>,
}

/// Iterates over a list's items, until the check is over.
pub(crate) struct ItemsIter<'a> {
    left: slice::Iter<'a, Value>,
    watch: Option<&'a Watch<'a>>,
}

impl<'a> Array<'a, Watched> for Items<'a> {
    type Node = Part<'a>;
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
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let value = self.left.next()?;
        (!is_over(self.watch, 1)).then_some(Part { value, watch: self.watch })
    }
}
