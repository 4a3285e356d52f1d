//! A real `belljar serve` with two tenants, in a separate directory.
//!
//! `red` is the attacker's tenant, `blue` is its neighbour's. Both have a session, and agents whose model
//! answers from a transcript.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::client::{PATIENCE, ServerAnswer, ServerClient, get_request, new_request};
use super::witness::PathWitness;

/// The keys of a stage: their names in the attacks, their tenants and scopes.
const KEYS: [(&str, &str, &str); 7] = [
    ("operator", "local", "admin"),
    ("red-admin", "red", "admin"),
    ("red-member", "red", "member"),
    ("red-reader", "red", "read-only"),
    ("blue-admin", "blue", "admin"),
    ("blue-member", "blue", "member"),
    ("blue-reader", "blue", "read-only"),
];

/// The time within which a killed server must be gone.
const LAST_WAIT: Duration = Duration::from_secs(5);

const TRANSCRIPT: &str = include_str!("transcript.yaml");
const SETTINGS: &str = include_str!("tenant.toml");

/// The program and the cache with which servers are started.
#[derive(Debug, Clone)]
pub struct ServerSetup {
    /// The program `belljar`.
    pub program: PathBuf,
    /// The directory of compiled tools; `None` = a directory of the stage.
    pub cache_dir: Option<PathBuf>,
}

/// A running server, with what attacks need to use it.
pub(crate) struct ServerStage {
    setup: ServerSetup,
    dir: TempDir,
    root: PathBuf,
    server: Mutex<Option<Child>>,
    keys: BTreeMap<String, String>,
    sessions: BTreeMap<&'static str, String>,
    witness: Arc<PathWitness>,
    at: SocketAddr,
    /// The number of the present attack, from which its client address is made.
    from: AtomicU8,
    /// True if the present attack may change the data of the tenant `red`.
    red_changes: AtomicBool,
}

impl ServerStage {
    /// Starts a server with both tenants, their keys and their agents.
    pub(crate) async fn start(setup: &ServerSetup) -> Result<Self> {
        Self::start_with(setup, "").await
    }

    /// Makes the tenants and keys, starts the server with these lines of `[server]`, and runs a first turn in
    /// each tenant.
    async fn start_with(setup: &ServerSetup, server: &str) -> Result<Self> {
        let mut stage = Self::without_tenants(setup)?;
        let settings = stage.root.join("home/belljar.toml");
        let text = format!("{}\n[server]\n{server}\n", std::fs::read_to_string(&settings)?);
        std::fs::write(settings, text)?;
        for tenant in ["red", "blue"] {
            stage.run_belljar(&["tenants", "add", tenant]).await?;
        }
        for (name, tenant, scope) in KEYS {
            let key = stage.new_key(tenant, scope).await?;
            stage.keys.insert(name.to_owned(), key);
        }
        stage.start_server().await?;
        for tenant in ["red", "blue"] {
            stage.furnish_tenant(tenant).await?;
            let answer = stage.send_chat(&format!("{tenant}-member"), "teller", "tell").await?;
            stage.sessions.insert(tenant, answer.json_field("session")?);
        }
        Ok(stage)
    }

    /// Makes only the directories and settings: no tenant, no key, no server.
    pub(crate) fn without_tenants(setup: &ServerSetup) -> Result<Self> {
        let dir = TempDir::with_prefix("belljar-prove-")?;
        let root = dir.path().canonicalize()?;
        for name in ["home", "work"] {
            std::fs::create_dir(root.join(name))?;
        }
        let key_file = root.join("operators.key");
        let settings = format!(
            "[models.keyed]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:9/v1'\nmodel = 'm'\n\
             key_file = '{}'\n",
            key_file.display()
        );
        std::fs::write(root.join("home/belljar.toml"), settings)?;
        let witness = Arc::new(PathWitness::new(&[&root]));
        Ok(Self {
            setup: setup.clone(),
            dir,
            root,
            server: Mutex::default(),
            keys: BTreeMap::new(),
            sessions: BTreeMap::new(),
            witness,
            at: SocketAddr::from(([127, 0, 0, 1], 0)),
            from: AtomicU8::new(0),
            red_changes: AtomicBool::new(false),
        })
    }

    /// Starts another server, for an attack after which a shared server could not be used.
    pub(crate) async fn start_another(&self) -> Result<Self> {
        Self::start(&self.setup).await
    }

    /// Starts another server, with the given lines of `[server]` in its settings.
    pub(crate) async fn another_with(&self, server: &str) -> Result<Self> {
        Self::start_with(&self.setup, server).await
    }

