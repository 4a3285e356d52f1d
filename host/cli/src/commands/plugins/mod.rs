//! `belljar plugins` and `belljar marketplaces`: strangers' agents, skills, commands, hooks and servers,
//! shown before they are there.

mod add;
mod connect;
mod difference;
mod listing;
mod markets;
mod named;
mod report;
mod show;
mod update;
mod vetting;

use crate::args::plugins::{MarketplacesArgs, MarketplacesCommand, PluginsArgs, PluginsCommand};
use crate::libraries::SourceFetcher;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;

/// Runs a command about plugins.
pub(super) fn run(
    args: &PluginsArgs,
    operator: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let of = &args.of;
    let fetcher = SourceFetcher { out, places: operator, walled: !walls.is_off() };
    let whose = match &args.command {
        PluginsCommand::List { .. } | PluginsCommand::Search { .. } => {
            AgentOwner::behind_wall(of, operator, walls, WallGaps::default())?
        }
        PluginsCommand::Show { .. } => AgentOwner::for_tenant(of, operator)?,
        PluginsCommand::Add(_)
        | PluginsCommand::Update { .. }
        | PluginsCommand::Remove { .. }
        | PluginsCommand::Enable { .. }
        | PluginsCommand::Disable { .. }
        | PluginsCommand::Connect(_) => AgentOwner::to_change(of, operator)?,
    };
    match &args.command {
        PluginsCommand::Add(args) => add::run(args, of, &whose, &fetcher, walls, out),
        PluginsCommand::List { json } => listing::list_plugins(*json, of, &whose.places, out),
        PluginsCommand::Show { plugin, json } => {
            show::run(plugin, *json, of, &whose, &fetcher, walls, out)
        }
        PluginsCommand::Search { words, json } => {
            listing::search_plugins(words, *json, of, &whose.places, out)
        }
        PluginsCommand::Update { plugin, yes, json } => {
            update::run(plugin, (*yes, *json), of, &whose, &fetcher, walls, out)
        }
        PluginsCommand::Remove { plugin } => listing::remove_plugin(plugin, of, &whose.places, out),
        PluginsCommand::Enable { plugin } => {
            listing::switch_plugin(plugin, true, of, &whose.places, out)
        }
        PluginsCommand::Disable { plugin } => {
            listing::switch_plugin(plugin, false, of, &whose.places, out)
        }
        PluginsCommand::Connect(args) => connect::run(args, of, &whose, out),
    }
}

/// Runs a command about marketplaces.
pub(super) fn run_markets(
    args: &MarketplacesArgs,
    operator: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let of = &args.of;
    let fetcher = SourceFetcher { out, places: operator, walled: !walls.is_off() };
    match &args.command {
        MarketplacesCommand::Add { source, rev } => {
            let whose = AgentOwner::to_change(of, operator)?;
            markets::add_market(source, rev.as_deref(), of, &whose.places, &fetcher, walls, out)
        }
        MarketplacesCommand::List { json } => {
            let whose = AgentOwner::behind_wall(of, operator, walls, WallGaps::default())?;
            markets::list_markets(*json, of, &whose.places, out)
        }
        MarketplacesCommand::Update { market } => {
            let whose = AgentOwner::to_change(of, operator)?;
            markets::update_market(market, of, &whose.places, &fetcher, walls, out)
        }
        MarketplacesCommand::Remove { market } => {
            let whose = AgentOwner::to_change(of, operator)?;
            markets::remove_market(market, of, &whose.places, out)
        }
    }
}
