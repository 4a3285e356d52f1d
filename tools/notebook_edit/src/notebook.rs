//! A notebook as text: which bytes are which cell.
//!
//! An edit cuts one cell out of the text, or puts one in. Nothing else is parsed and written
//! again, so the rest stays byte for byte as it was: order of keys, spelling of numbers and
//! strings, the newline at the end.

use crate::cell::{self, Kind};
use crate::layout::Layout;
use belljar_guest::ToolError;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// The most cells: each costs memory beside its text.
const MAX_CELLS: usize = 20_000;

/// Cells listed in an error: enough to choose from.
const MAX_LISTED: usize = 50;

/// Characters shown of an id or a type; the format allows ids of 64.
const MAX_SHOWN: usize = 64;

/// A notebook of format 4.
pub(crate) struct Notebook<'a> {
    text: &'a str,
    /// Where the array of cells stands.
    array: Range<usize>,
    cells: Vec<Cell>,
    /// From format 4.5 on every cell has an id.
    has_ids: bool,
    layout: Layout<'a>,
}

/// A cell, as far as it is needed to find it.
struct Cell {
    at: Range<usize>,
    id: Option<String>,
    kind: String,
}

/// A notebook's new text.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) text: String,
    /// What was done, for the model.
    pub(crate) summary: String,
}

/// The keys that make a notebook.
#[derive(Deserialize)]
struct Top<'a> {
    nbformat: Option<u64>,
    nbformat_minor: Option<u64>,
    #[serde(borrow)]
    cells: Option<&'a RawValue>,
}

/// The keys that name a cell.
#[derive(Deserialize)]
struct Head {
    id: Option<Value>,
    cell_type: String,
}

impl<'a> Notebook<'a> {
    /// Reads a notebook, or says why it is none.
    pub(crate) fn parse(text: &'a str) -> Result<Notebook<'a>, String> {
        let top: Top<'a> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match top.nbformat {
            Some(4..) => {}
            Some(old) => {
                return Err(format!("it has format {old}; save it in Jupyter as format 4"));
            }
            None => return Err("it has no `nbformat`".to_owned()),
        }
        let array = top.cells.ok_or("it has no `cells`")?;
        let pieces: Vec<&'a RawValue> = serde_json::from_str(array.get())
            .map_err(|error| format!("`cells` is not a list: {error}"))?;
        if pieces.len() > MAX_CELLS {
            return Err(format!("it has more than {MAX_CELLS} cells"));
        }
        let array = place(text, array).ok_or("`cells` could not be located")?;
        let cells = pieces.iter().enumerate().map(|(number, piece)| {
            Cell::read(text, piece).map_err(|why| format!("cell {number}: {why}"))
        });
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        let gap = cells.first().and_then(|first| text.get(array.start + 1..first.at.start));
        let has_ids = (top.nbformat, top.nbformat_minor) >= (Some(4), Some(5));
        Ok(Notebook { text, array, cells, has_ids, layout: Layout::of(gap) })
    }

    /// The cell that a call names, if it names one.
    pub(crate) fn find(
        &self,
        id: Option<&str>,
        number: Option<usize>,
    ) -> Result<Option<usize>, ToolError> {
        let has = |cell: &Cell| id.is_none_or(|id| cell.id.as_deref() == Some(id));
        let found = match (id, number) {
            (None, None) => return Ok(None),
            (_, Some(number)) => self.cells.get(number).map(|cell| (number, has(cell))),
            (Some(_), None) => self.cells.iter().position(has).map(|number| (number, true)),
        };
        match found {
            Some((number, true)) => Ok(Some(number)),
            Some((number, false)) => Err(ToolError::InvalidArguments(format!(
                "`cell_id` and `cell_number` {number} are not the same cell; {}",
                self.listed()
            ))),
            None => Err(ToolError::NotFound(format!("there is no such cell; {}", self.listed()))),
        }
    }

    /// The cells, for an error.
    pub(crate) fn listed(&self) -> String {
        if self.cells.is_empty() {
            return "the notebook has no cells".to_owned();
        }
        let shown = self.cells.len().min(MAX_LISTED);
        let names: Vec<_> = (0..shown).map(|number| self.name(number)).collect();
        let mut list = format!("the cells are {}", names.join(", "));
        if self.cells.len() > shown {
            let _ = write!(list, " and {} more", self.cells.len() - shown);
        }
        list
    }