    /// Makes another stage without tenants, keys and server.
    pub(crate) fn another_bare(&self) -> Result<Self> {
        Self::without_tenants(&self.setup)
    }

    /// Starts the server.
    pub(crate) async fn start_server(&mut self) -> Result<()> {
        let mut command = self.build_command(&["serve", "--listen", "127.0.0.1:0"]);
        let log = std::fs::File::create(self.root.join("log.txt"))?;
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn()?;
        let out = child.stdout.take().context("no standard output")?;
        let mut lines = BufReader::new(out).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line.context("the server did not start in time")??.unwrap_or_default();
        let Some(address) = line.strip_prefix("listening on http://") else {
            let log = std::fs::read_to_string(self.root.join("log.txt")).unwrap_or_default();
            bail!("the server did not start: {line} {log}");
        };
        self.at = address.parse()?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        Ok(())
    }

    /// Kills the server, as a power cut would.
    pub(crate) async fn kill_server(&self) -> Result<()> {
        let child = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        match child {
            Some(mut child) => Ok(child.kill().await?),
            None => Ok(()),
        }
    }

    /// Ends the server, and removes its directory.
    pub(crate) async fn close(self) -> Result<()> {
        self.kill_server().await?;
        let dir = self.dir.path().to_owned();
        drop(self);
        if dir.exists() { bail!("`{}` cannot be removed", dir.display()) } else { Ok(()) }
    }

    /// Runs a command of the operator; returns its output.
    pub(crate) async fn run_belljar(&self, args: &[&str]) -> Result<String> {
        let running = tokio::time::timeout(PATIENCE, self.build_command(args).output());
        let done = running.await.context("a command went on too long")??;
        if !done.status.success() {
            bail!("`belljar {}`: {}", args.join(" "), String::from_utf8_lossy(&done.stderr));
        }
        Ok(String::from_utf8(done.stdout)?.trim().to_owned())
    }

