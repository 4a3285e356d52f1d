//! `[mcp.NAME]` of `belljar.toml`: how a server is spoken to, and how tokens for it are asked for.

use crate::show::{errors, home};

/// A server with these lines below it.
fn server(more: &str) -> String {
    let secret =
        "[secrets.client]\nhost = 'https://auth.test'\nheader = 'authorization'\nenv = 'X'\n";
    format!("{secret}[mcp.docs]\nurl = 'https://m.test/mcp'\n{more}")
}

#[test]
fn the_ways_to_a_token_are_read_and_absent_ones_are_the_servers_to_name() {
    let settings = home(&server(
        "revision = '2026-07-28'\n[mcp.docs.oauth]\nissuer = 'https://auth.test'\nclient_id = \
         'c'\nclient_secret = 'client'\nclient_metadata_url = 'https://me.test/client.json'\ngrant = \
         'client-credentials'\nscopes = ['a', 'b']\n",
    ));
    let docs = settings.unwrap().mcp.remove("docs").unwrap();
    assert_eq!(docs.revision.as_deref(), Some("2026-07-28"));
    assert_eq!(docs.oauth.issuer.as_deref(), Some("https://auth.test"));
    assert_eq!(docs.oauth.client_id.as_deref(), Some("c"));
    assert_eq!(docs.oauth.client_secret.unwrap().as_str(), "client");
    assert!(docs.oauth.is_service && docs.oauth.client_metadata_url.is_some());
    assert_eq!(docs.oauth.scopes, ["a", "b"]);
    let plain = home(&server("")).unwrap().mcp.remove("docs").unwrap();
    assert_eq!((plain.revision, plain.oauth), (None, Default::default()));
}

#[test]
fn a_slip_in_the_ways_to_a_token_is_one_clear_error() {
    for (toml, said) in [
        ("revision = '2024-11-05'", "`2025-11-25` or `2026-07-28`"),
        ("oauth = 1", "not a table"),
        ("[mcp.docs.oauth]\nisuer = 'x'", "did you mean `issuer`?"),
        ("[mcp.docs.oauth]\nissuer = 'auth.test'", "an address such as"),
        ("[mcp.docs.oauth]\nclient_id = 'a b'", "visible ASCII"),
        ("[mcp.docs.oauth]\nclient_secret = 'hunter2'", "the name of a section"),
        ("[mcp.docs.oauth]\nscopes = ['a b']", "without blanks"),
        ("[mcp.docs.oauth]\ngrant = 'password'", "`person` or `client-credentials`"),
        ("[mcp.docs.oauth]\ngrant = 'client-credentials'", "needs `client_id`"),
    ] {
        let found = errors(&server(toml));
        assert!(found.contains(said), "{toml}: {found}");
        assert!(!found.contains("hunter2"), "a value is not quoted: {found}");
    }
}
