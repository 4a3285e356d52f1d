//! How a command-line program is called as a tool: its fixed words, and how the arguments of a call become
//! its command line. For example, the words `-n {pattern}` and the argument `pattern = "x"` make `-n x`.
//! Nothing runs here; the result is text.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{GuestPath, ShownText, ToolName, WORKSPACE};
use serde_json::{Map, Value, json};

use crate::component::described::{self, DescribeLimits, ToolClaim};
use crate::component::tool_info::{ToolHints, ToolInfo};

/// The most words of a command line, without the command's name.
const MAX_WORDS: usize = 4_096;

/// The most bytes of a command line, because a guest receives it as a whole.
const MAX_LINE: usize = 1 << 20;

/// The most variables of a command's environment, and the most bytes of a variable's value.
const MAX_VARIABLES: usize = 64;
const MAX_VALUE: usize = 4 << 10;

/// The workspace's path for programs built to run with `--dir .::/`.
const ROOT: &str = "/";

/// The most bytes of a name that an error shows.
const MAX_SHOWN: usize = 64;

/// The arguments every command may have: its words, its standard input, and paths of files.
const ARGS: &str = "args";
const STDIN: &str = "stdin";
const FILES: &str = "files";

/// The tool name for a command whose file name has no usable letter.
const NAMELESS: &str = "command";

/// How a command is called as a tool. The default lets the model choose everything: `args` (a list of
/// words), `stdin` and `files`; the environment is empty.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandForm {
    description: String,
    /// The fixed words of the command line; `None`: the call's `args` are the words.
    words: Option<Vec<CommandWord>>,
    environment: Vec<(String, String)>,
    schema: Value,
    /// The names of the arguments that a call may have.
    names: BTreeSet<String>,
    /// The path where the command sees the workspace; `None`: `/workspace`.
    workspace_at: Option<String>,
}

/// One word of a fixed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CommandWord {
    Fixed(String),
    /// `{name}` alone: the value of the argument. If the value is a list, each element is a word.
    Argument(String),
    /// `{name}` inside a word, for example `--depth={n}`. Without the argument, the word is left out.
    Within {
        before: String,
        name: String,
        after: String,
    },
}

/// Everything a command starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The words, with the command's own name first, for example `grep -n word`.
    pub(crate) words: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) stdin: String,
    /// The path where the command sees the workspace.
    pub(crate) workspace: String,
}

impl Default for CommandForm {
    fn default() -> Self {
        let schema = schema_of(&[
            (ARGS, list_schema("Words of the command line, without the command's name")),
            (STDIN, text_schema("Text on its standard input")),
            (FILES, list_schema("Paths of files in the workspace, at the end of the command line")),
        ]);
        Self {
            description: String::new(),
            words: None,
            environment: Vec::new(),
            names: property_names(&schema),
            schema,
            workspace_at: None,
        }
    }
}

impl CommandForm {
    /// Sets the description a model reads. If it is blank, the model gets a default text.
    #[must_use]
    pub fn with_description(mut self, description: &str) -> Self {
        description.trim().clone_into(&mut self.description);
        self
    }

    /// Fixes the words of the command line. A word `{name}` is replaced by the call's argument `name`; a
    /// list makes several words, and a missing argument none. Inside a word, for example `--depth={n}`, the
    /// argument must be one text; if it is missing, the whole word is left out. `{{` and `}}` mean literal
    /// braces. Without a schema, each named argument is a text, all but `files` are required, and `stdin` is
    /// added.
    ///
    /// # Errors
    ///
    /// A word or the schema is invalid, or a word names an argument the schema lacks. The text says which.
    pub fn with_line(mut self, words: &[String], schema: Option<&str>) -> Result<Self, String> {
        let words =
            words.iter().map(|word| CommandWord::parse(word)).collect::<Result<Vec<_>, _>>()?;
        self.schema = match schema {
            Some(schema) => object_schema(schema)?,
            None => made_schema(&words),
        };
        self.names = property_names(&self.schema);
        let placed = words.iter().filter_map(CommandWord::argument_name);
        if let Some(name) = placed.into_iter().find(|name| !self.names.contains(*name)) {
            return Err(format!("`{{{}}}` is no argument of the schema", clip_shown(name)));
        }
        self.words = Some(words);
        Ok(self)
    }