    /// Gives a cell another source, and another type when one is named.
    pub(crate) fn replace(
        &self,
        number: usize,
        source: &str,
        kind: Option<Kind>,
    ) -> Result<Edited, ToolError> {
        let cell = self.cell(number)?;
        let kind = kind.or_else(|| Kind::named(&cell.kind)).ok_or_else(|| {
            let text = format!("cell {number} is of unknown type; name one with `cell_type`");
            ToolError::InvalidArguments(text)
        })?;
        let mut fields: Map<String, Value> = serde_json::from_str(&self.text[cell.at.clone()])
            .map_err(|error| ToolError::Failed(format!("cell {number}: {error}")))?;
        let had_outputs = fields.get("outputs").is_some_and(|outputs| *outputs != empty());
        cell::change(&mut fields, kind, source);
        let outputs = if had_outputs { "; its outputs are removed" } else { "" };
        Ok(Edited {
            text: self.with(cell.at.clone(), &self.written(&fields)?),
            summary: format!("replaced cell {}{outputs}", named(number, cell.id(), kind.name())),
        })
    }

    /// Adds a cell after another one, or as the first.
    pub(crate) fn insert(
        &self,
        after: Option<usize>,
        source: &str,
        kind: Kind,
    ) -> Result<Edited, ToolError> {
        let id = self.has_ids.then(|| self.fresh_id(source));
        let number = after.map_or(0, |after| after + 1);
        let summary = format!("inserted cell {}", named(number, id.as_deref(), kind.name()));
        let cell = self.written(&cell::new(kind, id, source))?;
        let line = self.layout.line(2);
        let text = match (after, self.cells.first()) {
            (Some(after), _) => {
                let end = self.cell(after)?.at.end;
                self.with(end..end, &format!(",{line}{cell}"))
            }
            (None, Some(first)) => {
                let start = first.at.start;
                self.with(start..start, &format!("{cell},{line}"))
            }
            (None, None) => {
                let end = self.layout.line(1);
                self.with(self.array.clone(), &format!("[{line}{cell}{end}]"))
            }
        };
        Ok(Edited { text, summary })
    }

    /// Removes a cell with the comma that set it apart.
    pub(crate) fn delete(&self, number: usize) -> Result<Edited, ToolError> {
        let at = self.cell(number)?.at.clone();
        let before = number.checked_sub(1).and_then(|before| self.cells.get(before));
        let text = match (before, self.cells.get(number + 1)) {
            (Some(before), _) => self.with(before.at.end..at.end, ""),
            (None, Some(next)) => self.with(at.start..next.at.start, ""),
            (None, None) => self.with(self.array.clone(), "[]"),
        };
        let left = self.cells.len() - 1;
        let summary = format!("deleted cell {}; {left} cells are left", self.name(number));
        Ok(Edited { text, summary })
    }

    fn cell(&self, number: usize) -> Result<&Cell, ToolError> {
        let absent = || ToolError::NotFound(format!("there is no cell {number}"));
        self.cells.get(number).ok_or_else(absent)
    }

    fn name(&self, number: usize) -> String {
        let cell = self.cells.get(number);
        named(number, cell.and_then(Cell::id), cell.map_or("", |cell| &cell.kind))
    }

    fn written(&self, cell: &Map<String, Value>) -> Result<String, ToolError> {
        let failed = |error| ToolError::Failed(format!("the cell cannot be written: {error}"));
        self.layout.cell(cell).map_err(failed)
    }

    /// The text with another one in place of these bytes.
    fn with(&self, at: Range<usize>, piece: &str) -> String {
        let mut text = String::with_capacity(self.text.len() + piece.len());
        text.push_str(&self.text[..at.start]);
        text.push_str(piece);
        text.push_str(&self.text[at.end..]);
        text
    }

    /// An id that no cell has. It follows from the source: ids need not be secret, and the same
    /// call on the same file gives the same file.
    fn fresh_id(&self, source: &str) -> String {
        let mut hasher = DefaultHasher::new();
        source.hash(&mut hasher);
        loop {
            self.cells.len().hash(&mut hasher);
            let id = format!("{:08x}", hasher.finish() & 0xffff_ffff);
            if !self.cells.iter().any(|cell| cell.id.as_ref() == Some(&id)) {
                return id;
            }
        }
    }
}

impl Cell {
    fn read(text: &str, piece: &RawValue) -> Result<Cell, String> {
        let head: Head = serde_json::from_str(piece.get()).map_err(|error| error.to_string())?;
        let id = head.id.as_ref().and_then(Value::as_str).map(str::to_owned);
        let at = place(text, piece).ok_or("it could not be located")?;
        Ok(Cell { at, id, kind: head.cell_type })
    }

    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

/// Where in a text a value stands that was read from it without copying.
fn place(text: &str, piece: &RawValue) -> Option<Range<usize>> {
    let piece = piece.get();
    let start = (piece.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let at = start..start.checked_add(piece.len())?;
    (text.get(at.clone()) == Some(piece)).then_some(at)
}

/// A cell for a person: its number, its id and its type.
fn named(number: usize, id: Option<&str>, kind: &str) -> String {
    let short = |text: &str| text.chars().take(MAX_SHOWN).collect::<String>();
    match id {
        Some(id) => format!("{number} `{}` ({})", short(id), short(kind)),
        None => format!("{number} ({})", short(kind)),
    }
}

fn empty() -> Value {
    Value::Array(Vec::new())
}
