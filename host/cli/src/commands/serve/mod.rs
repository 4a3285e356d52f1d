//! `belljar serve`: sessions for many people, over HTTP and WebSockets.

pub(crate) mod judged;
pub(crate) mod keys;
mod late;
pub(crate) mod limits;
pub(crate) mod opening;
mod own;
mod renewal;
mod rules;
pub(crate) mod running;
pub(crate) mod tenancy;
pub(crate) mod tenants;
mod trusted;
mod watched;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use belljar_definition::ServerSetting;
use belljar_os_sandbox::Raised;
use belljar_policy::Shown;
use belljar_server::{
    App, DEFAULT_ADDRESS_CONNECTIONS, DEFAULT_ADDRESS_FAILURES, DEFAULT_AUDIT_DAYS,
    DEFAULT_BYTES_IN_FLIGHT, DEFAULT_DRAIN, DEFAULT_ISSUER_CHECK, DEFAULT_KEY_CHECK, DEFAULT_RATE,
    DEFAULT_STRANGER_NOTES, DEFAULT_STREAM_LIFE, DEFAULT_TENANT_BYTES_IN_FLIGHT,
    DEFAULT_TENANT_CHECK, HiddenPlace, LINK_MINUTES, NameError, Names, ServerConfig,
    connections_within, has_keys, may_listen,
};
use belljar_session::Admission;
use belljar_store::{Store, TENANT};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::limits::count;
use self::opening::{Opener, Opening};
use self::own::Own;
use self::running::Running;
use self::tenancy::Tenancy;
use self::trusted::Trusted;
use self::watched::Watched;
use crate::args::server::{ServeArgs, USUAL_PORT};
use crate::setup::data::{Data, failed, now};
use crate::setup::descriptors;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::setup::log;
use crate::setup::memory;
use crate::setup::once::remove_left;
use crate::setup::ours;
use crate::setup::telemetry::{Collector, Telemetry};
use crate::setup::walls::{self, Through, Walls};
use crate::term::out::Out;
use crate::term::table;

/// Where to listen where nothing is said.
const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), USUAL_PORT);

/// Default number of simultaneous jars: some 300 KiB each during work, and a turn with three parallel
/// subagents reserves four.
const DEFAULT_JARS: u32 = 1_024;

/// Turns that wait for a place where nothing is said.
const DEFAULT_QUEUE: u32 = 1_024;

pub(crate) fn run(
    args: &ServeArgs,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    out.keep_log();
    // Before anything is opened or started.
    let connections = connections_within(descriptors::raise());
    // Before they are read, so that later changes are noticed.
    let mut watched = Watched::of(own::files(places));
    let settings = host::settings(places)?;
    watched.besides(own::besides(&settings, places));
    let data = Data::find(&args.data, &settings, places)?;
    data.create(places)?;
    ours::make_missing(&places.home);
    // Behind the wall nothing can be bound any more.
    let (listener, address) = bind(args, &settings.server)?;
    let names = names(args, &settings.server, address)?;
    let collector = Collector::find(&settings.server, env)?;
    let mut written = opening::written(&data);
    written.extend(args.apply.then(|| places.workspace.clone()));
    let raised = walls.up(places, &through(&data, written))?;
    let runtime = host::runtime()?;
    let telemetry = telemetry(collector.as_ref(), &runtime, out)?;
    let local = Assembly::of(settings.clone(), places, out);
    let local = local.keeping(data.root()).listening_on(address).host()?;
    for problem in local.tools.problems() {
        out.diagnostic(problem);
    }
    let (places, data, out_too) = (places.clone(), data, out.clone());
    let store_at = data.store();
    let running = Running::tell(&data, &places.workspace, walls::reach());
    let running = running
        .inspect_err(|error| {
            let why = "commands cannot be told of this server, so their hints leave it out";
            out.warning(format_args!("{why}: {error}"));
        })
        .ok();
    let own = Own::new(settings.clone(), local, watched, places, data, out_too);
    let served = runtime.block_on(async {
        store_at.parent().into_iter().for_each(remove_left);
        let store = Store::open(&store_at).await.map_err(failed)?;
        let admission = admission(&settings.server);
        let opener = Opener {
            own: Arc::new(own),
            reach: walls::reach().cloned(),
            running,
            late: Mutex::default(),
            store: store.clone(),
            out: out.clone(),
            admission: Arc::clone(&admission),
        };
        let meant = args.public || !all_names(args, &settings.server).is_empty();
        let listening = Listening { address, meant, names, connections };
        let app = app(opener, &settings.server, store.clone(), listening, admission).await;
        let served = match app {
            Ok(app) => serve(&app, listener, &raised, out).await,
            Err(failure) => Err(failure),
        };
        store.close().await;
        served
    });
    if let Some(telemetry) = telemetry {
        telemetry.stop();
    }
    runtime.shutdown_background();
    served
}