    /// Sets the schema of the arguments of a command without fixed words.
    ///
    /// # Errors
    ///
    /// The text is not the schema of an object.
    pub fn with_schema(mut self, schema: &str) -> Result<Self, String> {
        self.schema = object_schema(schema)?;
        self.names = property_names(&self.schema);
        Ok(self)
    }

    /// Shows the workspace to the command at another path than `/workspace`, because programs built for
    /// `wasmtime --dir .::/` look for their files at `/`. The command sees the same directory with the same
    /// access there, and nothing else.
    ///
    /// # Errors
    ///
    /// The path is neither `/` nor valid as a mount's path.
    pub fn with_workspace_at(mut self, path: &str) -> Result<Self, String> {
        let at = match path {
            ROOT => ROOT.to_owned(),
            path => match GuestPath::new(path) {
                Ok(path) => path.to_string(),
                Err(_) => {
                    let path = clip_shown(path);
                    return Err(format!(
                        "`workspace_at`: `{path}` is neither `/` nor a path such as `/work`"
                    ));
                }
            },
        };
        self.workspace_at = (at != WORKSPACE).then_some(at);
        Ok(self)
    }

    /// The path where the command sees the workspace.
    pub(crate) fn workspace_path(&self) -> &str {
        self.workspace_at.as_deref().unwrap_or(WORKSPACE)
    }

    /// Sets the environment variables of the command. It gets no variable of the host.
    ///
    /// # Errors
    ///
    /// The list is too long, or a name or a value is invalid.
    pub fn with_environment(
        mut self,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        if environment.len() > MAX_VARIABLES {
            return Err(format!("over {MAX_VARIABLES} variables"));
        }
        for (name, value) in environment {
            let fits = !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !fits {
                return Err(format!("`{}` is no name of a variable", clip_shown(name)));
            }
            if value.len() > MAX_VALUE || value.contains('\0') {
                return Err(format!("the value of `{name}` is too long, or holds a zero"));
            }
        }
        self.environment = environment.clone().into_iter().collect();
        Ok(self)
    }

    /// The description of the command as a tool. `name` is the file's or the person's name for it, from which
    /// the tool's name is made.
    ///
    /// # Errors
    ///
    /// The description or the schema breaks the rules that hold for every tool.
    pub fn tool(&self, name: Option<&str>, limits: &DescribeLimits) -> Result<ToolInfo, String> {
        let name = command_name(name);
        let description = match self.description.as_str() {
            "" => format!("Runs the command `{name}` and gives its output and exit code."),
            text => text.to_owned(),
        };
        let claim = ToolClaim {
            name,
            description,
            schema: self.schema.to_string(),
            hints: ToolHints::default(),
        };
        let mut tools = described::check_claims(vec![claim], limits)?;
        tools.pop().ok_or_else(|| "it offers no tool".to_owned())
    }

    /// Makes the command line of a call. `Err`: what is wrong with the call's arguments.
    pub(crate) fn command_line(&self, name: &str, arguments: &str) -> Result<CommandLine, String> {
        let arguments: Map<String, Value> =
            serde_json::from_str(arguments).map_err(|error| error.to_string())?;
        if let Some(other) = arguments.keys().find(|key| !self.names.contains(*key)) {
            return Err(format!("there is no argument `{}`", clip_shown(other)));
        }
        let mut words = vec![name.to_owned()];
        match &self.words {
            None => words.extend(parse_list(ARGS, arguments.get(ARGS))?),
            Some(line) => {
                let workspace = self.workspace_path();
                line.iter()
                    .try_for_each(|word| word.append_word(&arguments, workspace, &mut words))?;
            }
        }
        let places_files = self
            .words
            .iter()
            .flatten()
            .any(|word| word.argument_name().is_some_and(|name| name == FILES));
        if !places_files {
            words.extend(parse_files(arguments.get(FILES), self.workspace_path())?);
        }
        if words.len() > MAX_WORDS {
            return Err(format!("{} words, and at most {MAX_WORDS} are passed on", words.len()));
        }
        if words.iter().map(String::len).sum::<usize>() > MAX_LINE {
            return Err(format!("the words have over {MAX_LINE} bytes"));
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err("a word holds a zero".to_owned());
        }
        let stdin = parse_text(STDIN, arguments.get(STDIN))?.unwrap_or_default();
        let (environment, workspace) = (self.environment.clone(), self.workspace_path().to_owned());
        Ok(CommandLine { words, environment, stdin, workspace })
    }
}