    /// A command of the program with the stage's home and nothing else of this process's environment.
    fn build_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.setup.program);
        let cache = self.setup.cache_dir.clone().unwrap_or_else(|| self.root.join("home/cache"));
        command
            .args(args)
            .current_dir(self.root.join("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.root)
            .env("BELLJAR_HOME", self.root.join("home"))
            .env("BELLJAR_CACHE", cache)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn new_key(&self, tenant: &str, scope: &str) -> Result<String> {
        let args = ["keys", "create", "--tenant", tenant, "--scope", scope, "--name", "prove"];
        self.run_belljar(&args).await
    }

    /// The directories of a tenant: the one that contains its `home`, and its workspace.
    pub(crate) async fn tenant_directories(&self, tenant: &str) -> Result<[PathBuf; 2]> {
        let listed: Value =
            serde_json::from_str(&self.run_belljar(&["tenants", "list", "--json"]).await?)?;
        let tenants = listed.as_array().context("no list of tenants")?;
        let own = tenants.iter().find(|one| one["name"] == tenant).context("no such tenant")?;
        let id = own["id"].as_str().or(own["name"].as_str()).context("a tenant without a name")?;
        Ok(["tenants", "workspaces"].map(|of| self.root.join("home/sessions").join(of).join(id)))
    }

    /// Writes a tenant's agents, the transcript of their model, its settings, and a note in its workspace.
    pub(crate) async fn furnish_tenant(&self, tenant: &str) -> Result<()> {
        let [own, workspace] = self.tenant_directories(tenant).await?;
        let (home, port) = (own.join("home"), self.at.port().to_string());
        std::fs::create_dir_all(home.join("agents"))?;
        for name in
            ["teller", "hanger", "asker", "fetcher", "reader", "lost", "keyed", "turner", "letters"]
        {
            let model = if name == "keyed" { "model: keyed\n" } else { "" };
            let text = format!(
                "---\nname: {name}\ndescription: Does {name}.\nvisibility: user-facing\n{model}---\nBe brief.\n"
            );
            std::fs::write(home.join("agents").join(format!("{name}.md")), text)?;
        }
        std::fs::write(home.join("agents/broken.md"), "---\nname: [\n---\nBroken.\n")?;
        let script = TRANSCRIPT.replace("PORT", &port).replace("TENANT", tenant);
        let script = script.replace("LETTERS", &"ab".repeat(15_000));
        std::fs::write(home.join("transcript.yaml"), script)?;
        let settings = SETTINGS
            .replace("LOST", &workspace.join("lost").display().to_string())
            .replace("KEY", &home.join("model.key").display().to_string());
        std::fs::write(home.join("belljar.toml"), settings)?;
        std::fs::write(workspace.join("note.txt"), format!("{tenant}'s own words\n"))?;
        Ok(())
    }

    /// A client with one of the stage's keys; `""` = without a key.
    pub(crate) fn client_for(&self, name: &str) -> ServerClient {
        self.with_key(self.keys.get(name).map(String::as_str))
    }

    /// A client with this key, which calls from the present attack's address.
    pub(crate) fn with_key(&self, key: Option<&str>) -> ServerClient {
        let last = self.from.load(Ordering::Relaxed);
        // On Linux every address in 127.0.0.0/8 is this machine, so each attack has an address of its own.
        let own = cfg!(target_os = "linux") && last > 0;
        ServerClient {
            at: self.at,
            from: own.then(|| IpAddr::from([127, 0, 1, last])),
            key: key.map(str::to_owned),
            witness: Arc::clone(&self.witness),
        }
    }

    pub(crate) fn api_key(&self, name: &str) -> Result<&str> {
        self.keys.get(name).map(String::as_str).with_context(|| format!("no key `{name}`"))
    }

    pub(crate) fn session_id(&self, tenant: &str) -> Result<&str> {
        self.sessions.get(tenant).map(String::as_str).context("no session")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.at
    }

    /// Sends a message to an agent, and waits for the answer.
    pub(crate) async fn send_chat(
        &self,
        caller: &str,
        agent: &str,
        text: &str,
    ) -> Result<ServerAnswer> {
        let body = json!({ "agent": agent, "text": text, "wait": true });
        self.client_for(caller).send(&new_request("POST", "/v1/chat").with_json(&body)).await
    }

    /// States that the present attack may change the data of the tenant `red`.
    pub(crate) fn red_may_change(&self) {
        self.red_changes.store(true, Ordering::Relaxed);
    }

    /// Prepares for the attack with the given number: sets the address that it calls from.
    pub(crate) fn set_client_address(&self, number: usize) {
        let last = u8::try_from(number % 250).unwrap_or_default().saturating_add(2);
        self.from.store(last, Ordering::Relaxed);
        self.red_changes.store(false, Ordering::Relaxed);
        let _ = self.witness.take_finding();
    }

    pub(crate) fn may_red_change(&self) -> bool {
        self.red_changes.load(Ordering::Relaxed)
    }

    pub(crate) fn take_leak(&self) -> Option<String> {
        self.witness.take_finding()
    }

    /// The server's resident bytes; `None` if the system does not report them.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        crate::memory::process_resident_bytes(server.as_ref()?.id()?)
    }

    /// All data of a tenant, as its admin reads it, to compare before and after an attack. Counts of refused
    /// strangers are left out.
    pub(crate) async fn tenant_state(&self, tenant: &str) -> Result<Vec<String>> {
        let caller = ServerClient { from: None, ..self.client_for(&format!("{tenant}-admin")) };
        let session = self.session_id(tenant)?;
        let mut state = Vec::new();
        for path in [
            "/v1/sessions".to_owned(),
            format!("/v1/sessions/{session}/messages?full=true"),
            format!("/v1/sessions/{session}/receipts"),
            format!("/v1/sessions/{session}/events?follow=false"),
            "/v1/questions".to_owned(),
            "/v1/running".to_owned(),
            "/v1/agents".to_owned(),
            "/v1/grants?agent=teller".to_owned(),
        ] {
            let answer = caller.send(&get_request(&path)).await?;
            state.push(format!("{path}: {} {}", answer.status, answer.body));
        }
        state.push(self.audit_changes(&caller).await?);
        Ok(state)
    }

    /// The changes in a tenant's audit log. Refusals are left out, because attacks cause them.
    async fn audit_changes(&self, admin: &ServerClient) -> Result<String> {
        let log = admin.send(&get_request("/v1/audit?limit=200")).await?.json_body()?;
        let entries = log["entries"].as_array().context("no audit log")?;
        let own = |entry: &&Value| {
            let refused = entry["action"] == "strangers" || entry["action"] == "refused";
            // The stage itself makes changes as the operator, which are no effect of an attack.
            !refused && entry["actor"] != "local"
        };
        Ok(entries.iter().filter(own).map(|entry| format!("{entry}\n")).collect())
    }
}

/// Ends the started processes before their files are removed.
impl Drop for ServerStage {
    fn drop(&mut self) {
        let child = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut child) = child else { return };
        let _ = child.start_kill();
        let begun = Instant::now();
        while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < LAST_WAIT {
            std::thread::yield_now();
        }
    }
}
