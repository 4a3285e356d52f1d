//! The commands, one file each.

mod agents;
mod agents_check;
mod chat;
mod completions;
mod demo;
mod doctor;
mod drafts;
mod drafts_move;
mod explain;
mod grant;
mod init;
mod keys;
mod libraries;
mod limits;
mod man;
mod prove;
#[cfg(target_os = "linux")]
mod prove_wall;
mod receipts;
mod run;
mod saving;
mod serve;
mod serve_tenants;
mod sessions;
mod sessions_export;
mod skills;
mod teams;
mod teams_run;
mod tenants;
mod tools;
mod tools_aliases;
mod tools_call;
mod tools_inspect;
mod tools_make;

#[cfg(target_os = "linux")]
pub(crate) use self::prove_wall::attack as attack_the_wall;
use crate::args::{Args, Command};
use crate::exit::{Exit, Failure};
use crate::home::Places;
use crate::out::Out;
use crate::walls::Walls;

/// Runs the command of this command line. Those that run a tool, be it only to ask what it
/// offers, do so behind the second wall. `grant` and `drafts` ask too, in a store without any
/// right, and stay outside: they write the operator's files.
pub(crate) fn run(args: &Args, out: &Out) -> Result<Exit, Failure> {
    let places = || Places::find(args.global.workspace.as_deref());
    let walls = Walls::new(args.global.no_os_sandbox, out);
    match &args.command {
        Command::Demo => demo::run(walls, out),
        Command::Run(run) => run::run(run, &places()?, walls, out),
        Command::Chat(chat) => chat::run(chat, &places()?, walls, out),
        Command::Serve(serve) => serve::run(serve, &places()?, walls, out),
        Command::Keys(keys) => keys::run(keys, &places()?, out),
        Command::Tenants(tenants) => tenants::run(tenants, &places()?, out),
        Command::Sessions(sessions) => sessions::run(sessions, &places()?, out),
        Command::Receipts(receipts) => receipts::run(receipts, &places()?, out),
        Command::Init(init) => init::run(init, &places()?, args.global.workspace.is_some(), out),
        Command::Agents(command) => agents::run(command, places()?, walls, out),
        Command::Teams(command) => teams::run(command, places()?, walls, out),
        Command::Skills(command) => skills::run(command, places()?, walls, out),
        Command::Drafts(command) => drafts::run(command, &places()?, out),
        Command::Tools(command) => tools::run(command, &places, walls, out),
        Command::Grant(grant) => grant::run(grant, &places()?, out),
        Command::Explain(explain) => explain::run(explain, &walls.around(places()?)?, out),
        Command::Doctor(doctor) => doctor::run(doctor, &places, walls, out),
        Command::Prove(prove) => prove::run(prove, &places()?, out),
        Command::Limits { json } => limits::run(*json, out),
        Command::Completions { shell } => completions::run(*shell, out),
        Command::Man { dir } => man::run(dir.as_deref(), out),
    }
}
