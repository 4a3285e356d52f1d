//! The commands of belljar, one folder for each group.

mod acp;
mod backup;
mod catalogue;
mod changes;
mod chat;
mod doctor;
mod grant;
mod init;
mod inspect;
mod libraries;
mod manual;
mod mcp;
mod plugins;
mod run;
mod serve;
mod tools;

#[cfg(target_os = "linux")]
pub(crate) use self::inspect::prove_wall::run_attack as attack_the_wall;
use crate::args::{CliArgs, CliCommand};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::WallRaiser;
use crate::term::out::TerminalOutput;

/// Runs a command. A command that runs a tool, even only to list its functions, runs behind the OS sandbox.
/// Exceptions are `grant`, `revoke` and `drafts`: they write the operator's files, so they stay outside, and
/// list functions in a store without any right.
pub(crate) fn run(args: &CliArgs, out: &TerminalOutput) -> Result<CommandExit, Failure> {
    let places = || HomePaths::find_paths(args.global.workspace.as_deref());
    let walls = WallRaiser::new(args.global.no_os_sandbox, out);
    match &args.command {
        CliCommand::Demo => run::demo::run(walls, out),
        CliCommand::Run(run) => run::agent::run(run, &places()?, walls, out),
        CliCommand::Chat(chat) => chat::run(chat, &places()?, walls, out),
        CliCommand::Acp(acp) => acp::run(acp, &places()?, walls, out),
        CliCommand::Serve(serve) => serve::run(serve, &places()?, walls, out),
        CliCommand::Mcp(mcp) => mcp::run(mcp, &places()?, walls, out),
        CliCommand::Keys(keys) => serve::keys::run(keys, &places()?, out),
        CliCommand::Tenants(tenants) => serve::tenants::run(tenants, &places()?, out),
        CliCommand::Sessions(sessions) => inspect::sessions::run(sessions, &places()?, out),
        CliCommand::Backup(backup) => backup::run(backup, &places()?, out),
        CliCommand::Restore(restore) => backup::restore::run(restore, &places()?, out),
        CliCommand::Receipts(receipts) => inspect::receipts::run(receipts, &places()?, out),
        CliCommand::Changes(args) => changes::look::run(args, &places()?, out),
        CliCommand::Apply(args) => changes::apply::run(args, &places()?, out),
        CliCommand::Discard(args) => changes::discard::run(args, &places()?, out),
        CliCommand::Undo(args) => changes::undo::run(args, &places()?, out),
        CliCommand::Replay(replay) => inspect::replay::run(replay, &places()?, walls, out),
        CliCommand::Init(init) => {
            init::run(init, &places()?, args.global.workspace.is_some(), walls, out)
        }
        CliCommand::Add(args) => libraries::add_source(&args.add, &args.of, &places()?, walls, out),
        CliCommand::Agents(agents) => catalogue::agents::run(agents, places()?, walls, out),
        CliCommand::Plugins(args) => plugins::run(args, &places()?, walls, out),
        CliCommand::Marketplaces(args) => plugins::run_markets(args, &places()?, walls, out),
        CliCommand::Teams(command) => catalogue::teams::run(command, places()?, walls, out),
        CliCommand::Commands(commands) => catalogue::commands::run(commands, places()?, walls, out),
        CliCommand::Skills(skills) => catalogue::skills::run(skills, places()?, walls, out),
        CliCommand::Drafts(drafts) => catalogue::drafts::run(drafts, &places()?, out),
        CliCommand::Tools(command) => tools::run(command, &places, walls, out),
        CliCommand::Grant(grant) => grant::run(grant, &places()?, out),
        CliCommand::Revoke(revoke) => grant::revoke::run(revoke, &places()?, out),
        CliCommand::Explain(explain) => catalogue::explain::run(explain, &places()?, walls, out),
        CliCommand::Context(context) => inspect::context::run(context, &places()?, walls, out),
        CliCommand::Doctor(doctor) => doctor::run(doctor, &places, walls, out),
        CliCommand::Prove(prove) => inspect::prove::run(prove, &places()?, out),
        CliCommand::Limits { json } => catalogue::limits::run(*json, out),
        CliCommand::Completions { shell } => manual::completions::run(*shell, out),
        CliCommand::Man { dir } => manual::man::run(dir.as_deref(), walls, out),
    }
}
