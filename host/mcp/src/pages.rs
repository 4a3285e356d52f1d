//! The pages of `tools/list`: each answer contains one, and names the next by a cursor.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::exchange::ExchangeFault;
use crate::limits::{MAX_CURSOR, MAX_NAMED, MAX_PAGES};

/// Collects the entries of a list, page by page.
///
/// Servers end a list in four ways, which are all accepted: without a cursor, with an empty cursor, with
/// `null`, and with a repeated cursor (a server that ignores the cursor of a request returns its first page
/// again and again).
#[derive(Debug, Default)]
pub(crate) struct ToolPages {
    entries: Vec<Value>,
    cursors: BTreeSet<String>,
    unread: usize,
}

impl ToolPages {
    /// Adds the entries of a page; returns the cursor of the next page, if there is one.
    pub(crate) fn take_page(&mut self, page: &mut Value) -> Result<Option<String>, ExchangeFault> {
        let cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        let Some(Value::Array(mut tools)) = page.get_mut("tools").map(Value::take) else {
            return Err(ExchangeFault::Broken("its list has no tools"));
        };
        let room = MAX_NAMED.saturating_sub(self.entries.len());
        self.unread = self.unread.saturating_add(tools.len().saturating_sub(room));
        tools.truncate(room);
        self.entries.append(&mut tools);
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
        if cursor.len() > MAX_CURSOR {
            return Err(ExchangeFault::Broken("the cursor of its list is too long"));
        }
        if self.unread > 0 || !self.cursors.insert(cursor.clone()) {
            return Ok(None);
        }
        match self.cursors.len() < MAX_PAGES {
            true => Ok(Some(cursor)),
            false => Err(ExchangeFault::Broken("its list does not end")),
        }
    }

    /// The entries in the server's order, and the number of entries that were not read.
    pub(crate) fn into_entries(self) -> (Vec<Value>, usize) {
        (self.entries, self.unread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(names: std::ops::Range<usize>, cursor: Value) -> Value {
        let tools: Vec<Value> = names.map(|n| json!({"name": format!("t{n}")})).collect();
        json!({"tools": tools, "nextCursor": cursor})
    }

    #[test]
    fn a_list_ends_without_a_cursor_with_an_empty_one_and_with_one_that_does_not_advance() {
        for last in [Value::Null, json!(""), json!("a"), json!(7)] {
            let mut pages = ToolPages::default();
            assert_eq!(pages.take_page(&mut page(0..2, json!("a"))).unwrap().as_deref(), Some("a"));
            assert_eq!(pages.take_page(&mut page(2..3, last.clone())).unwrap(), None, "{last}");
            assert_eq!(pages.into_entries().0.len(), 3);
        }
    }

    #[test]
    fn a_list_without_an_end_is_an_error_and_a_long_one_is_cut() {
        let mut pages = ToolPages::default();
        let ends =
            (0..=MAX_PAGES).map(|n| pages.take_page(&mut page(0..1, json!(format!("c{n}")))));
        assert!(ends.into_iter().any(|next| next.is_err()));
        let mut pages = ToolPages::default();
        assert_eq!(pages.take_page(&mut page(0..MAX_NAMED + 5, json!("a"))).unwrap(), None);
        let (entries, unread) = pages.into_entries();
        assert_eq!((entries.len(), unread), (MAX_NAMED, 5));
        assert!(ToolPages::default().take_page(&mut json!({})).is_err());
        let long = json!("x".repeat(MAX_CURSOR + 1));
        assert!(ToolPages::default().take_page(&mut page(0..1, long)).is_err());
    }
}
