//! A server with three tenants: `local`, `blue` and `red`, each with a session and an agent of its
//! own, and a key for each kind of caller.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use belljar_kit::world;
use belljar_server::{
    App, DEFAULT_ADDRESS_CONNECTIONS, DEFAULT_AUDIT_DAYS, DEFAULT_DRAIN, DEFAULT_RATE,
    DEFAULT_STREAM_LIFE, DEFAULT_TENANT_BYTES_IN_FLIGHT, HiddenPlace, IssuerSource, NewSecret,
    OpenError, ServerConfig, ServerNames, TenantOpener,
};
use belljar_session::{Admission, Service, ServiceLimits};
use belljar_store::{
    EventBlock, KeyScope, MessageStatus, NewAttachment, NewKey, NewMessage, Role, SessionKind,
    Store, StoreError, StoreWrite, StoredAgent, StoredMessage, StoredSession, Tenant,
};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::client::{Call, call};

/// Tenants with sessions.
pub(crate) const TENANTS: [&str; 3] = ["local", "blue", "red"];

/// An agent that says one thing.
pub(crate) const TRANSCRIPT: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - say: Once upon a time.
      - say: The end.
";

/// The text of an agent.
pub(crate) fn agent(name: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Tells.\ntools: []\nvisibility: user-facing\n---\nTell.\n"
    )
}

/// How a server is made.
pub(crate) struct Plan<'a> {
    pub(crate) transcript: &'a str,
    /// The `belljar.toml` of each tenant.
    pub(crate) settings: &'a str,
    pub(crate) rate: u32,
    /// Whether there are keys; without, callers from this machine are let in.
    pub(crate) keys: bool,
    /// Connections of one address.
    pub(crate) connections: u32,
    /// Keys that one address may try in vain, a minute.
    pub(crate) failures: u32,
    /// Bytes in flight of one tenant.
    pub(crate) tenant_bytes: u64,
    /// Bytes that one tenant may store.
    pub(crate) storage: Option<u64>,
    /// Tokens that each tenant may use in a day.
    pub(crate) tokens: Option<u64>,
    /// Origins whose pages may call.
    pub(crate) origins: &'a [&'a str],
    /// How often it is looked for deleted tenants.
    pub(crate) tenant_check: Duration,
    /// How often it is noted what strangers did.
    pub(crate) stranger_notes: Duration,
    /// How long turns get when the server stops.
    pub(crate) drain: Duration,
    /// The issuers whose tokens are taken.
    pub(crate) issuers: Option<Arc<dyn IssuerSource>>,
    /// How long a look at their settings counts.
    pub(crate) issuer_check: Duration,
    /// How long streams may be open.
    pub(crate) stream_life: Duration,
    /// Whether a turn whose caller is gone goes on.
    pub(crate) finish_left_turns: bool,
}

impl Default for Plan<'_> {
    fn default() -> Self {
        Self {
            transcript: TRANSCRIPT,
            settings: "",
            rate: DEFAULT_RATE,
            keys: true,
            connections: DEFAULT_ADDRESS_CONNECTIONS,
            failures: 100_000,
            tenant_bytes: DEFAULT_TENANT_BYTES_IN_FLIGHT,
            storage: None,
            tokens: None,
            origins: &[],
            tenant_check: Duration::from_millis(20),
            stranger_notes: Duration::from_millis(20),
            drain: DEFAULT_DRAIN,
            issuers: None,
            issuer_check: Duration::ZERO,
            stream_life: DEFAULT_STREAM_LIFE,
            finish_left_turns: false,
        }
    }
}

pub(crate) struct World {
    pub(crate) app: App,
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
    pub(crate) address: SocketAddr,
    pub(crate) keys: BTreeMap<String, String>,
    pub(crate) stop: CancellationToken,
    pub(crate) served: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

/// All that a tenant has, to be compared with later.
pub(crate) type State = (Vec<StoredSession>, Vec<StoredMessage>, Vec<StoredAgent>, i64);

struct Opener {
    dir: std::path::PathBuf,
    store: Store,
    transcript: String,
    settings: String,
    admission: Arc<Admission>,
    storage: Option<u64>,
    tokens: Option<u64>,
}

#[async_trait]
impl TenantOpener for Opener {
    async fn open_tenant(&self, tenant: &Tenant) -> Result<Service, OpenError> {
        let (home, workspace) = (
            self.dir.join(&tenant.name).join("home"),
            self.dir.join(&tenant.name).join("workspace"),
        );
        let (transcript, settings) = (&*self.transcript, &*self.settings);
        let plan = world::Plan { transcript, settings, ..world::Plan::default() };
        let (host, _) = world::host(&home, &workspace, plan);
        let limits = ServiceLimits {
            concurrent_turns: 8,
            queued_turns: 8,
            tokens_per_day: self.tokens,
            fuel_per_day: None,
            storage_bytes: self.storage,
        };
        let store = self.store.for_tenant_name(&tenant.name);
        Ok(Service::new(host, store, workspace, Arc::clone(&self.admission), limits))
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Plan::default()).await
    }