impl CommandWord {
    /// Parses a word with at most one argument name in braces. `{{` and `}}` mean literal braces. For
    /// example, `--out={name}` becomes [`Self::Within`].
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("the word `{}` {why}", clip_shown(text));
        let (mut parts, mut placed) = ([String::new(), String::new()], None);
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, after) = rest.split_at(at);
            let part = &mut parts[usize::from(placed.is_some())];
            part.push_str(before);
            if let Some(after) = after.strip_prefix("{{") {
                part.push('{');
                rest = after;
            } else if let Some(after) = after.strip_prefix("}}") {
                part.push('}');
                rest = after;
            } else if let Some((name, after)) =
                after.strip_prefix('{').and_then(|after| after.split_once('}'))
            {
                if placed.is_some() {
                    return Err(wrong("has two arguments in it"));
                }
                if ToolName::new(name).is_err() {
                    return Err(wrong("has something in braces that is no name"));
                }
                placed = Some(name.to_owned());
                rest = after;
            } else {
                return Err(wrong("has a brace without its other; write `{{` for one"));
            }
        }
        parts[usize::from(placed.is_some())].push_str(rest);
        let [before, after] = parts;
        Ok(match placed {
            None => Self::Fixed(before),
            Some(name) if before.is_empty() && after.is_empty() => Self::Argument(name),
            Some(name) => Self::Within { before, name, after },
        })
    }

    fn argument_name(&self) -> Option<&String> {
        match self {
            Self::Fixed(_) => None,
            Self::Argument(name) | Self::Within { name, .. } => Some(name),
        }
    }

    /// Appends this word of the fixed line to `words`. INV-223: a word from a call's argument must not begin
    /// with `-`, because it would be an option, unless a fixed `--` before it ends the options.
    fn append_word(
        &self,
        arguments: &Map<String, Value>,
        workspace: &str,
        words: &mut Vec<String>,
    ) -> Result<(), String> {
        match self {
            Self::Fixed(word) => words.push(word.clone()),
            Self::Argument(name) if name == FILES => {
                words.extend(parse_files(arguments.get(name), workspace)?);
            }
            Self::Argument(name) => {
                let ended = words.iter().skip(1).any(|word| word == "--");
                for word in parse_list(name, arguments.get(name))? {
                    refuse_option(name, &word, ended)?;
                    words.push(word);
                }
            }
            Self::Within { before, name, after } => {
                if let Some(value) = parse_text(name, arguments.get(name))? {
                    let word = format!("{before}{value}{after}");
                    if before.is_empty() {
                        let ended = words.iter().skip(1).any(|word| word == "--");
                        refuse_option(name, &word, ended)?;
                    }
                    words.push(word);
                }
            }
        }
        Ok(())
    }
}

fn refuse_option(name: &str, word: &str, ended: bool) -> Result<(), String> {
    // A single `-` is allowed: by convention it means standard input.
    if word.starts_with('-') && word != "-" && !ended {
        return Err(format!("`{}` begins with `-`, and would be an option", clip_shown(name)));
    }
    Ok(())
}

/// Makes a valid tool name from a file's name, for example `rip_grep` from `Rip-Grep.wasm`.
pub(crate) fn command_name(name: Option<&str>) -> String {
    let stem = name.unwrap_or_default();
    let stem = stem.strip_suffix(".wasm").unwrap_or(stem);
    let legal: String = stem
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '_' })
        .skip_while(|c| !c.is_ascii_lowercase())
        .take(64)
        .collect();
    if legal.is_empty() { NAMELESS.to_owned() } else { legal }
}

/// The text of an argument; numbers and booleans become their JSON text. `None`: the argument is missing or
/// null.
fn parse_text(name: &str, given: Option<&Value>) -> Result<Option<String>, String> {
    Ok(Some(match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Array(_) | Value::Object(_)) => {
            return Err(format!("`{}` is not a text", clip_shown(name)));
        }
    }))
}

