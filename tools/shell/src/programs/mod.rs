//! Programs of our own, where the interpreter's fall short of what scripts rely on.
//!
//! Its `ls` knows few options and no order but by name and time, its `diff` neither contexts
//! nor directories, its `mv` overwrites under `-n`, its `realpath` does not follow links, its `gzip` tests nothing,
//! and it has no `zcat`.

mod diff;
mod diff_text;
mod gzip;
mod ls;
mod ls_line;
mod mv;
mod options;
mod paths;
mod realpath;
mod time;

use bashkit::Builtin;

/// The programs by name.
pub(crate) fn all() -> [(&'static str, Box<dyn Builtin>); 7] {
    [
        ("diff", Box::new(diff::Diff)),
        ("gunzip", Box::new(gzip::Gzip::Unpack)),
        ("gzip", Box::new(gzip::Gzip::Pack)),
        ("ls", Box::new(ls::Ls)),
        ("mv", Box::new(mv::Mv)),
        ("realpath", Box::new(realpath::Realpath)),
        ("zcat", Box::new(gzip::Gzip::Show)),
    ]
}
