//! `belljar man`: makes the pages of the manual from the texts of `--help`.

use std::path::Path;

use belljar_policy::ShownPath as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::CliArgs;
use crate::setup::below::{self, FileAudience};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::walls::WallRaiser;
use crate::term::out::TerminalOutput;

/// The manual's section for programs that a person starts.
const SECTION: &str = "1";

/// Prints the page of `belljar` itself, or writes all pages into `dir`, for example `belljar-run.1`.
pub(crate) fn run(
    dir: Option<&Path>,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let pages = manual_pages();
    match (dir, pages.first()) {
        (Some(dir), _) => write_pages(&pages, dir, walls)?,
        (None, Some((_, page))) => out.print_text(page),
        (None, None) => {}
    }
    Ok(CommandExit::Completed)
}

/// Writes the pages into a directory, which is made if missing.
fn write_pages(
    pages: &[(String, String)],
    dir: &Path,
    walls: WallRaiser<'_>,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("failed to write the manual to `{}`: {error}", dir.to_shown()))
    };
    // A directory below the person's working directory may be a stranger's, so no link in it is followed.
    let here = std::env::current_dir().map_err(failed)?;
    let place = below::output_directory(dir, &here).map_err(failed)?;
    walls.raise_around(&[place.path()]);
    for (name, page) in pages {
        let name = format!("{name}.{SECTION}");
        let put = place.replace_file(Path::new(&name), page.as_bytes(), FileAudience::Everybody);
        put.map_err(failed)?;
    }
    Ok(())
}

/// The pages with their names, for example `belljar-agents-list`.
fn manual_pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    let mut command = CliArgs::command().disable_help_subcommand(true);
    command.build();
    collect_pages(&command, &mut pages);
    pages
}

/// Adds the page of a command, and the pages of its subcommands.
fn collect_pages(command: &Command, pages: &mut Vec<(String, String)>) {
    // The name of a subcommand includes its parents, for example `belljar-agents-list`.
    let name = command.get_display_name().unwrap_or(command.get_name());
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .section(SECTION)
        .source(concat!("belljar ", env!("CARGO_PKG_VERSION")))
        .manual("belljar manual");
    let mut text = Vec::new();
    // Writing to memory does not fail.
    if man.render(&mut text).is_ok() {
        pages.push((name.to_owned(), String::from_utf8_lossy(&text).into_owned()));
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect_pages(below, pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_help_names_has_a_page_with_its_options() {
        let pages = manual_pages();
        for name in ["belljar", "belljar-run", "belljar-agents-list", "belljar-tools-call"] {
            let found = pages.iter().find(|(page, _)| page == name);
            let (_, text) = found.unwrap_or_else(|| panic!("no page {name}"));
            assert!(text.contains(".SH OPTIONS"), "{text}");
        }
        let (_, main) = &pages[0];
        assert!(main.contains("belljar\\-agents(1)") && main.contains("Exit codes"), "{main}");
        assert!(!pages.iter().any(|(name, _)| name == "belljar-man"), "it is hidden");
    }
}
