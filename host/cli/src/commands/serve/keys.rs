//! `belljar keys`: makes, lists and revokes the server's keys, and the logins of browsers.

use belljar_policy::{ShownPath as _, ShownText};
use belljar_server::{NewSecret, has_keys};
use belljar_store::{KeyScope, NewKey, Store, StoreError, StoredKey, StoredLogin, TENANT};
use serde_json::json;

use crate::args::server::{KeysArgs, KeysCommand, ScopeArg};
use crate::setup::data::{now_millis, shown_time, store_failure, with_store, write_audit};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::setup::whose;
use crate::term::out::TerminalOutput;
use crate::term::table::{TextTable, plain_cell};

/// The most characters of a key's name.
const MAX_NAME: usize = 100;

/// Runs the command on the data root's store.
pub(crate) fn run(
    args: &KeysArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    with_store(&args.data, places, async |store, _| {
        let registry = store.tenant_registry();
        match &args.command {
            KeysCommand::Create { tenant, scope, name } => {
                let secret = NewSecret::generate().map_err(|error| {
                    Failure::new(format!("the system gives no random bytes: {error}"))
                })?;
                let key = new_key(&secret, tenant, *scope, name)?;
                registry.create_key(&key).await.map_err(|error| no_tenant(error, tenant))?;
                let detail = json!({ "scope": key.scope.as_str(), "name": name });
                write_audit(store, tenant, "create_key", &key.id, detail).await?;
                out.print_line(&secret.text);
                out.note("this key is shown this once; only a digest of it is kept");
            }
            KeysCommand::List { tenant, json } => {
                if let Some(name) = tenant {
                    whose::tenant_by_name(name, store).await?;
                }
                let keys = registry.list_keys(tenant.as_deref()).await.map_err(store_failure)?;
                if *json { out.print_json(&keys)? } else { list_keys(&keys, out) }
            }
            KeysCommand::Logins { json } => {
                let logins = registry.list_logins(now_millis()).await.map_err(store_failure)?;
                if *json { out.print_json(&logins)? } else { list_logins(&logins, out) }
            }
            KeysCommand::Revoke { id } => revoke_key(id, store, places, out).await?,
            KeysCommand::OpenToThisMachine { yes } => {
                drop_key_requirement(*yes, store, places, out).await?
            }
        }
        Ok(CommandExit::Completed)
    })
}

/// Revokes the key with this id, or ends the login with this id.
async fn revoke_key(
    id: &str,
    store: &Store,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    let registry = store.tenant_registry();
    if let Some(key) = registry.find_key(id).await.map_err(store_failure)? {
        if !registry.revoke_key(id, now_millis()).await.map_err(store_failure)? {
            out.note(format_args!("key `{id}` was revoked before"));
            return Ok(());
        }
        write_audit(store, &key.tenant, "revoke_key", id, json!({})).await?;
        out.note(format_args!("key `{id}` opens nothing any more"));
        if !has_keys(&registry).await.map_err(store_failure)? {
            out.note(match host::read_settings(places) {
                Ok(settings) if settings.server.issuers.is_empty() => {
                    "it was the last one: the server lets nobody in without a key"
                }
                Ok(_) => "it was the last one: tokens of the issuers still open the server",
                Err(_) => "it was the last one, and tokens of issuers may still open the server",
            });
        }
        return Ok(());
    }
    let Some(login) = registry.find_login(id).await.map_err(store_failure)? else {
        let id = ShownText::clip_line(id, 64);
        return Err(Failure::usage(format!("there is no key or login `{id}`"))
            .with_hint("`belljar keys list` and `belljar keys logins` show the ids"));
    };
    registry.end_login(id).await.map_err(store_failure)?;
    write_audit(store, &login.tenant, "end_login", id, json!({})).await?;
    out.note(format_args!("login `{id}` has ended: its browser has to log in again"));
    Ok(())
}

