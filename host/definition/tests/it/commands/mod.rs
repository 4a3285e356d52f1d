//! Command files, and the messages that they become.

use std::path::Path;

use belljar_definition::{
    CatalogItem as _, CommandArguments, CommandDefinition, CommandPiece, CommandStyle, ExpandError,
    FileRead, UseTerms,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    body: String,
    #[serde(default)]
    args: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    braces: bool,
    #[serde(default)]
    folders: Vec<(String, String)>,
    becomes: String,
}

fn command(body: &str, names: &[String], braces: bool) -> CommandDefinition {
    let read = read("commands/x.md", "Some text.");
    let FileRead::Item { item, .. } = read else { panic!("{read:?}") };
    let style = if braces { CommandStyle::Braces } else { CommandStyle::Dollar };
    let terms = UseTerms { arguments: names.to_vec(), ..UseTerms::default() };
    CommandDefinition { body: body.to_owned(), style, terms, ..item }
}

fn read(path: &str, text: &str) -> FileRead<CommandDefinition> {
    CommandDefinition::read_file(Path::new(path), text.as_bytes(), &())
}

fn show(pieces: Vec<CommandPiece>) -> String {
    let shown = pieces.into_iter().map(|piece| match piece {
        CommandPiece::Text(text) => text,
        CommandPiece::File { path, .. } => format!("«file {path}»"),
        CommandPiece::Shell { command, .. } => format!("«shell {command}»"),
    });
    shown.collect()
}

fn expand(body: &str, args: &str) -> Result<String, ExpandError> {
    let arguments = CommandArguments { text: args, ..CommandArguments::default() };
    command(body, &[], false).expand_text(&arguments).map(show)
}

#[test]
fn each_form_of_public_commands_becomes_its_message() {
    let table: Table = toml::from_str(include_str!("cases.toml")).unwrap();
    assert!(table.case.len() >= 80, "{}", table.case.len());
    let mut wrong = Vec::new();
    for Case { body, args, names, braces, folders, becomes } in table.case {
        let folders: Vec<(&str, &str)> =
            folders.iter().map(|(word, path)| (word.as_str(), path.as_str())).collect();
        let arguments = CommandArguments { text: &args, folders: &folders };
        let message = command(&body, &names, braces).expand_text(&arguments).map(show);
        if message.as_deref() != Ok(becomes.as_str()) {
            wrong.push(format!("{body:?} with {args:?}:\n  {message:?}\n  {becomes:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_message_has_bounds_on_its_bytes_its_arguments_and_its_acts() {
    let long = "x".repeat(64 << 10);
    assert_eq!(expand(&"$ARGUMENTS ".repeat(20), &long), Err(ExpandError::Message));
    assert_eq!(expand("$ARGUMENTS", &format!("{long}x")), Err(ExpandError::Arguments(65_537)));
    assert_eq!(expand(&"@a.md ".repeat(33), ""), Err(ExpandError::Acts));
    assert!(expand(&"@a.md ".repeat(32), "").is_ok());
}

/// Texts that repeat long arguments in paths and in shell commands.
#[test]
fn a_path_has_a_bound_and_files_and_shell_commands_count_for_the_messages_bytes() {
    let long = "x".repeat(64 << 10);
    let arguments = CommandArguments { text: &long, ..CommandArguments::default() };
    let body = format!("@{{{}}}", "{{args}}".repeat(24_000));
    assert_eq!(command(&body, &[], true).expand_text(&arguments), Err(ExpandError::Path));
    assert_eq!(expand("See @src/$1.", &long), Err(ExpandError::Path));
    let path = "x".repeat(4 << 10);
    assert_eq!(expand("See @$1 too", &path), Ok(format!("See «file {path}» too")));
    assert_eq!(expand(&"!`echo $1`\n".repeat(20), &long), Err(ExpandError::Message));
    assert!(expand(&"!`echo $1`\n".repeat(10), &long).is_ok());
}

/// Texts of the greatest length whose parts look for an end that is not there.
#[test]
fn hostile_texts_are_read_in_a_pass() {
    for part in [
        "```!\n",
        "```",
        "!{",
        "${",
        "$ARGUMENTS[",
        "[@",
        "[@a",
        "(@a",
        " !`",
        "$",
        "`",
        "$1",
        "\\$",
    ] {
        let body = part.repeat((200 << 10) / part.len());
        for braces in [false, true] {
            let names: Vec<String> = (0..200).map(|n| format!("n{n}")).collect();
            let read = command(&body, &names, braces).expand_text(&CommandArguments::default());
            assert!(read.is_ok() || read == Err(ExpandError::Acts), "{part:?}");
        }
    }
}

#[test]
fn a_file_is_a_command_with_or_without_frontmatter_and_its_fields_are_kept() {
    let FileRead::Item { item, diagnostics } = read(
        "commands/git/fix-issue.md",
        "---\ndescription: Fix it\nallowed-tools: Read, Bash(git add:*)\nargument-hint: [issue]\nmodel: opus\nversion: 2\n---\nFix $1.\n",
    ) else {
        panic!()
    };
    assert_eq!((item.slug.as_str(), item.description.as_str()), ("fix-issue", "Fix it"));
    let tools = ["Read", "Bash(git add:*)"].map(str::to_owned).to_vec();
    assert_eq!(item.terms.allowed_tools, Some(tools));
    assert_eq!(item.terms.argument_hint.as_deref(), Some("[issue]"));
    assert_eq!(item.terms.model.as_deref(), Some("opus"));
    assert_eq!(item.body, "Fix $1.\n");
    let notes: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(notes, ["commands/git/fix-issue.md:6:1: note: ignored: `version`"]);

    let FileRead::Item { item, .. } = read("commands/plain.md", "# Plain words\n\nDo.\n") else {
        panic!()
    };
    assert_eq!((item.name.as_str(), item.description.as_str()), ("plain", "Plain words"));

    // Broken YAML is read field by field.
    let loose = "---\ndescription: Use it: now\nargument-hint: [a] [b]\n---\nDo.\n";
    let FileRead::Item { item, .. } = read("commands/loose.md", loose) else { panic!() };
    assert_eq!(item.description, "Use it: now");

    let text = "description = \"d\"\nprompt = '''\nExplain {{args}}\n'''\n";
    let FileRead::Item { item, .. } = read("commands/explain.toml", text) else { panic!() };
    assert_eq!((item.style, item.description.as_str()), (CommandStyle::Braces, "d"));

    for (path, text) in [
        ("commands/a.md", "---\ndescription: d\n---\n \n"),
        ("commands/a.md", "---\ndescription: d\n"),
        ("commands/a.toml", "prompt = 1\n"),
        ("commands/a.toml", "prompt = \n"),
    ] {
        assert!(matches!(read(path, text), FileRead::Invalid { .. }), "{path}: {text}");
    }
    for no in ["README.md", "git/README.md", "x.py", "LICENSE"] {
        assert!(!CommandDefinition::accepts_path(Path::new(no)), "{no}");
    }
}
