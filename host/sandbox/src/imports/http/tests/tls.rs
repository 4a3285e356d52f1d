//! TLS, with a certificate authority that only these tests trust.

use super::*;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

const CA: &[u8] = include_bytes!("tls/ca.der");
const LEAF: &[u8] = include_bytes!("tls/leaf.der");
const KEY: &[u8] = include_bytes!("tls/leaf.p8");

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Starts a TLS server for `api.test`.
async fn start() -> Server {
    let key = PrivateKeyDer::Pkcs8(KEY.into());
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(LEAF)], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&heads);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    answer(stream, seen, vec![OK.to_vec()], Then::Close).await;
                }
            });
        }
    });
    Server { at, heads, task }
}

fn rig(server: &Server, roots: RootCertStore) -> Rig {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let options =
        HttpOptions::default().with_tls(config).with_resolver(Names::of(&[&["127.0.0.1"]]));
    let port = server.at.port();
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
    let server = start().await;
    let port = server.at.port();
    let rig = rig(&server, trusted());
    let reply = rig.get(&format!("https://api.test:{port}/x")).await.unwrap();
    assert_eq!(reply.body.unwrap(), "hello");
    assert!(server.heads().remove(0).starts_with("GET /x HTTP/1.1\r\n"));
    assert_eq!(rig.denials(), []);
}

#[tokio::test]
async fn a_server_that_is_not_who_it_should_be_gets_no_request() {
    let server = start().await;
    let port = server.at.port();
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
    let server = Server::start(&[OK], Then::Close).await;
    let rig = rig(&server, trusted());
    let url = format!("https://api.test:{}/", server.at.port());
    // The server waits for the end of a head that never comes.
    let connect_timeout = Some(std::time::Duration::from_millis(50));
    let options = RequestOptions { connect_timeout, ..RequestOptions::default() };
    let sent = rig.send(Request::get(url), "", Some(options)).await;
    assert_error!(sent, Error::ConnectionTimeout);
    assert_eq!(server.heads().len(), 0);
}