/// Lets the server accept callers without a key again. A person must agree explicitly, and no key may exist.
async fn drop_key_requirement(
    yes: bool,
    store: &Store,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    let registry = store.tenant_registry();
    // INV-377: with an issuer configured, the next start would require keys again.
    if let Some(issuer) = host::read_settings(places)?.server.issuers.first() {
        let (name, url) =
            (ShownText::clip_line(&issuer.name, 64), ShownText::clip_line(&issuer.url, 200));
        let why = format!(
            "tokens of {url} still open the server, and while it trusts an issuer it lets nobody in \
             without a key or a token"
        );
        let first = format!(
            "take `[server.issuers.{name}]` out of `{}` first",
            places.config_path().to_shown()
        );
        return Err(Failure::usage(why).with_hint(first));
    }
    if has_keys(&registry).await.map_err(store_failure)? {
        return Err(Failure::usage("there are keys that open; callers need one of them")
            .with_hint("revoke them first: `belljar keys list`, `belljar keys revoke ID`"));
    }
    if !registry.keys_needed().await.map_err(store_failure)? {
        out.note("no key is needed on this machine");
        return Ok(());
    }
    let question = "let everybody on this machine in without a key, as its operator?";
    match yes.then_some(true).or_else(|| out.ask(question)) {
        Some(true) => {}
        Some(false) => {
            return Err(Failure::new("keys are still needed").with_exit(CommandExit::Cancelled));
        }
        None => {
            return Err(Failure::usage("there is nobody to ask whether to open the server")
                .with_hint("say so on the command line: `--yes`"));
        }
    }
    if registry.open_without_keys().await.map_err(store_failure)? {
        write_audit(store, TENANT, "open_without_keys", "server", json!({})).await?;
        out.note("the next start of the server lets everybody on this machine in");
    }
    Ok(())
}

/// Makes a key with these rights, after checking its name.
fn new_key(
    secret: &NewSecret,
    tenant: &str,
    scope: ScopeArg,
    name: &str,
) -> Result<NewKey, Failure> {
    if name.trim().is_empty()
        || name.chars().count() > MAX_NAME
        || name.chars().any(ShownText::is_hidden)
    {
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
        created: now_millis(),
    })
}

/// The failure of making a key, with a hint if the tenant is missing.
fn no_tenant(error: StoreError, tenant: &str) -> Failure {
    let missing = matches!(error, StoreError::NotFound { .. });
    let failure = store_failure(error);
    if !missing {
        return failure;
    }
    failure
        .with_hint(format!("`belljar tenants add {}` makes it", ShownText::clip_line(tenant, 64)))
}

/// Prints the table of keys.
fn list_keys(keys: &[StoredKey], out: &TerminalOutput) {
    if keys.is_empty() {
        out.note("there are no keys; `belljar keys create --scope admin --name NAME` makes one");
        return;
    }
    let mut table =
        TextTable::new(out, &["id", "tenant", "scope", "state", "made", "used", "name"]);
    for key in keys {
        let state = match (key.revoked, key.tenant_disabled) {
            (Some(_), _) => "revoked",
            (None, true) => "tenant disabled",
            (None, false) => "valid",
        };
        table.push_row([
            plain_cell(&key.id),
            plain_cell(ShownText::new(&key.tenant)),
            plain_cell(key.scope),
            plain_cell(state),
            plain_cell(shown_time(key.created)),
            plain_cell(key.last_used.map_or_else(|| "never".to_owned(), shown_time)),
            plain_cell(ShownText::new(&key.label)),
        ]);
    }
    table.print_to(out);
}

/// Prints the table of browsers' logins.
fn list_logins(logins: &[StoredLogin], out: &TerminalOutput) {
    if logins.is_empty() {
        out.note("no browser is logged in");
        return;
    }
    let mut table =
        TextTable::new(out, &["id", "tenant", "scope", "state", "made", "ends", "with"]);
    for login in logins {
        let state = match (login.revoked, login.tenant_disabled) {
            (Some(_), _) => "key revoked",
            (None, true) => "tenant disabled",
            (None, false) => "valid",
        };
        let with = login.key.as_ref().map_or_else(|| "link".to_owned(), |key| format!("key {key}"));
        table.push_row([
            plain_cell(&login.id),
            plain_cell(ShownText::new(&login.tenant)),
            plain_cell(login.scope),
            plain_cell(state),
            plain_cell(shown_time(login.created)),
            plain_cell(shown_time(login.expires)),
            plain_cell(with),
        ]);
    }
    table.print_to(out);
}
