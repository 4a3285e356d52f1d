//! `belljar keys`: the keys of the server, made, listed and revoked, and the logins of browsers.

use belljar_policy::{Shown, ShownPath as _};
use belljar_server::{NewSecret, has_keys};
use belljar_store::{KeyScope, NewKey, Store, StoreError, StoredKey, StoredLogin, TENANT};
use serde_json::json;

use crate::args::server::{KeysArgs, KeysCommand, ScopeArg};
use crate::setup::data::{audit, failed, now, shown_time, with_store};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host;
use crate::setup::whose;
use crate::term::out::Out;
use crate::term::table::{Table, plain};

/// Most characters of what a key is recognised by.
const MAX_NAME: usize = 100;

pub(crate) fn run(args: &KeysArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    with_store(&args.data, places, async |store, _| {
        let registry = store.registry();
        match &args.command {
            KeysCommand::Create { tenant, scope, name } => {
                let secret = NewSecret::generate().map_err(|error| {
                    Failure::new(format!("the system gives no random bytes: {error}"))
                })?;
                let key = new_key(&secret, tenant, *scope, name)?;
                registry.create_key(&key).await.map_err(|error| no_tenant(error, tenant))?;
                let detail = json!({ "scope": key.scope.as_str(), "name": name });
                audit(store, tenant, "create_key", &key.id, detail).await?;
                out.line(&secret.text);
                out.note("this key is shown this once; only a digest of it is kept");
            }
            KeysCommand::List { tenant, json } => {
                if let Some(name) = tenant {
                    whose::tenant(name, store).await?;
                }
                let keys = registry.keys(tenant.as_deref()).await.map_err(failed)?;
                if *json { out.json(&keys)? } else { list(&keys, out) }
            }
            KeysCommand::Logins { json } => {
                let logins = registry.logins(now()).await.map_err(failed)?;
                if *json { out.json(&logins)? } else { list_logins(&logins, out) }
            }
            KeysCommand::Revoke { id } => revoke(id, store, places, out).await?,
            KeysCommand::OpenToThisMachine { yes } => open(*yes, store, places, out).await?,
        }
        Ok(Exit::Completed)
    })
}

/// Revokes a key, or ends a login with the id.
async fn revoke(id: &str, store: &Store, places: &Places, out: &Out) -> Result<(), Failure> {
    let registry = store.registry();
    if let Some(key) = registry.find_key(id).await.map_err(failed)? {
        if !registry.revoke_key(id, now()).await.map_err(failed)? {
            out.note(format_args!("key `{id}` was revoked before"));
            return Ok(());
        }
        audit(store, &key.tenant, "revoke_key", id, json!({})).await?;
        out.note(format_args!("key `{id}` opens nothing any more"));
        if !has_keys(&registry).await.map_err(failed)? {
            out.note(match host::settings(places) {
                Ok(settings) if settings.server.issuers.is_empty() => {
                    "it was the last one: the server lets nobody in without a key"
                }
                Ok(_) => "it was the last one: tokens of the issuers still open the server",
                Err(_) => "it was the last one, and tokens of issuers may still open the server",
            });
        }
        return Ok(());
    }
    let Some(login) = registry.find_login(id).await.map_err(failed)? else {
        let id = Shown::clipped(id, 64);
        return Err(Failure::usage(format!("there is no key or login `{id}`"))
            .hint("`belljar keys list` and `belljar keys logins` show the ids"));
    };
    registry.end_login(id).await.map_err(failed)?;
    audit(store, &login.tenant, "end_login", id, json!({})).await?;
    out.note(format_args!("login `{id}` has ended: its browser has to log in again"));
    Ok(())
}

