//! File types by ripgrep's names: `rust` is `*.rs`, `py` is `*.py` and `*.pyi`.

use belljar_guest::ToolError;
use ignore::types::{FileTypeDef, Types, TypesBuilder};

/// The files of one type.
pub(crate) struct FileType(Types);

impl FileType {
    /// Finds a type by name.
    pub(crate) fn named(name: &str) -> Result<FileType, ToolError> {
        let mut builder = TypesBuilder::new();
        builder.add_defaults().select(name);
        match builder.build() {
            Ok(types) => Ok(FileType(types)),
            Err(_) => Err(unknown(name, &builder.definitions())),
        }
    }

    /// Whether a file with this path, or name, is of the type.
    pub(crate) fn matches(&self, path: &str) -> bool {
        self.0.matched(path, false).is_whitelist()
    }
}

/// Models that do not know the name of a type write its extension.
fn unknown(name: &str, known: &[FileTypeDef]) -> ToolError {
    let extension = format!("*.{}", name.trim_start_matches('.'));
    let has = |kind: &&FileTypeDef| kind.globs().contains(&extension);
    let hint = match known.iter().find(has) {
        Some(kind) => format!("files `{extension}` are of type `{}`", kind.name()),
        None => format!(
            "use a name such as `rust`, `py`, `js`, `ts`, `go`, `java`, `md`, `json`, or leave it \
             out and set `glob`, such as `{extension}`"
        ),
    };
    ToolError::InvalidArguments(format!("`file_type` `{name}` is not known; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str) -> String {
        match FileType::named(name) {
            Err(ToolError::InvalidArguments(text)) => text,
            other => panic!("{:?}", other.map(|_| ())),
        }
    }

    #[test]
    fn a_type_is_known_by_the_names_that_ripgrep_has() {
        for (name, file) in
            [("rust", "src/a.rs"), ("py", "a.pyi"), ("js", "b/a.mjs"), ("make", "Makefile")]
        {
            let kind = FileType::named(name).unwrap();
            assert!(kind.matches(file) && !kind.matches("a.unheard-of"), "{name}");
        }
    }

    #[test]
    fn an_unknown_type_says_what_to_write_instead() {
        assert!(refusal("rs").contains("`*.rs` are of type `rust`"), "{}", refusal("rs"));
        assert!(refusal(".yml").contains("of type `yaml`"), "{}", refusal(".yml"));
        assert!(refusal("unheard-of").contains("set `glob`, such as `*.unheard-of`"));
    }
}