    pub(crate) async fn with(plan: Plan<'_>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let store = Store::open(&root.join("belljar.db")).await.unwrap();
        for tenant in TENANTS {
            let home = root.join(tenant).join("home/agents");
            std::fs::create_dir_all(&home).unwrap();
            std::fs::create_dir_all(root.join(tenant).join("workspace")).unwrap();
            std::fs::write(home.join("teller.md"), agent("teller")).unwrap();
        }
        for tenant in ["blue", "red", "closed"] {
            store.tenant_registry().create_tenant(tenant, 1).await.unwrap();
        }
        let mut keys = BTreeMap::new();
        if plan.keys {
            keys = make_keys(&store).await;
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let admission = Admission::new(8, 8);
        let opener = Opener {
            dir: root,
            store: store.clone(),
            transcript: plan.transcript.to_owned(),
            settings: plan.settings.to_owned(),
            admission: Arc::clone(&admission),
            storage: plan.storage,
            tokens: plan.tokens,
        };
        let names = ServerNames::loopback(address.port()).with_host("jar.example.org").unwrap();
        let add = |names: ServerNames, origin: &&str| names.with_origin(origin).unwrap();
        let names = plan.origins.iter().fold(names, add);
        let config = ServerConfig {
            names,
            open: true,
            requests_per_second: plan.rate,
            drain: plan.drain,
            connections: 1_000,
            bytes_in_flight: plan.tenant_bytes.saturating_mul(4),
            tenant_bytes_in_flight: plan.tenant_bytes,
            address_connections: plan.connections,
            address_failures: plan.failures,
            key_check: Duration::from_millis(20),
            // Each test says what it wants to be seen at once.
            issuer_check: plan.issuer_check,
            stream_life: plan.stream_life,
            tenant_check: plan.tenant_check,
            stranger_notes: plan.stranger_notes,
            hidden: vec![HiddenPlace::new(dir.path(), "data")],
            audit_days: DEFAULT_AUDIT_DAYS,
            finish_left_turns: plan.finish_left_turns,
        };
        let app = App::new(config, store.clone(), Arc::new(opener), admission);
        if let Some(issuers) = plan.issuers {
            app.trust_issuers(issuers);
        }
        let stop = CancellationToken::new();
        let (serving, serves) = (stop.clone(), app.clone());
        let served = tokio::spawn(async move { serves.serve_connections(listener, serving).await });
        let world = Self { app, dir, store, address, keys, stop, served: Mutex::new(Some(served)) };
        for tenant in TENANTS {
            world.seed(tenant).await;
        }
        world
    }

    pub(crate) fn call(&self, method: &str, path: &str) -> Call {
        call(self.address, method, path)
    }

    /// A call with the key of a kind of caller: `blue-admin`.
    pub(crate) fn call_as(&self, caller: &str, method: &str, path: &str) -> Call {
        self.call(method, path).key(&self.keys[caller])
    }

    /// The origin of its own pages.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Logs a browser in; gives the cookie that it sends from then on.
    pub(crate) async fn log_in(&self, with: &serde_json::Value) -> String {
        let call = self.call("POST", "/v1/login").header("origin", &self.origin()).json(with);
        let answer = call.send().await.is(204);
        let cookie = answer.headers["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// The same with the key of a kind of caller.
    pub(crate) async fn log_in_as(&self, caller: &str) -> String {
        self.log_in(&json!({ "key": self.keys[caller] })).await
    }

    /// A call of a page of this server, with the cookie of its login.
    pub(crate) fn call_with(&self, cookie: &str, method: &str, path: &str) -> Call {
        self.call(method, path).header("cookie", cookie).header("origin", &self.origin())
    }

    /// One more key.
    pub(crate) async fn new_key(&self, tenant: &str, scope: KeyScope) -> String {
        new_key(&self.store, tenant, scope).await
    }

    /// Gives a tenant what the tests look for, in place of whatever it has.
    pub(crate) async fn seed(&self, tenant: &str) {
        let store = self.store.for_tenant_name(tenant);
        store.delete_all_sessions().await.unwrap();
        for agent in store.list_agents().await.unwrap() {
            store.delete_agent(&agent.slug).await.unwrap();
        }
        store.save_agent("kept", &agent("kept"), 7, None).await.unwrap();
        let session = session(tenant);
        let message = |id: &str, role, text: &str| NewMessage {
            id: format!("{tenant}-{id}"),
            role,
            status: MessageStatus::Completed,
            content: json!({ "text": text, "messages": [] }),
            metadata: json!({ "entrance": entrance() }),
            created: 10,
        };
        let anchor = format!("{tenant}-answer");
        let file = NewAttachment {
            id: attachment(tenant),
            call_id: None,
            name: "page.html".to_owned(),
            media_type: "text/html".to_owned(),
            data: b"<script>alert(1)</script>".to_vec(),
            created: 10,
        };
        let event = |id: i64| {
            json!({ "id": id, "type": "text_delta", "text": format!("word {id}") }).to_string()
        };
        let new = StoredSession {
            id: session.clone(),
            title: "a tale".to_owned(),
            agent: "home/teller".to_owned(),
            workspace: "/somewhere".to_owned(),
            model: String::new(),
            kind: SessionKind::Api,
            created: 10,
            updated: 10,
        };
        let messages =
            vec![message("ask", Role::User, "tell"), message("answer", Role::Assistant, "Once.")];
        let writes = vec![
            StoreWrite::CreateSession(new),
            StoreWrite::AppendMessages { session: session.clone(), messages },
            StoreWrite::Events {
                session: session.clone(),
                message: anchor.clone(),
                block: EventBlock { first_seq: 1, events: (1..=5).map(event).collect() },
            },
            StoreWrite::Attachments { session, message: anchor, attachments: vec![file] },
        ];
        store.enqueue_writes(writes).await.unwrap();
    }

    /// The stored rows of a tenant. They are read anew when one of its sessions goes away
    /// meanwhile.
    pub(crate) async fn state(&self, tenant: &str) -> State {
        let store = self.store.for_tenant_name(tenant);
        loop {
            match read_state(&store).await {
                Ok(state) => return state,
                Err(StoreError::NotFound { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

async fn read_state(store: &Store) -> Result<State, StoreError> {
    let sessions = store.latest_sessions(100).await?;
    let mut messages = Vec::new();
    let mut rest = 0;
    for session in &sessions {
        messages.extend(store.list_messages(&session.id).await?);
        rest += store.last_event(&session.id).await?;
        rest += i64::try_from(store.latest_attachments(&session.id).await?.len()).unwrap();
    }
    Ok((sessions, messages, store.list_agents().await?, rest))
}

/// The session of a tenant.
pub(crate) fn session(tenant: &str) -> String {
    format!("20261122T000000000Z-{tenant}")
}

/// The note that the wire of responses leaves at a turn.
fn entrance() -> serde_json::Value {
    json!({
        "wire": "responses", "model": "teller", "previous": null, "instructions": null,
        "input": [], "tools": [], "tool_choice": "auto", "parallel": true,
        "format": { "type": "text" }, "temperature": null, "effort": null,
        "max_output_tokens": null, "store": true, "background": false, "metadata": {},
        "others": {},
    })
}

/// The response of a tenant.
pub(crate) fn response(tenant: &str) -> String {
    format!("resp_{tenant}-answer")
}

/// The attachment of a tenant's session.
pub(crate) fn attachment(tenant: &str) -> String {
    format!("20261122T000000001Z-{tenant}")
}

async fn new_key(store: &Store, tenant: &str, scope: KeyScope) -> String {
    let secret = NewSecret::generate().unwrap();
    let key = NewKey {
        id: secret.id.clone(),
        tenant: tenant.to_owned(),
        label: "test".to_owned(),
        scope,
        secret_hash: secret.hash,
        created: 1,
    };
    store.tenant_registry().create_key(&key).await.unwrap();
    secret.text
}

/// Keys by the names of their callers: `blue-member`, `revoked`, `closed`, `wrong`.
pub(crate) async fn make_keys(store: &Store) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    let registry = store.tenant_registry();
    for tenant in ["local", "blue", "red", "closed"] {
        for scope in [KeyScope::Admin, KeyScope::Member, KeyScope::ReadOnly] {
            keys.insert(format!("{tenant}-{scope}"), new_key(store, tenant, scope).await);
        }
    }
    registry.set_tenant_disabled("closed", true).await.unwrap();
    let revoked = keys.remove("local-member").unwrap();
    registry.revoke_key(&revoked[3..19], 5).await.unwrap();
    keys.insert("revoked".to_owned(), revoked);
    keys.insert("unknown".to_owned(), NewSecret::generate().unwrap().text);
    // A key that is there, with the secret of another.
    let (own, other) = (&keys["blue-admin"], &keys["red-admin"]);
    let mixed = format!("{}{}", &own[..20], &other[20..]);
    keys.insert("mixed".to_owned(), mixed);
    keys
}
