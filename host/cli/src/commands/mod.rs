//! The commands, a folder for each group of them.

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
mod run;
mod serve;
mod tools;

#[cfg(target_os = "linux")]
pub(crate) use self::inspect::prove_wall::attack as attack_the_wall;
use crate::args::{Args, Command};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::walls::Walls;
use crate::term::out::Out;

/// Runs a command. A command that runs a tool, even only to list its functions, does so behind the OS
/// sandbox. `grant`, `revoke` and `drafts` list functions too, in a store without any right, and stay
/// outside, because they write the operator's files.
pub(crate) fn run(args: &Args, out: &Out) -> Result<Exit, Failure> {
    let places = || Places::find(args.global.workspace.as_deref());
    let walls = Walls::new(args.global.no_os_sandbox, out);
    match &args.command {
        Command::Demo => run::demo::run(walls, out),
        Command::Run(run) => run::agent::run(run, &places()?, walls, out),
        Command::Chat(chat) => chat::run(chat, &places()?, walls, out),
        Command::Acp(acp) => acp::run(acp, &places()?, walls, out),
        Command::Serve(serve) => serve::run(serve, &places()?, walls, out),
        Command::Mcp(mcp) => mcp::run(mcp, &places()?, walls, out),
        Command::Keys(keys) => serve::keys::run(keys, &places()?, out),
        Command::Tenants(tenants) => serve::tenants::run(tenants, &places()?, out),
        Command::Sessions(sessions) => inspect::sessions::run(sessions, &places()?, out),
        Command::Backup(backup) => backup::run(backup, &places()?, out),
        Command::Restore(restore) => backup::restore::run(restore, &places()?, out),
        Command::Receipts(receipts) => inspect::receipts::run(receipts, &places()?, out),
        Command::Changes(args) => changes::look::run(args, &places()?, out),
        Command::Apply(args) => changes::apply::run(args, &places()?, out),
        Command::Discard(args) => changes::discard::run(args, &places()?, out),
        Command::Undo(args) => changes::undo::run(args, &places()?, out),
        Command::Replay(replay) => inspect::replay::run(replay, &places()?, walls, out),
        Command::Init(init) => {
            init::run(init, &places()?, args.global.workspace.is_some(), walls, out)
        }
        Command::Agents(agents) => catalogue::agents::run(agents, places()?, walls, out),
        Command::Teams(command) => catalogue::teams::run(command, places()?, walls, out),
        Command::Skills(skills) => catalogue::skills::run(skills, places()?, walls, out),
        Command::Drafts(drafts) => catalogue::drafts::run(drafts, &places()?, out),
        Command::Tools(command) => tools::run(command, &places, walls, out),
        Command::Grant(grant) => grant::run(grant, &places()?, out),
        Command::Revoke(revoke) => grant::revoke::run(revoke, &places()?, out),
        Command::Explain(explain) => catalogue::explain::run(explain, &places()?, walls, out),
        Command::Doctor(doctor) => doctor::run(doctor, &places, walls, out),
        Command::Prove(prove) => inspect::prove::run(prove, &places()?, out),
        Command::Limits { json } => catalogue::limits::run(*json, out),
        Command::Completions { shell } => manual::completions::run(*shell, out),
        Command::Man { dir } => manual::man::run(dir.as_deref(), walls, out),
    }
}
