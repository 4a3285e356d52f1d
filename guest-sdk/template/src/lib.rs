//! `{{name}}`: counts the words of a text file. Make it yours.

use belljar_guest::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the workspace.
    path: String,
}

fn {{name}}(args: Args) -> ToolResult {
    let path = WorkspacePath::parse(&args.path)?;
    let text = std::fs::read_to_string(&path).at(&args.path)?;
    Ok(Output::text(format!("{path}: {} words", count(&text))))
}

fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

belljar_guest::tools! {
    {{name}}(Args): "Counts the words of a text file.", hints: read_only | idempotent;
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_separated_by_white_space() {
        assert_eq!(super::count(" a bell\n jar "), 3);
    }
}
