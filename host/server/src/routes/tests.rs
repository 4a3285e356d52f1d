//! Tests of the table of routes.

use super::*;
use std::collections::BTreeSet;

#[test]
fn each_route_has_a_name_and_a_place_of_its_own() {
    let names: BTreeSet<_> = ROUTES.iter().map(Route::name).collect();
    let places: BTreeSet<_> =
        ROUTES.iter().map(|route| (route.verb.as_str(), route.path)).collect();
    assert_eq!((names.len(), places.len()), (ROUTES.len(), ROUTES.len()));
}

#[test]
fn what_changes_something_needs_more_than_a_key_that_may_look() {
    // Before a login the caller has only a key, and ending one's own login changes nothing of the tenant's.
    let own = |route: &&Route| !matches!(route.op, RouteOp::Login | RouteOp::Logout);
    for route in ROUTES.iter().filter(|route| route.verb != HttpVerb::Get).filter(own) {
        assert!(route.needs >= RequiredScope::Member, "{}", route.name());
    }
}

#[test]
fn a_path_with_a_part_says_what_it_names() {
    for route in ROUTES {
        assert_eq!(route.path.contains('{'), route.object != PathObject::None, "{}", route.path);
    }
}
