//! Tests of tenants and their keys.

use belljar_store::{KeyScope, NewKey, StoreError, TENANT};

use crate::support::Home;

fn key(id: &str, tenant: &str, scope: KeyScope) -> NewKey {
    NewKey {
        id: id.into(),
        tenant: tenant.into(),
        label: "laptop".into(),
        scope,
        secret_hash: format!("digest of {id}"),
        created: 10,
    }
}

#[tokio::test]
async fn a_key_is_found_with_all_that_decides_about_it() {
    let home = Home::new();
    let store = home.open().await;
    let registry = store.tenant_registry();
    registry.create_tenant("acme", 5).await.unwrap();
    registry.create_key(&key("k1", "acme", KeyScope::Member)).await.unwrap();
    registry.create_key(&key("k2", TENANT, KeyScope::Admin)).await.unwrap();
    let found = registry.find_key("k1").await.unwrap().unwrap();
    assert_eq!((found.tenant.as_str(), found.scope), ("acme", KeyScope::Member));
    assert_eq!(found.secret_hash, "digest of k1");
    assert_eq!((found.tenant_disabled, found.last_used, found.revoked), (false, None, None));
    assert!(registry.find_key("k9").await.unwrap().is_none());
    let shown = serde_json::to_string(&found).unwrap();
    assert!(!shown.contains("digest"), "{shown}");

    registry.touch_key("k1", 30).await.unwrap();
    registry.touch_key("k1", 20).await.unwrap();
    registry.touch_key("k9", 20).await.unwrap();
    assert!(registry.revoke_key("k1", 40).await.unwrap());
    assert!(!registry.revoke_key("k1", 50).await.unwrap());
    assert!(!registry.revoke_key("k9", 50).await.unwrap());
    registry.set_tenant_disabled("acme", true).await.unwrap();
    let found = registry.find_key("k1").await.unwrap().unwrap();
    assert_eq!((found.last_used, found.revoked), (Some(30), Some(40)));
    assert!(found.tenant_disabled);
    let other = registry.find_key("k2").await.unwrap().unwrap();
    assert_eq!((other.tenant_disabled, other.last_used, other.revoked), (false, None, None));

    let ids = |keys: Vec<belljar_store::StoredKey>| -> Vec<String> {
        keys.into_iter().map(|key| key.id).collect()
    };
    assert_eq!(ids(registry.list_keys(None).await.unwrap()), ["k1", "k2"]);
    assert_eq!(ids(registry.list_keys(Some(TENANT)).await.unwrap()), ["k2"]);
    store.close().await;
    assert_eq!(
        ids(home.open().await.tenant_registry().list_keys(Some("acme")).await.unwrap()),
        ["k1"]
    );
}

#[tokio::test]
async fn a_key_needs_a_tenant_and_an_id_of_its_own() {
    let home = Home::new();
    let registry = home.open().await.tenant_registry();
    registry.create_key(&key("k1", TENANT, KeyScope::ReadOnly)).await.unwrap();
    let taken = registry.create_key(&key("k1", TENANT, KeyScope::Admin)).await.unwrap_err();
    assert!(matches!(taken, StoreError::Taken { .. }), "{taken}");
    let nobody = registry.create_key(&key("k2", "nobody", KeyScope::Admin)).await.unwrap_err();
    assert!(matches!(nobody, StoreError::NotFound { what: "tenant", .. }), "{nobody}");
    let keys = registry.list_keys(None).await.unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].scope, KeyScope::ReadOnly);
}

#[tokio::test]
async fn a_tenants_name_is_a_plain_word_of_its_own() {
    let home = Home::new();
    let registry = home.open().await.tenant_registry();
    let long = "a".repeat(41);
    for name in ["", "-", "-x", "Acme", "a/b", "..", "a b", "ä", "a\u{1b}", long.as_str()] {
        let error = registry.create_tenant(name, 1).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{name}: {error}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
    registry.create_tenant(&long[..40], 1).await.unwrap();
    for taken in [TENANT, &long[..40]] {
        let error = registry.create_tenant(taken, 2).await.unwrap_err();
        assert!(matches!(error, StoreError::Taken { .. }), "{error}");
    }
    let names: Vec<String> =
        registry.list_tenants().await.unwrap().into_iter().map(|tenant| tenant.name).collect();
    assert_eq!(names, [&long[..40], TENANT]);
    let error = registry.set_tenant_disabled("nobody", true).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(registry.find_tenant("nobody").await.unwrap().is_none());
    assert!(registry.delete_tenant(TENANT).await.is_err());
    assert!(registry.find_tenant(TENANT).await.unwrap().is_some_and(|tenant| !tenant.disabled));
}

#[tokio::test]
async fn keys_stay_needed_until_the_operator_says_otherwise() {
    let home = Home::new();
    let store = home.open().await;
    let registry = store.tenant_registry();
    assert!(!registry.keys_needed().await.unwrap());
    assert!(!registry.open_without_keys().await.unwrap(), "it was open before");
    registry.create_tenant("acme", 5).await.unwrap();
    assert!(registry.create_key(&key("k0", "nobody", KeyScope::Admin)).await.is_err());
    assert!(!registry.keys_needed().await.unwrap(), "no key was stored");
    registry.create_key(&key("k1", "acme", KeyScope::Member)).await.unwrap();
    registry.create_key(&key("k2", TENANT, KeyScope::Admin)).await.unwrap();
    // The first key is revoked, the other is deleted with its tenant.
    registry.revoke_key("k2", 40).await.unwrap();
    assert!(!registry.open_without_keys().await.unwrap(), "there is a key that opens");
    registry.delete_tenant("acme").await.unwrap();
    assert!(registry.keys_needed().await.unwrap());
    store.close().await;
    let registry = home.open().await.tenant_registry();
    assert!(registry.keys_needed().await.unwrap(), "it outlives the process");
    assert!(registry.open_without_keys().await.unwrap());
    assert!(!registry.keys_needed().await.unwrap());
    registry.create_key(&key("k3", TENANT, KeyScope::Admin)).await.unwrap();
    assert!(registry.keys_needed().await.unwrap());
}

#[tokio::test]
async fn keys_may_be_needed_though_none_was_ever_stored() {
    let home = Home::new();
    let store = home.open().await;
    for now in [5, 6] {
        store.tenant_registry().need_keys(now).await.unwrap();
    }
    store.close().await;
    let registry = home.open().await.tenant_registry();
    assert!(registry.keys_needed().await.unwrap(), "it outlives the process");
    assert!(registry.open_without_keys().await.unwrap());
    assert!(!registry.keys_needed().await.unwrap());
}
