//! Sets up a model, if none is configured: finds usable models, lets a person choose, and writes a section of
//! `belljar.toml`.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use belljar_definition::Settings;
use belljar_policy::ShownPath as _;
use belljar_policy::ShownText;
use toml_edit::{DocumentMut, Item, Table, Value, value};

use super::finding::{self, FoundModels, ModelCandidate, PROVIDERS, SERVERS};
use crate::args::InitArgs;
use crate::setup::config_lock::ConfigLock;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, read_own_config};
use crate::term::out::{TerminalOutput, TextStyle};

/// Finds a model and writes its section into the `belljar.toml` of the home, unless a model exists.
pub(super) fn set_up(
    args: &InitArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let path = places.config_path();
    let text = read_own_config(&path)?.unwrap_or_default();
    let before = Settings::parse(Some((&path, &text)), None, places.user_home.as_deref())
        .map_err(|found| Failure::from_diagnostics("no model is set up", found))?;
    if !before.models.is_empty() {
        let names: Vec<String> = before.models.keys().map(|name| escape_text(name)).collect();
        out.print_line(format_args!(
            "{} the models of {}: {}",
            out.paint(TextStyle::Yellow, "kept "),
            path.to_shown(),
            names.join(", ")
        ));
        return Ok(CommandExit::Completed);
    }
    if args.no_model {
        return Ok(CommandExit::Completed);
    }
    let servers = args.model_at.iter().map(|text| finding::base_url(text));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let found = finding::find_models(&servers, &is_set)?;
    found.complaints.iter().for_each(|why| out.print_warning(why));
    let Some(chosen) = choose_model(&found, args.yes, out) else {
        if servers.is_empty() {
            print_advice(places, out);
            return Ok(CommandExit::Completed);
        }
        return Err(Failure::new("no model is set up").with_exit(CommandExit::NoModel).with_hint(
            format!(
                "start the server and repeat the command, or write `[models.main]` in {}",
                path.to_shown()
            ),
        ));
    };
    let new = with_model(&path, &text, &before, chosen, places.user_home.as_deref())?;
    ConfigLock::lock_file(&path)?.replace_text(&text, &new)?;
    print_choice(chosen, &found, &path, out);
    Ok(CommandExit::Completed)
}

/// Asks the person which model to use. The first one, if there is only one or nobody is asked.
fn choose_model<'a>(
    found: &'a FoundModels,
    yes: bool,
    out: &TerminalOutput,
) -> Option<&'a ModelCandidate> {
    let first = found.candidates.first()?;
    if yes || found.candidates.len() == 1 || !out.can_ask() {
        return Some(first);
    }
    out.note("models that can be used:");
    for (number, candidate) in found.candidates.iter().enumerate() {
        let (model, at) = (escape_text(&candidate.model), candidate.format_place());
        out.note(format_args!("  {}  {model} {at}", number + 1));
    }
    let answer = out.ask_line("which one? [1; 0 = none]", &AtomicBool::new(true))?;
    let number = match answer.trim() {
        "" => 1,
        text => text.parse::<usize>().ok()?,
    };
    found.candidates.get(number.checked_sub(1)?)
}

/// The text of `belljar.toml` with a section for the chosen model, and with the role `main`, which every
/// agent uses by default.
fn with_model(
    path: &Path,
    text: &str,
    before: &Settings,
    chosen: &ModelCandidate,
    user_home: Option<&Path>,
) -> Result<String, Failure> {
    let by_hand = || {
        Failure::usage(format!("`{}` has a form that nothing can be added to", path.to_shown()))
            .with_hint(format!("write `[models.{}]` in it by hand", chosen.section))
    };
    let mut document: DocumentMut = text.parse().map_err(|_| by_hand())?;
    let mut model = Table::new();
    model.insert("kind", value(chosen.kind));
    if let Some(url) = &chosen.base_url {
        model.insert("base_url", value(url.as_str()));
    }
    model.insert("model", value(chosen.model.as_str()));
    if let Some(key) = chosen.key_env {
        model.insert("key_env", value(key));
    }
    if let Some(tokens) = chosen.context_tokens.and_then(|tokens| i64::try_from(tokens).ok()) {
        model.insert("context_tokens", value(tokens));
    }
    table_mut(&mut document, "models")
        .ok_or_else(by_hand)?
        .insert(&chosen.section, Item::Table(model));
    let role = Item::Value(Value::from(chosen.section.as_str()));
    table_mut(&mut document, "roles").ok_or_else(by_hand)?.insert("main", role);
    let new = document.to_string();
    // Parsed again as in normal use: there must be exactly one more model.
    let mut after = Settings::parse(Some((path, &new)), None, user_home)
        .map_err(|found| Failure::from_diagnostics("no model is set up", found))?;
    let added = after.models.remove(&chosen.section);
    let is_added = added.is_some_and(|added| added.model == chosen.model);
    let is_main = after.roles.remove("main").as_ref() == Some(&chosen.section);
    if is_added && is_main && after.says_the_same(before) { Ok(new) } else { Err(by_hand()) }
}