/// The gaps in the wall for a server: it writes its store, and `written`: tenants' files, and its own
/// workspace with `--apply`.
pub(crate) fn through(data: &Data, written: Vec<PathBuf>) -> Through {
    Through {
        read: data.of_tenants(),
        write: written.into_iter().chain([data.store_directory()]).collect(),
        required: true,
        settings_again: true,
        data: Some(data.root().to_path_buf()),
        ..Through::default()
    }
}

/// Starts the log, and the sending of traces if configured.
fn telemetry(
    collector: Option<&Collector>,
    runtime: &Runtime,
    out: &Out,
) -> Result<Option<Telemetry>, Failure> {
    let Some(collector) = collector else {
        log::start_server(out, None);
        return Ok(None);
    };
    let (telemetry, tracer) = Telemetry::start(collector, runtime.handle(), env)?;
    log::start_server(out, Some(tracer));
    out.note(format_args!("traces go to {}", collector.host()));
    Ok(Some(telemetry))
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Where a server listens, by which names, and for how many connections.
struct Listening {
    address: SocketAddr,
    /// The operator wants other machines to reach the server.
    meant: bool,
    names: Names,
    connections: u32,
}

/// The server, if it may listen there.
async fn app(
    opener: Opener,
    server: &ServerSetting,
    store: Store,
    listening: Listening,
    admission: Arc<Admission>,
) -> Result<App, Failure> {
    let Listening { address, meant, names, connections } = listening;
    refuse_command_hooks(&opener.tenancy(), &store).await?;
    let keys = has_keys(&store.registry()).await.map_err(failed)?;
    let known = keys || !server.issuers.is_empty();
    let open = may_listen(address, known).map_err(|error| {
        Failure::usage(error.to_string())
            .hint("make a key first: `belljar keys create --scope admin --name NAME`")
            .hint("or listen on this machine alone: `--listen 127.0.0.1:7411`")
    })?;
    if !open && !meant {
        return Err(not_meant(address));
    }
    if !open {
        opener.out.note(format_args!(
            "other machines reach {address}, without TLS: keys and answers pass in clear text unless \
             a proxy with TLS is in front"
        ));
    }
    if server.issuers.is_empty() {
        let needed = store.registry().keys_needed().await.map_err(failed)?;
        say_who_is_let_in(keys, needed, &opener.out);
    } else {
        // INV-377: nobody is admitted without a key even after the issuers are removed.
        store.registry().need_keys(now()).await.map_err(failed)?;
        let tenants = store.registry().tenants().await.map_err(failed)?;
        rules::say_idle(&server.issuers, &tenants, &opener.out);
    }
    for issuer in &server.issuers {
        opener.out.note(format_args!("tokens of {} are taken", Shown::clipped(&issuer.url, 200)));
    }
    let hidden = hidden(&opener);
    let config = ServerConfig {
        hidden,
        names,
        open,
        requests_per_second: server.requests_per_second.unwrap_or(DEFAULT_RATE),
        drain: DEFAULT_DRAIN,
        connections,
        bytes_in_flight: DEFAULT_BYTES_IN_FLIGHT,
        tenant_bytes_in_flight: DEFAULT_TENANT_BYTES_IN_FLIGHT,
        address_connections: server
            .connections_per_address
            .unwrap_or(DEFAULT_ADDRESS_CONNECTIONS.min(connections / 4).max(1)),
        address_failures: server.failed_keys_per_minute.unwrap_or(DEFAULT_ADDRESS_FAILURES),
        key_check: DEFAULT_KEY_CHECK,
        issuer_check: DEFAULT_ISSUER_CHECK,
        stream_life: DEFAULT_STREAM_LIFE,
        tenant_check: DEFAULT_TENANT_CHECK,
        stranger_notes: DEFAULT_STRANGER_NOTES,
        audit_days: server.audit_days.unwrap_or(DEFAULT_AUDIT_DAYS),
        finish_left_turns: server.finish_left_turns,
    };
    let trusted = Arc::new(Trusted(Arc::clone(&opener.own)));
    let app = App::new(config, store, Arc::new(Opening::from(opener)), admission);
    app.trust(trusted);
    Ok(app)
}

/// An address that other machines reach has to be somebody's wish, not a habit of typing.
fn not_meant(address: SocketAddr) -> Failure {
    Failure::usage(format!(
        "other machines reach {address}, and what is said there is not encrypted"
    ))
    .hint("with a proxy that has TLS in front, say by which name: `--host-name NAME`")
    .hint("in a network that you trust as it is: `--public`")
    .hint("or listen on this machine alone: `--listen 127.0.0.1:7411`")
}

/// INV-153: a server with tenants does not start with hooks that it could not run for them.
async fn refuse_command_hooks(tenancy: &Tenancy, store: &Store) -> Result<(), Failure> {
    let hooks = tenancy.command_hooks();
    let Some(hook) = hooks.first() else { return Ok(()) };
    let mut tenants = store.registry().tenants().await.map_err(failed)?;
    tenants.retain(|tenant| tenant.name != TENANT && !tenant.disabled);
    let Some(tenant) = tenants.first() else { return Ok(()) };
    let names = match tenants.len() {
        1 => format!("tenant `{}`", tenant.name),
        many => format!("tenant `{}` and {} more", tenant.name, many - 1),
    };
    let more = match hooks.len() {
        1 => String::new(),
        many => format!(" ({} more hooks are commands too)", many - 1),
    };
    Err(Failure::usage(format!("{hook}, and there is {names}{more}"))
        .hint("make it a component, which sees each tenant's calls and nothing else: `component = 'FILE.wasm'`")
        .hint("or serve the operator alone: `belljar tenants disable NAME`"))
}

/// The warning about a server without a key: everybody is admitted, or nobody.
fn say_who_is_let_in(keys: bool, needed: bool, out: &Out) {
    match (keys, needed) {
        (true, _) => {}
        (false, false) => out.note("there are no keys: everybody on this machine is let in"),
        (false, true) => {
            out.note("there were keys or issuers once and none is left: nobody is let in");
            out.note("`belljar keys create --scope admin --name NAME` makes a key");
            out.note("`belljar keys open-to-this-machine` lets everybody on this machine in");
        }
    }
}

/// The places of this machine hidden from callers. Places below homes and workspaces of tenants are added
/// when a tenant is opened.
fn hidden(opener: &Opener) -> Vec<HiddenPlace> {
    let (places, data) = (opener.own.places(), opener.own.data());
    let mut hidden = vec![
        HiddenPlace::new(&places.workspace, "/workspace"),
        HiddenPlace::new(&places.home, ""),
        HiddenPlace::new(data.root(), "data"),
        HiddenPlace::new(&places.cache, "cache"),
    ];
    hidden.extend(std::env::current_exe().map(|path| HiddenPlace::new(path, "belljar")));
    hidden.extend(places.user_home.as_deref().map(|path| HiddenPlace::new(path, "~")));
    hidden
}

fn admission(server: &ServerSetting) -> Arc<Admission> {
    Admission::new(count(server.jars, DEFAULT_JARS), count(server.queue, DEFAULT_QUEUE))
}

async fn serve(
    app: &App,
    listener: TcpListener,
    raised: &Raised,
    out: &Out,
) -> Result<Exit, Failure> {
    let address = listener.local_addr().map_err(|error| cannot_listen("its address", &error))?;
    let stop = CancellationToken::new();
    host::stop_on_interrupt(&stop, out);
    let _reloading = reload_on_hangup(app)?;
    let listener = listener
        .set_nonblocking(true)
        .and_then(|()| tokio::net::TcpListener::from_std(listener))
        .map_err(|error| cannot_listen(&address.to_string(), &error))?;
    app.open_own().await;
    let recovered = app.recover().await.map_err(failed)?;
    if recovered > 0 {
        out.note(format_args!("resuming {}", table::some(recovered as u64, "interrupted turn")));
    }
    for (tenant, why) in app.check_tenants().await.map_err(failed)? {
        let why = why.to_string();
        out.alarm(format_args!("tenant `{tenant}` is not served: {}", Shown::multiline(&why)));
    }
    let (tenants, not_served) = app.tenants().await.map_err(failed)?;
    out.note(started(address, tenants, not_served, raised));
    // The only line of the result: the starter now knows the address, and that the server answers.
    out.line(format_args!("listening on http://{address}"));
    say_where_the_page_is(app, address, out).await?;
    let _memory = memory::give_back_regularly();
    app.serve(listener, stop).await;
    out.note("stopped");
    Ok(Exit::Completed)
}

/// INV-263: the address of the page, for a person at a terminal. If a key is needed, the address is a
/// one-time link, which no log ever holds.
async fn say_where_the_page_is(app: &App, address: SocketAddr, out: &Out) -> Result<(), Failure> {
    if out.keeps_log() {
        return Ok(());
    }
    let page = page_at(address);
    if !app.needs_keys().await.map_err(failed)? {
        out.note(format_args!("the page: {page}/"));
        return Ok(());
    }
    let token = app
        .offer_link()
        .map_err(|error| Failure::new(format!("the system gives no random bytes: {error}")))?;
    out.note(format_args!("the page, once and within {LINK_MINUTES} minutes without a key:"));
    out.note(format_args!("  {page}/login#once={token}"));
    Ok(())
}

/// Where a browser of this machine finds the page.
fn page_at(address: SocketAddr) -> String {
    match (address.ip().is_unspecified(), address.port()) {
        (true, port) => format!("http://localhost:{port}"),
        (false, _) => format!("http://{address}"),
    }
}

/// Reads all settings again at each SIGHUP, until this is dropped.
#[cfg(unix)]
fn reload_on_hangup(app: &App) -> Result<AbortOnDropHandle<()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangups = signal(SignalKind::hangup())
        .map_err(|error| Failure::new(format!("failed to wait for SIGHUP: {error}")))?;
    let app = app.clone();
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            tracing::info!("SIGHUP: all settings are read again");
            app.reload().await;
        }
    })))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
