//! TLS, with a certificate authority that only these tests trust.

use super::*;
use belljar_kit::peers::Connection;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

const CA: &[u8] = include_bytes!("tls/ca.der");
const LEAF: &[u8] = include_bytes!("tls/leaf.der");
const KEY: &[u8] = include_bytes!("tls/leaf.p8");

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Starts a TLS server for `api.test`.
fn start() -> HttpPeer {
    let key = PrivateKeyDer::Pkcs8(KEY.into());
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(LEAF)], key)
        .unwrap();
    let config = Arc::new(config);
    let wrap = move |stream| -> Option<Box<dyn Connection>> {
        let tls = ServerConnection::new(Arc::clone(&config)).ok()?;
        Some(Box::new(StreamOwned::new(tls, stream)))
    };
    HttpPeer::builder().over(wrap).reply(Reply::bytes(OK))
}

fn rig(server: &HttpPeer, roots: RootCertStore) -> Rig {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let options =
        HttpOptions::default().with_tls(config).with_resolver(Names::of(&[&["127.0.0.1"]]));
    let port = server.address.port();
    let rules = [format!("https://*:{port}"), format!("127.0.0.1:{port}")];
    Rig::with(&[&rules[0], &rules[1]], &Limits::default(), options, JarSecrets::default())
}

fn trusted() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CA)).unwrap();
    roots
}

#[tokio::test]
async fn a_request_over_tls_arrives() {
    let server = start();
    let port = server.address.port();
    let rig = rig(&server, trusted());
    let reply = rig.get(&format!("https://api.test:{port}/x")).await.unwrap();
    assert_eq!(reply.body.unwrap(), "hello");
    assert!(server.heads().remove(0).starts_with("GET /x HTTP/1.1\r\n"));
    assert_eq!(rig.denials(), []);
}

#[tokio::test]
async fn a_server_that_is_not_who_it_should_be_gets_no_request() {
    let server = start();
    let port = server.address.port();
    let stranger = rig(&server, RootCertStore::empty());
    let sent = stranger.get(&format!("https://api.test:{port}/")).await;
    assert_error!(sent, Error::TlsCertificateError);
    let rig = rig(&server, trusted());
    for host in ["other.test", "127.0.0.1"] {
        let sent = rig.get(&format!("https://{host}:{port}/")).await;
        assert_error!(sent, Error::TlsCertificateError);
    }
    assert_eq!(server.heads().len(), 0);
    rig.get(&format!("https://api.test:{port}/")).await.unwrap();
}

#[tokio::test]
async fn a_server_without_tls_is_no_https_server() {
    let server = HttpPeer::with_reply(Reply::bytes(OK));
    let rig = rig(&server, trusted());
    let url = format!("https://api.test:{}/", server.address.port());
    // It waits for the end of a head that never comes.
    let connect_timeout = Some(std::time::Duration::from_millis(50));
    let options = RequestOptions { connect_timeout, ..RequestOptions::default() };
    let sent = rig.send(Request::get(url), "", Some(options)).await;
    assert_error!(sent, Error::ConnectionTimeout);
    assert_eq!(server.heads().len(), 0);
}