/// A table of the document, made if missing.
fn table_mut<'d>(document: &'d mut DocumentMut, name: &str) -> Option<&'d mut Table> {
    let mut own = Table::new();
    // A `[models]` table without own keys needs no heading; the tables in it have theirs.
    own.set_implicit(name == "models");
    document.entry(name).or_insert(Item::Table(own)).as_table_mut()
}

/// Prints the chosen model, and the others that were found.
fn print_choice(chosen: &ModelCandidate, found: &FoundModels, path: &Path, out: &TerminalOutput) {
    let ModelCandidate { section, model, .. } = chosen;
    out.print_line(format_args!(
        "{} `[models.{section}]` in {}: {} {}",
        out.paint(TextStyle::Green, "wrote"),
        path.to_shown(),
        escape_text(model),
        chosen.format_place()
    ));
    if chosen.key_env.is_some() {
        out.note("the key stays where it is: the file names the variable alone");
    }
    let others = found.candidates.iter().filter(|other| *other != chosen);
    let others: Vec<String> = others
        .map(|other| format!("{} {}", escape_text(&other.model), other.format_place()))
        .collect();
    if !others.is_empty() {
        out.note(format_args!("found too: {}", others.join("; ")));
    }
    out.note("to change it, edit that section, or take it out and repeat `belljar init`");
}

/// Prints advice if no model was found, in three lines.
fn print_advice(places: &HomePaths, out: &TerminalOutput) {
    let keys = PROVIDERS.map(|provider| provider.key_env).join(", ");
    let servers = SERVERS.map(|(_, name, port)| format!("{name} ({port})")).join(", ");
    out.note(format_args!(
        "\nno model was found: no key in {keys}, and on this machine no {servers}"
    ));
    out.note(format_args!(
        "set one of the keys or start one of the servers, and repeat `belljar init`; or write \
         `[models.main]` in {}",
        places.config_path().to_shown()
    ));
    out.note("without a model, `belljar demo` shows agents, tools and the sandbox at work");
}

fn escape_text(text: &str) -> String {
    ShownText::clip_line(text, 200).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model of a local server, with its context size.
    fn candidate() -> ModelCandidate {
        ModelCandidate {
            section: "ollama".to_owned(),
            kind: "openai",
            base_url: Some("http://127.0.0.1:11434/v1".to_owned()),
            model: "qwen3:8b".to_owned(),
            key_env: None,
            context_tokens: Some(8_192),
        }
    }

    fn added(text: &str) -> Result<String, Failure> {
        let path = Path::new("belljar.toml");
        let before = Settings::parse(Some((path, text)), None, None).unwrap();
        with_model(path, text, &before, &candidate(), None)
    }

    #[test]
    fn the_section_is_added_and_the_rest_stays_as_it_is() {
        let text = "# mine\nkeep_runs = 3\n[grants.scout] # note\ntools = []\n";
        let new = added(text).unwrap();
        assert!(new.starts_with(text), "{new}");
        for part in ["[models.ollama]", "model = \"qwen3:8b\"", "[roles]\nmain = \"ollama\""] {
            assert!(new.contains(part), "no `{part}` in\n{new}");
        }
        assert!(!new.contains("[models]"), "{new}");
    }

    #[test]
    fn a_form_that_cannot_be_added_to_is_left_alone() {
        assert!(added("models = {}\n").is_err());
        assert!(added("[roles]\n").is_ok());
    }
}
