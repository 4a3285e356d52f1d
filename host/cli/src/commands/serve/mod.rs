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
use belljar_os_sandbox::WallStatus;
use belljar_policy::ShownText;
use belljar_server::{
    App, DEFAULT_ADDRESS_CONNECTIONS, DEFAULT_ADDRESS_FAILURES, DEFAULT_AUDIT_DAYS,
    DEFAULT_BYTES_IN_FLIGHT, DEFAULT_DRAIN, DEFAULT_ISSUER_CHECK, DEFAULT_KEY_CHECK, DEFAULT_RATE,
    DEFAULT_STRANGER_NOTES, DEFAULT_STREAM_LIFE, DEFAULT_TENANT_BYTES_IN_FLIGHT,
    DEFAULT_TENANT_CHECK, HiddenPlace, LINK_MINUTES, NameError, ServerConfig, ServerNames,
    connections_within, has_keys, may_listen,
};
use belljar_session::Admission;
use belljar_store::{Store, TENANT};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::limits::count_or_default;
use self::opening::{DiskTenantOpener, TenantOpeningContext};
use self::own::OwnSettings;
use self::running::RunningServer;
use self::tenancy::TenantSettings;
use self::trusted::TrustedIssuers;
use self::watched::WatchedFiles;
use crate::args::server::{ServeArgs, USUAL_PORT};
use crate::setup::data::{DataRoot, now_millis, store_failure};
use crate::setup::descriptors;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host::{self, HostAssembly};
use crate::setup::log;
use crate::setup::memory;
use crate::setup::once::remove_left;
use crate::setup::ours;
use crate::setup::telemetry::{SpanCollector, Telemetry};
use crate::setup::walls::{self, WallGaps, WallRaiser};
use crate::term::out::TerminalOutput;
use crate::term::table;

/// The address to listen on, unless the command line or the settings name one: this machine only.
const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), USUAL_PORT);

/// The default number of simultaneous jars. A working jar takes some 300 KiB, and a turn with three parallel
/// subagents reserves four.
const DEFAULT_JARS: u32 = 1_024;

/// The default number of turns that wait for jars; a further turn is refused.
const DEFAULT_QUEUE: u32 = 1_024;

/// Runs the server. Steps in a fixed order: reads the settings, makes the data root, binds the listening
/// address, raises the OS sandbox, starts the runtime and the log, opens the store and the tenants, serves
/// until a signal.
pub(crate) fn run(
    args: &ServeArgs,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    out.keep_log();
    // Raised first, before anything is opened or a process started.
    let connections = connections_within(descriptors::raise_limit());
    // The files are watched before they are read, so that a later change is noticed.
    let mut watched = WatchedFiles::from_files(own::settings_files(places));
    let settings = host::read_settings(places)?;
    watched.watch_further(own::further_files(&settings, places));
    let data = DataRoot::find_root(&args.data, &settings, places)?;
    data.create_root(places)?;
    ours::make_missing(&places.home);
    // Behind the OS sandbox, no address can be bound.
    let (listener, address) = bind_listener(args, &settings.server)?;
    let names = server_names(args, &settings.server, address)?;
    let collector = SpanCollector::find_configured(&settings.server, env_variable)?;
    let mut written = opening::written_places(&data);
    written.extend(args.apply.then(|| places.workspace.clone()));
    let raised = walls.raise_for(places, &wall_gaps(&data, written))?;
    let runtime = host::make_runtime()?;
    let telemetry = start_telemetry(collector.as_ref(), &runtime, out)?;
    let local = HostAssembly::from_settings(settings.clone(), places, out);
    let local = local.with_closed_directory(data.root_path()).listening_on(address).build_host()?;
    for problem in local.tools.problems() {
        out.print_diagnostic(problem);
    }
    let (places, data, out_too) = (places.clone(), data, out.clone());
    let store_at = data.store_path();
    let running = RunningServer::write_facts(&data, &places.workspace, walls::wall_reach());
    let running = running
        .inspect_err(|error| {
            let why = "commands cannot be told of this server, so their hints leave it out";
            out.print_warning(format_args!("{why}: {error}"));
        })
        .ok();
    let own = OwnSettings::new(settings.clone(), local, watched, places, data, out_too);
    let served = runtime.block_on(async {
        store_at.parent().into_iter().for_each(remove_left);
        let store = Store::open(&store_at).await.map_err(store_failure)?;
        let admission = make_admission(&settings.server);
        let opener = TenantOpeningContext {
            own: Arc::new(own),
            reach: walls::wall_reach().cloned(),
            running,
            late: Mutex::default(),
            store: store.clone(),
            out: out.clone(),
            admission: Arc::clone(&admission),
        };
        let meant = args.public || !all_names(args, &settings.server).is_empty();
        let listening = ListenerNames { address, meant, names, connections };
        let app = make_app(opener, &settings.server, store.clone(), listening, admission).await;
        let served = match app {
            Ok(app) => serve_listener(&app, listener, &raised, out).await,
            Err(failure) => Err(failure),
        };
        store.close().await;
        served
    });
    if let Some(telemetry) = telemetry {
        telemetry.stop_sending();
    }
    runtime.shutdown_background();
    served
}

