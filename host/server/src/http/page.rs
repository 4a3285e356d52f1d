//! Lists in pages: the number of rows, the bytes, and the start.

use crate::http::problem::Problem;

/// Default number of rows in a page.
const DEFAULT_ROWS: u32 = 50;

/// Most rows of a page.
pub(crate) const MAX_ROWS: u32 = 200;

/// Bytes after which a page gets no more rows. The last row may exceed the bound.
pub(crate) const PAGE_BYTES: i64 = 2 << 20;

/// The requested number of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageLimit(u32);

impl PageLimit {
    /// Parses the number of rows. A number that is too large is an error, because a caller that relies on it
    /// would miss rows.
    pub(crate) fn from_query(asked: Option<u32>) -> Result<Self, Problem> {
        match asked {
            None => Ok(Self(DEFAULT_ROWS)),
            Some(rows) if (1..=MAX_ROWS).contains(&rows) => Ok(Self(rows)),
            Some(_) => Err(Problem::invalid(format!("`limit` must be 1 to {MAX_ROWS}"))),
        }
    }

    /// The number of rows to read: one more than shown, as a sign of further rows.
    pub(crate) fn and_one(self) -> u32 {
        self.0 + 1
    }

    pub(crate) fn rows(self) -> u32 {
        self.0
    }

    /// Lowers the limit to `rows`.
    pub(crate) fn at_most(self, rows: u32) -> Self {
        Self(self.0.min(rows))
    }

    fn row_count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// The largest number that every reader of JSON has exactly.
pub(crate) const MOST: usize = (1 << 53) - 1;

/// The rows of a page, and the name of the last one if there are more.
pub(crate) fn page_of<T>(
    mut rows: Vec<T>,
    limit: PageLimit,
    id: impl Fn(&T) -> String,
) -> (Vec<T>, Option<String>) {
    let more = rows.len() > limit.row_count();
    rows.truncate(limit.row_count());
    let next = rows.last().map(id).filter(|_| more);
    (rows, next)
}

/// The name of a page's last row, if more rows follow.
pub(crate) fn next_of<T, N>(last: Option<&T>, more: bool, name: impl Fn(&T) -> N) -> Option<N> {
    last.filter(|_| more).map(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_last_row_only_where_there_are_more() {
        let limit = PageLimit::from_query(Some(2)).unwrap();
        assert_eq!(page_of(vec![3, 2, 1], limit, i32::to_string), (vec![3, 2], Some("2".into())));
        assert_eq!(page_of(vec![2, 1], limit, i32::to_string), (vec![2, 1], None));
        assert!(
            PageLimit::from_query(Some(0)).is_err()
                && PageLimit::from_query(Some(MAX_ROWS + 1)).is_err()
        );
    }
}
