//! Tests of admission: keys, logins, links and tokens.

use super::*;

fn caller(tenant: &str, scope: KeyScope) -> Caller {
    let tenant: Arc<str> = tenant.into();
    Caller { tenant_id: tenant.clone(), tenant, scope, ..Caller::local_person() }
}

#[test]
fn a_scope_reaches_as_far_as_its_row_says() {
    let rows = [
        ("local", KeyScope::ReadOnly, [true, true, false, false, false]),
        ("local", KeyScope::Member, [true, true, true, false, false]),
        ("local", KeyScope::Admin, [true, true, true, true, true]),
        ("other", KeyScope::Admin, [true, true, true, true, false]),
    ];
    let needs = [
        RequiredScope::Nothing,
        RequiredScope::ReadOnly,
        RequiredScope::Member,
        RequiredScope::Admin,
        RequiredScope::Operator,
    ];
    for (tenant, scope, expected) in rows {
        assert_eq!(needs.map(|need| caller(tenant, scope).has_scope(need)), expected, "{scope}");
    }
}

#[test]
fn a_key_is_found_where_it_may_stand() {
    let with = |name: header::HeaderName, value: &str| {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    };
    assert_eq!(read_credential(&HeaderMap::new()).unwrap(), None);
    let key = Some(SentCredential::Key("bj_a"));
    for good in ["Bearer bj_a", "bearer bj_a"] {
        assert_eq!(read_credential(&with(header::AUTHORIZATION, good)).unwrap(), key);
    }
    for bad in ["Basic bj_a", "bj_a", ""] {
        assert!(read_credential(&with(header::AUTHORIZATION, bad)).is_err(), "{bad}");
    }
    let mut headers = with(header::SEC_WEBSOCKET_PROTOCOL, "belljar.v1, bearer.bj_a");
    assert_eq!(read_credential(&headers).unwrap(), key);
    headers.insert(header::COOKIE, "belljar=bl_a".parse().unwrap());
    assert_eq!(read_credential(&headers).unwrap(), key, "a key comes first");
    let cookie = with(header::COOKIE, "belljar=bl_a");
    assert_eq!(read_credential(&cookie).unwrap(), Some(SentCredential::Login("bl_a")));
}