/// The gaps in the OS sandbox for a server, which writes its store and `written`: the files of tenants, and
/// with `--apply` its own workspace.
pub(crate) fn wall_gaps(data: &DataRoot, written: Vec<PathBuf>) -> WallGaps {
    WallGaps {
        read: data.tenant_read_paths(),
        write: written.into_iter().chain([data.store_directory()]).collect(),
        required: true,
        settings_again: true,
        data: Some(data.root_path().to_path_buf()),
        ..WallGaps::default()
    }
}

/// Starts the log. If a collector is configured, also starts sending traces.
fn start_telemetry(
    collector: Option<&SpanCollector>,
    runtime: &Runtime,
    out: &TerminalOutput,
) -> Result<Option<Telemetry>, Failure> {
    let Some(collector) = collector else {
        log::start_server(out, None);
        return Ok(None);
    };
    let (telemetry, tracer) = Telemetry::start_sending(collector, runtime.handle(), env_variable)?;
    log::start_server(out, Some(tracer));
    out.note(format_args!("traces go to {}", collector.display_host()));
    Ok(Some(telemetry))
}

fn env_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The listening address, the names in URLs of the server, and the most connections.
struct ListenerNames {
    address: SocketAddr,
    /// True if the operator has asked for an address that other machines can reach.
    meant: bool,
    names: ServerNames,
    connections: u32,
}