/// Takes back that a key is needed: by a person, in so many words, and never beside a key.
async fn open(yes: bool, store: &Store, places: &Places, out: &Out) -> Result<(), Failure> {
    let registry = store.registry();
    // INV-377: a start would take it back at once.
    if let Some(issuer) = host::settings(places)?.server.issuers.first() {
        let (name, url) = (Shown::clipped(&issuer.name, 64), Shown::clipped(&issuer.url, 200));
        let why = format!(
            "tokens of {url} still open the server, and while it trusts an issuer it lets nobody in \
             without a key or a token"
        );
        let first =
            format!("take `[server.issuers.{name}]` out of `{}` first", places.config().shown());
        return Err(Failure::usage(why).hint(first));
    }
    if has_keys(&registry).await.map_err(failed)? {
        return Err(Failure::usage("there are keys that open; callers need one of them")
            .hint("revoke them first: `belljar keys list`, `belljar keys revoke ID`"));
    }
    if !registry.keys_needed().await.map_err(failed)? {
        out.note("no key is needed on this machine");
        return Ok(());
    }
    let question = "let everybody on this machine in without a key, as its operator?";
    match yes.then_some(true).or_else(|| out.ask(question)) {
        Some(true) => {}
        Some(false) => return Err(Failure::new("keys are still needed").exit(Exit::Cancelled)),
        None => {
            return Err(Failure::usage("there is nobody to ask whether to open the server")
                .hint("say so on the command line: `--yes`"));
        }
    }
    if registry.open_without_keys().await.map_err(failed)? {
        audit(store, TENANT, "open_without_keys", "server", json!({})).await?;
        out.note("the next start of the server lets everybody on this machine in");
    }
    Ok(())
}

fn new_key(
    secret: &NewSecret,
    tenant: &str,
    scope: ScopeArg,
    name: &str,
) -> Result<NewKey, Failure> {
    if name.trim().is_empty() || name.chars().count() > MAX_NAME || name.chars().any(Shown::hides) {
        return Err(Failure::usage(format!("the name of a key has 1 to {MAX_NAME} characters")));
    }
    Ok(NewKey {
        id: secret.id.clone(),
        tenant: tenant.to_owned(),
        label: name.to_owned(),
        scope: match scope {
            ScopeArg::Admin => KeyScope::Admin,
            ScopeArg::Member => KeyScope::Member,
            ScopeArg::ReadOnly => KeyScope::ReadOnly,
        },
        secret_hash: secret.hash.clone(),
        created: now(),
    })
}

fn no_tenant(error: StoreError, tenant: &str) -> Failure {
    let missing = matches!(error, StoreError::NotFound { .. });
    let failure = failed(error);
    if !missing {
        return failure;
    }
    failure.hint(format!("`belljar tenants add {}` makes it", Shown::clipped(tenant, 64)))
}

fn list(keys: &[StoredKey], out: &Out) {
    if keys.is_empty() {
        out.note("there are no keys; `belljar keys create --scope admin --name NAME` makes one");
        return;
    }
    let mut table = Table::new(out, &["id", "tenant", "scope", "state", "made", "used", "name"]);
    for key in keys {
        let state = match (key.revoked, key.tenant_disabled) {
            (Some(_), _) => "revoked",
            (None, true) => "tenant disabled",
            (None, false) => "valid",
        };
        table.row([
            plain(&key.id),
            plain(Shown::new(&key.tenant)),
            plain(key.scope),
            plain(state),
            plain(shown_time(key.created)),
            plain(key.last_used.map_or_else(|| "never".to_owned(), shown_time)),
            plain(Shown::new(&key.label)),
        ]);
    }
    table.print(out);
}

fn list_logins(logins: &[StoredLogin], out: &Out) {
    if logins.is_empty() {
        out.note("no browser is logged in");
        return;
    }
    let mut table = Table::new(out, &["id", "tenant", "scope", "state", "made", "ends", "with"]);
    for login in logins {
        let state = match (login.revoked, login.tenant_disabled) {
            (Some(_), _) => "key revoked",
            (None, true) => "tenant disabled",
            (None, false) => "valid",
        };
        let with = login.key.as_ref().map_or_else(|| "link".to_owned(), |key| format!("key {key}"));
        table.row([
            plain(&login.id),
            plain(Shown::new(&login.tenant)),
            plain(login.scope),
            plain(state),
            plain(shown_time(login.created)),
            plain(shown_time(login.expires)),
            plain(with),
        ]);
    }
    table.print(out);
}