/// The texts of an argument that is a list or one text.
fn parse_list(name: &str, given: Option<&Value>) -> Result<Vec<String>, String> {
    let Some(Value::Array(items)) = given else {
        return Ok(parse_text(name, given)?.into_iter().collect());
    };
    let texts = items.iter().map(|item| parse_text(name, Some(item)));
    Ok(texts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The paths of the argument `files`, made absolute: no path can be taken for an option, and the command's
/// current directory does not matter.
fn parse_files(given: Option<&Value>, workspace: &str) -> Result<Vec<String>, String> {
    let path = |path: String| {
        // Models write the paths all other tools show, which begin with `/workspace`.
        let below = path.strip_prefix(WORKSPACE).and_then(|rest| rest.strip_prefix('/'));
        match (below, path.starts_with('/')) {
            (Some(below), _) => format!("{}/{below}", workspace.trim_end_matches('/')),
            (None, true) => path,
            (None, false) => format!("{}/{path}", workspace.trim_end_matches('/')),
        }
    };
    Ok(parse_list(FILES, given)?.into_iter().map(path).collect())
}

fn object_schema(text: &str) -> Result<Value, String> {
    crate::json::check_json(text).map_err(|why| format!("the schema is not JSON: {why}"))?;
    let schema: Value =
        serde_json::from_str(text).map_err(|error| format!("the schema is not JSON: {error}"))?;
    if schema.get("properties").is_some_and(|it| !it.is_object()) {
        return Err("the schema's `properties` are no object".to_owned());
    }
    Ok(schema)
}

/// The JSON schema of a command's arguments, made from its words: each named argument is a required text,
/// except the list of files; standard input is optional.
fn made_schema(words: &[CommandWord]) -> Value {
    let placed: BTreeSet<&String> = words.iter().filter_map(CommandWord::argument_name).collect();
    let mut rows: Vec<(&str, Value)> = Vec::new();
    let mut required = Vec::new();
    for name in words.iter().filter_map(CommandWord::argument_name) {
        if rows.iter().any(|(known, _)| known == name) {
            continue;
        }
        if name == FILES {
            rows.push((name, list_schema("Paths of files in the workspace")));
        } else {
            rows.push((name, json!({ "type": "string" })));
            required.push(name.clone());
        }
    }
    if !placed.contains(&STDIN.to_owned()) {
        rows.push((STDIN, text_schema("Text on its standard input")));
    }
    let mut schema = schema_of(&rows);
    if let Some(object) = schema.as_object_mut() {
        object.insert("required".to_owned(), json!(required));
    }
    schema
}

fn schema_of(rows: &[(&str, Value)]) -> Value {
    let properties: Map<String, Value> =
        rows.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn text_schema(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn list_schema(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

fn property_names(schema: &Value) -> BTreeSet<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

fn clip_shown(text: &str) -> String {
    ShownText::clip_line(text, MAX_SHOWN).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(form: &CommandForm, arguments: Value) -> Result<Vec<String>, String> {
        form.command_line("c", &arguments.to_string()).map(|line| line.words)
    }

    fn form(line: &[&str]) -> CommandForm {
        let line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        CommandForm::default().with_line(&line, None).unwrap()
    }

    #[test]
    fn files_are_named_where_the_command_sees_the_workspace() {
        let at = |path: &str| CommandForm::default().with_workspace_at(path);
        let arguments = json!({ "files": ["a", "-b", "/workspace/c/d", "/data/e", "/workspaces"] });
        for (path, expected) in [
            ("/", ["c", "/a", "/-b", "/c/d", "/data/e", "/workspaces"]),
            ("/work", ["c", "/work/a", "/work/-b", "/work/c/d", "/data/e", "/workspaces"]),
            (
                "/workspace",
                ["c", "/workspace/a", "/workspace/-b", "/workspace/c/d", "/data/e", "/workspaces"],
            ),
        ] {
            assert_eq!(words(&at(path).unwrap(), arguments.clone()).unwrap(), expected);
        }
        for wrong in ["", ".", "work", "//", "/a/../b", "../", "/a\0"] {
            let why = at(wrong).unwrap_err();
            assert!(why.contains("neither `/`"), "{wrong:?}: {why}");
        }
    }

    #[test]
    fn without_a_form_the_words_are_the_callers() {
        let form = CommandForm::default();
        let line = form
            .command_line(
                "c",
                r#"{"args": ["-x", 1, "a b"], "stdin": "in", "files": ["-f", "/etc/a"]}"#,
            )
            .unwrap();
        assert_eq!(line.words, ["c", "-x", "1", "a b", "/workspace/-f", "/etc/a"]);
        assert_eq!((line.stdin.as_str(), line.environment.len()), ("in", 0));
        assert_eq!(words(&form, json!({})).unwrap(), ["c"]);
        for (bad, why) in [
            (json!({ "arg": [] }), "no argument `arg`"),
            (json!({ "args": [[]] }), "not a text"),
            (json!({ "args": ["a\0b"] }), "zero"),
            (json!({ "stdin": {} }), "not a text"),
            (json!({ "args": vec!["a"; MAX_WORDS + 1] }), "words"),
            (json!({ "args": ["a".repeat(MAX_LINE)] }), "bytes"),
        ] {
            let told = words(&form, bad).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn a_fixed_line_takes_arguments_at_their_places() {
        let form = form(&["-c", "{filter}", "--depth={n}", "{{x}}", "--", "{files}"]);
        let given = json!({ "filter": ".a", "n": 3, "files": ["a.json"] });
        assert_eq!(
            words(&form, given).unwrap(),
            ["c", "-c", ".a", "--depth=3", "{x}", "--", "/workspace/a.json"]
        );
        assert_eq!(words(&form, json!({ "filter": "." })).unwrap(), ["c", "-c", ".", "{x}", "--"]);
        assert_eq!(form.schema["required"], json!(["filter", "n"]));
    }

    #[test]
    fn an_argument_in_a_place_of_its_own_is_no_option() {
        let fixed = form(&["-safe", "{sql}"]);
        let told = words(&fixed, json!({ "sql": "-unsafe" })).unwrap_err();
        assert!(told.contains("would be an option"), "{told}");
        assert_eq!(words(&fixed, json!({ "sql": "-" })).unwrap(), ["c", "-safe", "-"]);
        let ended = form(&["-safe", "--", "{sql}"]);
        assert_eq!(words(&ended, json!({ "sql": "-x" })).unwrap(), ["c", "-safe", "--", "-x"]);
        let glued = form(&["{a}x"]);
        assert!(words(&glued, json!({ "a": "-" })).is_err());
    }

    #[test]
    fn a_form_that_cannot_work_is_refused() {
        let line = |word: &str, schema: Option<&str>| {
            CommandForm::default().with_line(&[word.to_owned()], schema).unwrap_err()
        };
        assert!(line("{a}{b}", None).contains("two arguments"));
        assert!(line("{", None).contains("a brace without its other"));
        assert!(line("a}", None).contains("a brace without its other"));
        assert!(line("{A b}", None).contains("no name"));
        let schema = r#"{"type": "object", "properties": {"b": {}}}"#;
        assert!(line("{a}", Some(schema)).contains("no argument of the schema"));
        assert!(line("a", Some("[")).contains("not JSON"));
        let environment = |name: &str, value: &str| {
            let one = [(name.to_owned(), value.to_owned())].into();
            CommandForm::default().with_environment(&one)
        };
        assert!(environment("A", "b").is_ok());
        for (name, value) in [("", "a"), ("1", "a"), ("A=B", "a"), ("A", "a\0")] {
            assert!(environment(name, value).is_err(), "{name}");
        }
    }

    #[test]
    fn its_tool_is_named_by_its_file_and_checked_like_any() {
        let limits = DescribeLimits::default();
        for (file, name) in [
            (Some("jq.wasm"), "jq"),
            (Some("Rip-Grep 14.wasm"), "rip_grep_14"),
            (Some("7z"), "z"),
            (Some("\u{202e}"), "command"),
            (None, "command"),
        ] {
            let tool = CommandForm::default().tool(file, &limits).unwrap();
            assert_eq!(tool.name.as_str(), name);
        }
        let lying = CommandForm::default().with_description("x\u{202e}y");
        assert!(lying.tool(None, &limits).unwrap_err().contains("U+202E"));
        let schema = CommandForm::default().with_schema(r#"{"type": "array"}"#).unwrap();
        assert!(schema.tool(None, &limits).is_err());
    }
}
