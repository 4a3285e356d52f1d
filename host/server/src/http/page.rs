//! Pages of lists: how many rows and bytes a page has, and where it begins.

use crate::http::problem::Problem;

/// The number of rows in a page if the caller requests no number.
const DEFAULT_ROWS: u32 = 50;

/// Most rows of a page.
pub(crate) const MAX_ROWS: u32 = 200;

/// The bytes after which a page gets no more rows; the last row may exceed them.
pub(crate) const PAGE_BYTES: i64 = 2 << 20;

/// The number of rows that the caller requested for a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageLimit(u32);

impl PageLimit {
    /// Parses the requested number of rows. A number that is too large is an error, because a caller
    /// that expects so many rows would miss some.
    pub(crate) fn from_query(asked: Option<u32>) -> Result<Self, Problem> {
        match asked {
            None => Ok(Self(DEFAULT_ROWS)),
            Some(rows) if (1..=MAX_ROWS).contains(&rows) => Ok(Self(rows)),
            Some(_) => Err(Problem::invalid(format!("`limit` must be 1 to {MAX_ROWS}"))),
        }
    }

    /// The number of rows to read from the store: one more than the page shows, which proves that more
    /// rows follow.
    pub(crate) fn and_one(self) -> u32 {
        self.0 + 1
    }

    pub(crate) fn rows(self) -> u32 {
        self.0
    }

    /// Lowers the page's limit to `rows`, if it is higher.
    pub(crate) fn at_most(self, rows: u32) -> Self {
        Self(self.0.min(rows))
    }

    fn row_count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// The largest integer that every JSON reader represents exactly.
pub(crate) const MOST: usize = (1 << 53) - 1;

/// The rows of a page, and, if more rows follow, the name of the last one, which the caller sends to
/// get the next page.
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

/// The name of a page's last row if more rows follow; the caller sends it to get the next page.
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