/// Makes the server; an error if it may not listen on this address.
async fn make_app(
    opener: TenantOpeningContext,
    server: &ServerSetting,
    store: Store,
    listening: ListenerNames,
    admission: Arc<Admission>,
) -> Result<App, Failure> {
    let ListenerNames { address, meant, names, connections } = listening;
    refuse_command_hooks(&opener.current_tenancy(), &store).await?;
    let keys = has_keys(&store.tenant_registry()).await.map_err(store_failure)?;
    let known = keys || !server.issuers.is_empty();
    let open = may_listen(address, known).map_err(|error| {
        Failure::usage(error.to_string())
            .with_hint("make a key first: `belljar keys create --scope admin --name NAME`")
            .with_hint("or listen on this machine alone: `--listen 127.0.0.1:7411`")
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
        let needed = store.tenant_registry().keys_needed().await.map_err(store_failure)?;
        say_who_is_let_in(keys, needed, &opener.out);
    } else {
        // INV-377: with issuers configured, callers need a key or token; this is still so after the issuers
        // are removed.
        store.tenant_registry().need_keys(now_millis()).await.map_err(store_failure)?;
        let tenants = store.tenant_registry().list_tenants().await.map_err(store_failure)?;
        rules::say_idle(&server.issuers, &tenants, &opener.out);
    }
    for issuer in &server.issuers {
        opener
            .out
            .note(format_args!("tokens of {} are taken", ShownText::clip_line(&issuer.url, 200)));
    }
    let hidden = hidden_places(&opener);
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
    let trusted = Arc::new(TrustedIssuers(Arc::clone(&opener.own)));
    let app = App::new(config, store, Arc::new(DiskTenantOpener::from(opener)), admission);
    app.trust_issuers(trusted);
    Ok(app)
}

/// The failure for an address that other machines can reach without the operator having asked for it.
fn not_meant(address: SocketAddr) -> Failure {
    Failure::usage(format!(
        "other machines reach {address}, and what is said there is not encrypted"
    ))
    .with_hint("with a proxy that has TLS in front, say by which name: `--host-name NAME`")
    .with_hint("in a network that you trust as it is: `--public`")
    .with_hint("or listen on this machine alone: `--listen 127.0.0.1:7411`")
}

/// INV-153: an error if there are tenants and a hook that is a command, because such a hook cannot be run for
/// tenants.
async fn refuse_command_hooks(tenancy: &TenantSettings, store: &Store) -> Result<(), Failure> {
    let hooks = tenancy.command_hooks();
    let Some(hook) = hooks.first() else { return Ok(()) };
    let mut tenants = store.tenant_registry().list_tenants().await.map_err(store_failure)?;
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
        .with_hint("make it a component, which sees each tenant's calls and nothing else: `component = 'FILE.wasm'`")
        .with_hint("or serve the operator alone: `belljar tenants disable NAME`"))
}

/// Warns that a server without a key admits everybody on this machine, or nobody.
fn say_who_is_let_in(keys: bool, needed: bool, out: &TerminalOutput) {
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

/// The paths of this machine that callers must not see in texts. The paths of tenants' homes and workspaces
/// are added when a tenant is opened.
fn hidden_places(opener: &TenantOpeningContext) -> Vec<HiddenPlace> {
    let (places, data) = (opener.own.operator_places(), opener.own.data_root());
    let mut hidden = vec![
        HiddenPlace::new(&places.workspace, "/workspace"),
        HiddenPlace::new(&places.home, ""),
        HiddenPlace::new(data.root_path(), "data"),
        HiddenPlace::new(&places.cache, "cache"),
    ];
    hidden.extend(std::env::current_exe().map(|path| HiddenPlace::new(path, "belljar")));
    hidden.extend(places.user_home.as_deref().map(|path| HiddenPlace::new(path, "~")));
    hidden
}

/// Makes the admission of turns, with the configured numbers of jars and of waiting turns.
fn make_admission(server: &ServerSetting) -> Arc<Admission> {
    Admission::new(
        count_or_default(server.jars, DEFAULT_JARS),
        count_or_default(server.queue, DEFAULT_QUEUE),
    )
}

/// Serves callers until a signal. Resumes interrupted turns first, and warns about tenants that cannot be
/// served.
async fn serve_listener(
    app: &App,
    listener: TcpListener,
    raised: &WallStatus,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let address = listener.local_addr().map_err(|error| cannot_listen("its address", &error))?;
    let stop = CancellationToken::new();
    host::stop_on_interrupt(&stop, out);
    let _reloading = reload_on_hangup(app)?;
    let listener = listener
        .set_nonblocking(true)
        .and_then(|()| tokio::net::TcpListener::from_std(listener))
        .map_err(|error| cannot_listen(&address.to_string(), &error))?;
    app.open_own().await;
    let recovered = app.recover_turns().await.map_err(store_failure)?;
    if recovered > 0 {
        out.note(format_args!(
            "resuming {}",
            table::format_quantity(recovered as u64, "interrupted turn")
        ));
    }
    for (tenant, why) in app.check_tenants().await.map_err(store_failure)? {
        let why = why.to_string();
        out.print_alarm(format_args!(
            "tenant `{tenant}` is not served: {}",
            ShownText::multiline(&why)
        ));
    }
    let (tenants, not_served) = app.count_tenants().await.map_err(store_failure)?;
    out.note(started_line(address, tenants, not_served, raised));
    // The only line on stdout: a program that started the server learns the address, and that the server
    // answers.
    out.print_line(format_args!("listening on http://{address}"));
    say_where_the_page_is(app, address, out).await?;
    let _memory = memory::give_back_regularly();
    app.serve_connections(listener, stop).await;
    out.note("stopped");
    Ok(CommandExit::Completed)
}

/// INV-263: prints the address of the web page, for a person at a terminal. If a key is needed, this is a
/// one-time link, which is never written to a log.
async fn say_where_the_page_is(
    app: &App,
    address: SocketAddr,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    if out.keeps_log() {
        return Ok(());
    }
    let page = page_at(address);
    if !app.needs_keys().await.map_err(store_failure)? {
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

/// The URL by which a browser on this machine finds the page.
fn page_at(address: SocketAddr) -> String {
    match (address.ip().is_unspecified(), address.port()) {
        (true, port) => format!("http://localhost:{port}"),
        (false, _) => format!("http://{address}"),
    }
}

/// Reads all settings again at each SIGHUP, until the returned handle is dropped.
#[cfg(unix)]
fn reload_on_hangup(app: &App) -> Result<AbortOnDropHandle<()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangups = signal(SignalKind::hangup())
        .map_err(|error| Failure::new(format!("failed to wait for SIGHUP: {error}")))?;
    let app = app.clone();
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            tracing::info!("SIGHUP: all settings are read again");
            app.reload_settings().await;
        }
    })))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