fn reload_on_hangup(_app: &App) -> Result<AbortOnDropHandle<()>, Failure> {
    Ok(AbortOnDropHandle::new(tokio::spawn(async {})))
}

/// The running server, in one line.
fn started(address: SocketAddr, tenants: usize, not_served: usize, raised: &Raised) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let plural = if tenants == 1 { "" } else { "s" };
    let without =
        if not_served == 0 { String::new() } else { format!(", {not_served} of them not served") };
    let sandbox = match raised.missing.as_slice() {
        [] => "stands".to_owned(),
        missing => missing.join("; "),
    };
    format!(
        "belljar {version} at http://{address}: {tenants} tenant{plural}{without}; the OS sandbox: {sandbox}"
    )
}

fn bind(args: &ServeArgs, server: &ServerSetting) -> Result<(TcpListener, SocketAddr), Failure> {
    let stated = server.listen.as_deref().and_then(|text| text.parse().ok());
    let wanted = args.listen.or(stated).unwrap_or(DEFAULT_LISTEN);
    let failed = |error: std::io::Error| cannot_listen(&wanted.to_string(), &error);
    let listener = TcpListener::bind(wanted).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn cannot_listen(address: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("failed to listen on {address}: {error}"))
        .hint("choose another address: `--listen 127.0.0.1:PORT`")
}

/// The names of the server, beside this machine's.
fn all_names<'a>(args: &'a ServeArgs, server: &'a ServerSetting) -> Vec<&'a String> {
    server.host_names.iter().chain(&args.host_name).collect()
}

/// The names of this machine, the address itself if specific, and the given names.
fn names(args: &ServeArgs, server: &ServerSetting, address: SocketAddr) -> Result<Names, Failure> {
    let refused = |error: NameError| Failure::usage(error.to_string());
    let mut names = Names::loopback(address.port());
    if !address.ip().is_unspecified() {
        names = names.host(&address.to_string()).map_err(refused)?;
    }
    for name in all_names(args, server) {
        names = names.host(name).map_err(refused)?;
    }
    for origin in server.origins.iter().chain(&args.origin) {
        names = names.origin(origin).map_err(refused)?;
    }
    Ok(names)
}
