//! Tests of people's tokens stored in the home: used only for their server and issuer.

use std::path::Path;

use belljar_catalogue::{TokenFiles, ToolCatalogue};
use belljar_definition::Settings;
use belljar_kit::world::write;
use belljar_mcp::KeepTokens as _;
use tempfile::TempDir;

const SERVER: &str = "[mcp.peer]\nurl = 'https://m.test'\n[mcp.peer.oauth]\n";

const TOKENS: &str = r#"{
    "version": 1, "url": "https://m.test/", "resource": "https://m.test",
    "issuer": "https://auth.test", "endpoint": "https://auth.test/token", "scopes": [],
    "access": "canary-access", "refresh": null,
    "client": {"id": "c", "secret": null, "method": "none"}
}"#;

fn catalogue(dir: &Path, oauth: &str) -> ToolCatalogue {
    let text = format!("{SERVER}{oauth}\n");
    let settings = Settings::parse(Some((Path::new("b.toml"), text.as_str())), None, None).unwrap();
    ToolCatalogue::from_stock([], &settings).with_servers(dir, &settings)
}

/// The reported problem with the token, if any.
fn refused(catalogue: &ToolCatalogue) -> Option<String> {
    let found = catalogue.problems().iter().find(|found| found.code == "bad-token")?;
    Some(found.to_string())
}

#[test]
fn a_kept_token_is_not_used_against_the_word_of_the_operator() {
    let dir = TempDir::new().unwrap();
    write(&dir.path().join("tokens/peer.json"), TOKENS);
    for oauth in ["", "issuer = 'https://auth.test'\nclient_id = 'c'"] {
        let it = catalogue(dir.path(), oauth);
        assert_eq!(refused(&it), None);
        assert_eq!(it.servers()[0].current_tokens().unwrap().issuer(), "https://auth.test");
    }
    let service = "grant = 'client-credentials'\nclient_id = 'c'\nclient_secret = 'key'\n\
                   [secrets.key]\nhost = 'https://auth.test'\nheader = 'authorization'\nenv = 'KEY'";
    for (oauth, cure) in [
        ("issuer = 'https://mine.test'", "`belljar mcp login peer`"),
        ("client_id = 'd'", "`belljar mcp login peer`"),
        (service, "`belljar mcp logout peer`"),
    ] {
        let it = catalogue(dir.path(), oauth);
        let said = refused(&it).unwrap();
        assert!(said.contains(cure) && !said.contains("canary"), "{said}");
        assert!(it.servers()[0].current_tokens().is_none(), "{oauth}");
    }
}

#[test]
fn a_renewal_takes_the_place_of_its_own_token_alone() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("tokens/peer.json");
    write(&path, TOKENS);
    let it = catalogue(dir.path(), "");
    let server = &it.servers()[0];
    let files = TokenFiles(dir.path().join("tokens"));
    let before = files.stored_tokens(server).unwrap().unwrap();
    let of = |access: &str| {
        let text = TOKENS.replace("canary-access", access);
        belljar_mcp::ServerTokens::parse(server, text.as_bytes()).unwrap()
    };
    assert_eq!(files.replace_tokens(server, &before, &of("second")), Ok(true));
    assert_eq!(
        files.replace_tokens(server, &before, &of("third")),
        Ok(false),
        "another was faster"
    );
    assert!(std::fs::read_to_string(&path).unwrap().contains("second"));
    assert_eq!(files.remove_tokens("peer"), Ok(true));
    assert_eq!(files.replace_tokens(server, &of("second"), &of("fourth")), Ok(false));
    assert!(!path.exists(), "whoever has logged out is not undone");
    assert_eq!(files.remove_tokens("peer"), Ok(false));
}

#[test]
fn the_file_of_a_token_is_read_as_it_is_now() {
    let dir = TempDir::new().unwrap();
    let it = catalogue(dir.path(), "");
    let server = &it.servers()[0];
    let files = TokenFiles(dir.path().join("tokens"));
    assert_eq!(files.stored_tokens(server), Ok(None));
    write(&dir.path().join("tokens/peer.json"), TOKENS);
    let tokens = files.stored_tokens(server).unwrap().unwrap();
    files.store_tokens("peer", &tokens).unwrap();
    assert_eq!(files.stored_tokens(server), Ok(Some(tokens)));
    std::fs::remove_file(dir.path().join("tokens/peer.json")).unwrap();
    assert_eq!(files.stored_tokens(server), Ok(None));
    write(&dir.path().join("tokens/peer.json"), "canary-of-no-token");
    assert!(!files.stored_tokens(server).unwrap_err().contains("canary"));
}
