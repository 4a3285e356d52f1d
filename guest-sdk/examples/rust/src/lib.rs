//! `word_count`: a complete tool, as `belljar tools new word_count` writes it.

use belljar_guest::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the workspace.
    path: String,
}

fn word_count(args: Args) -> ToolResult {
    let path = WorkspacePath::parse(&args.path)?;
    let text = std::fs::read_to_string(&path).at(&args.path)?;
    Ok(Output::text(format!("{path}: {} words", count(&text))))
}

fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

belljar_guest::tools! {
    word_count(Args): "Counts the words of a text file.", hints: read_only | idempotent;
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_separated_by_white_space() {
        assert_eq!(super::count(" a bell\n jar "), 3);
    }
}