fn reload_on_hangup(_app: &App) -> Result<AbortOnDropHandle<()>, Failure> {
    Ok(AbortOnDropHandle::new(tokio::spawn(async {})))
}

/// The note that the server runs, in one line: address, tenants and OS sandbox.
fn started_line(
    address: SocketAddr,
    tenants: usize,
    not_served: usize,
    raised: &WallStatus,
) -> String {
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

/// Binds the listening address: of the command line, of the settings, or the default. Returns the address
/// with its real port.
fn bind_listener(
    args: &ServeArgs,
    server: &ServerSetting,
) -> Result<(TcpListener, SocketAddr), Failure> {
    let stated = server.listen.as_deref().and_then(|text| text.parse().ok());
    let wanted = args.listen.or(stated).unwrap_or(DEFAULT_LISTEN);
    let failed = |error: std::io::Error| cannot_listen(&wanted.to_string(), &error);
    let listener = TcpListener::bind(wanted).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn cannot_listen(address: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("failed to listen on {address}: {error}"))
        .with_hint("choose another address: `--listen 127.0.0.1:PORT`")
}

/// The names of the server from the command line and the settings, beside this machine's own.
fn all_names<'a>(args: &'a ServeArgs, server: &'a ServerSetting) -> Vec<&'a String> {
    server.host_names.iter().chain(&args.host_name).collect()
}

/// The names that a request to the server may have: this machine's, the listening address if it is a single
/// one, and the given names.
fn server_names(
    args: &ServeArgs,
    server: &ServerSetting,
    address: SocketAddr,
) -> Result<ServerNames, Failure> {
    let refused = |error: NameError| Failure::usage(error.to_string());
    let mut names = ServerNames::loopback(address.port());
    if !address.ip().is_unspecified() {
        names = names.with_host(&address.to_string()).map_err(refused)?;
    }
    for name in all_names(args, server) {
        names = names.with_host(name).map_err(refused)?;
    }
    for origin in server.origins.iter().chain(&args.origin) {
        names = names.with_origin(origin).map_err(refused)?;
    }
    Ok(names)
}
