//! Tests of logins: made with a key or the operator's link, found, and ended.

use belljar_store::{KeyScope, NewKey, NewLogin, Registry, TENANT};

use crate::support::Home;

fn login(id: &str, key: Option<&str>, created: i64) -> NewLogin {
    NewLogin {
        id: id.into(),
        key: key.map(Into::into),
        secret_hash: format!("digest of {id}"),
        created,
        expires: created + 100,
    }
}

async fn key(registry: &Registry, id: &str, tenant: &str, scope: KeyScope) {
    let (label, secret_hash) = ("laptop".into(), format!("digest of {id}"));
    let key =
        NewKey { id: id.into(), tenant: tenant.into(), label, scope, secret_hash, created: 1 };
    registry.create_key(&key).await.unwrap();
}

#[tokio::test]
async fn a_login_is_good_for_as_long_as_its_key_and_ends_by_itself() {
    let home = Home::new();
    let store = home.open().await;
    let registry = store.tenant_registry();
    registry.create_tenant("acme", 1).await.unwrap();
    key(&registry, "k1", "acme", KeyScope::Member).await;
    key(&registry, "k2", TENANT, KeyScope::ReadOnly).await;
    assert!(registry.create_login(&login("a", Some("k1"), 10), 9).await.unwrap());
    assert!(registry.create_login(&login("b", Some("k2"), 10), 9).await.unwrap());
    assert!(registry.create_login(&login("c", None, 10), 9).await.unwrap());
    assert!(!registry.create_login(&login("d", Some("k9"), 10), 9).await.unwrap());
    store.close().await;

    let store = home.open().await;
    let registry = store.tenant_registry();
    let found = async |id: &str| registry.find_login(id).await.unwrap();
    let own = found("a").await.unwrap();
    assert_eq!((own.tenant.as_str(), own.scope), ("acme", KeyScope::Member));
    assert_eq!((own.key.as_deref(), own.secret_hash.as_str()), (Some("k1"), "digest of a"));
    assert!(own.is_open(109) && !own.is_open(110));
    let link = found("c").await.unwrap();
    assert_eq!((link.tenant.as_str(), link.scope, link.key), (TENANT, KeyScope::Admin, None));
    assert!(found("d").await.is_none());
    let shown = serde_json::to_string(&registry.list_logins(20).await.unwrap()).unwrap();
    assert!(shown.contains("\"a\"") && !shown.contains("digest"), "{shown}");

    registry.revoke_key("k1", 30).await.unwrap();
    assert!(!found("a").await.unwrap().is_open(31), "revoked");
    assert!(found("b").await.unwrap().is_open(31) && found("c").await.unwrap().is_open(31));
    assert!(!registry.create_login(&login("e", Some("k1"), 40), 9).await.unwrap());
    registry.set_tenant_disabled(TENANT, true).await.unwrap();
    assert!(!found("b").await.unwrap().is_open(41) && !found("c").await.unwrap().is_open(41));
    registry.set_tenant_disabled(TENANT, false).await.unwrap();
    assert!(registry.end_login("b").await.unwrap() && !registry.end_login("b").await.unwrap());
    assert!(found("b").await.is_none() && found("c").await.unwrap().is_open(41));
    registry.delete_tenant("acme").await.unwrap();
    assert!(found("a").await.is_none(), "it goes with its tenant");
}

#[tokio::test]
async fn a_key_has_so_many_logins_and_the_newest_stay() {
    let home = Home::new();
    let registry = home.open().await.tenant_registry();
    key(&registry, "k1", TENANT, KeyScope::Admin).await;
    key(&registry, "k2", TENANT, KeyScope::Admin).await;
    registry.create_login(&login("other", Some("k2"), 1), 2).await.unwrap();
    registry.create_login(&login("link", None, 1), 2).await.unwrap();
    for (id, at) in [("a", 2), ("b", 3), ("c", 4)] {
        assert!(registry.create_login(&login(id, Some("k1"), at), 2).await.unwrap());
    }
    let ids = async |now| -> Vec<String> {
        registry.list_logins(now).await.unwrap().into_iter().map(|login| login.id).collect()
    };
    assert_eq!(ids(5).await, ["link", "other", "b", "c"]);
    assert_eq!(ids(103).await, ["c"]);
    // Expired logins are deleted when the next one is made.
    registry.create_login(&login("d", None, 200), 2).await.unwrap();
    assert_eq!(ids(0).await, ["d"]);
}
