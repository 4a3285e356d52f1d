//! Attacks with tokens of an issuer that the operator trusts: forged tokens, tokens for others, and floods.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::super::client::{ServerAnswer, ServerClient, get_request};
use super::super::stage::ServerStage;
use super::{Row, escape_unless, row};
use crate::attack::{Escape, Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-token-forged",
        "makes tokens of an issuer without its key",
        "a token counts behind its issuer's signature (INV-372)",
        "the token is not valid",
        forge_tokens
    ),
    row!(
        "server-token-for-others",
        "brings tokens that were made for another server, or for another time",
        "audience and times are checked (INV-372)",
        "the token is not valid",
        for_others
    ),
    row!(
        "server-token-of-nobody",
        "brings an issuer's own token for a subject whom nobody let in",
        "nobody is let in without a rule of the operator's (INV-371)",
        "nobody has let its subject in",
        name_unknown_subjects
    ),
    row!(
        "server-token-widened",
        "claims the rights of an admin, and another tenant, in a token of its own",
        "no claim widens what a rule gives (INV-373)",
        "this needs a key of the scope `admin`",
        widen_claims
    ),
    row!(
        "server-token-flood",
        "has the server ask the issuer for forty keys that there are not",
        "an issuer is asked once a minute (INV-374)",
        "the issuer was asked once",
        flood_key_lookups
    ),
];

const AUDIENCE: &str = "https://jar.test/mcp";

/// The most bytes of a request that the fake issuer reads.
const MAX_REQUEST: usize = 8 << 10;

/// A fake issuer on this machine, and a server that trusts it for one subject.
pub(super) struct IssuerScene {
    own: ServerStage,
    url: String,
    key: Ed25519KeyPair,
    stranger: Ed25519KeyPair,
    /// How often the issuer's keys were requested.
    asked: Arc<AtomicUsize>,
    answering: JoinHandle<()>,
}

fn generate_key() -> Result<Ed25519KeyPair> {
    let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
    let made = made.ok().context("no random bytes")?;
    Ed25519KeyPair::from_pkcs8(made.as_ref()).ok().context("no key")
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default()
}

fn encode_part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

impl IssuerScene {
    /// Starts the issuer, and a server whose settings admit its subject `rita` and its team `red` to the
    /// tenant `red`.
    pub(super) async fn new(stage: &ServerStage) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (key, asked) = (generate_key()?, Arc::<AtomicUsize>::default());
        let x = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": x});
        let about = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        let documents = [about.to_string(), json!({ "keys": [jwk] }).to_string()];
        let answering = tokio::spawn(answer_as_issuer(listener, documents, Arc::clone(&asked)));
        let own = stage
            .another_with(&format!(
                "[server.issuers.corp]\nurl = '{url}'\naudience = '{AUDIENCE}'\n\
                 [[server.issuers.corp.allow]]\nsubject = 'rita'\ntenant = 'red'\nscope = 'member'\n\
                 [[server.issuers.corp.allow]]\nclaim = 'team'\nvalue = 'red'\ntenant = 'red'\n\
                 scope = 'member'"
            ))
            .await?;
        own.set_client_address(1);
        Ok(Self { own, url, key, stranger: self::generate_key()?, asked, answering })
    }

    pub(super) fn subject_claims(&self, subject: &str) -> Value {
        let now = unix_seconds();
        json!({"iss": self.url, "sub": subject, "aud": AUDIENCE, "iat": now, "exp": now + 300})
    }

    fn sign_token(&self, by: &Ed25519KeyPair, head: &Value, claims: &Value) -> String {
        let text = format!("{}.{}", encode_part(head), encode_part(claims));
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(by.sign(text.as_bytes()).as_ref()))
    }

    pub(super) fn issue_token(&self, claims: &Value) -> String {
        self.sign_token(&self.key, &json!({"alg": "EdDSA", "kid": "one", "typ": "at+jwt"}), claims)
    }

    /// A client that sends this token.
    pub(super) fn client_with_token(&self, token: &str) -> ServerClient {
        self.own.with_key(Some(token))
    }

    /// A client of the other tenant, with a key.
    pub(super) fn neighbour_client(&self) -> ServerClient {
        self.own.client_for("blue-member")
    }

    async fn send_with_token(&self, token: &str, path: &str) -> Result<ServerAnswer> {
        self.client_with_token(token).send(&get_request(path)).await
    }

    /// Checks that each of these tokens is refused; returns the last answer.
    async fn none_opens(&self, tokens: &[String]) -> Result<String, Escape> {
        let mut told = String::new();
        for token in tokens {
            let answer = self.send_with_token(token, "/v1/sessions").await?;
            escape_unless(answer.status == 401, || format!("{token}: {}", answer.body))?;
            told = answer.body;
        }
        Ok(told)
    }

    /// Checks that a valid token and the neighbour's key are still accepted, and ends the server.
    pub(super) async fn close_checked(self) -> Result<(), Escape> {
        let good = self
            .send_with_token(&self.issue_token(&self.subject_claims("rita")), "/v1/sessions")
            .await?;
        escape_unless(good.status == 200, || format!("a good token: {}", good.body))?;
        let blue = self.neighbour_client().send(&get_request("/v1/sessions")).await?;
        escape_unless(blue.status == 200, || blue.body.clone())?;
        self.answering.abort();
        self.own.close().await?;
        Ok(())
    }
}

/// Answers requests as the issuer until the task is dropped.
async fn answer_as_issuer(listener: TcpListener, documents: [String; 2], asked: Arc<AtomicUsize>) {
    while let Ok((stream, _)) = listener.accept().await {
        // An error means: a client has disconnected, which does not matter here.
        let _ = serve_document(stream, &documents, &asked).await;
    }
}

/// Reads one request, and answers with the issuer's metadata or its keys.
async fn serve_document(
    mut stream: TcpStream,
    documents: &[String; 2],
    asked: &AtomicUsize,
) -> Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_REQUEST {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let [about, keys] = documents;
    let body = match request.starts_with(b"GET /keys ") {
        true => {
            asked.fetch_add(1, Ordering::Relaxed);
            keys
        }
        false => about,
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

/// Attack `server-token-forged`: the attacker makes tokens of an issuer without its key.
async fn forge_tokens(stage: &ServerStage) -> Stopped {
    let scene = IssuerScene::new(stage).await?;
    let claims = scene.subject_claims("rita");
    let head = |alg: &str| json!({"alg": alg, "kid": "one", "typ": "at+jwt"});
    let text = |alg: &str| format!("{}.{}", encode_part(&head(alg)), encode_part(&claims));
    let public = scene.key.public_key().as_ref().to_vec();
    let shared = hmac::Key::new(hmac::HMAC_SHA256, &public);
    let mac = hmac::sign(&shared, text("HS256").as_bytes());
    let good = scene.issue_token(&claims);
    let other = scene.issue_token(&scene.subject_claims("nobody"));
    let (body, signature) = (good.rsplit_once('.'), other.rsplit_once('.'));
    let swapped = body.zip(signature).map(|((text, _), (_, other))| format!("{text}.{other}"));
    let tokens = [
        scene.sign_token(&scene.stranger, &head("EdDSA"), &claims),
        format!("{}.", text("none")),
        format!("{}.{}", text("HS256"), URL_SAFE_NO_PAD.encode(mac.as_ref())),
        format!("{}.", text("EdDSA")),
        swapped.unwrap_or_default(),
    ];
    let told = scene.none_opens(&tokens).await?;
    scene.close_checked().await?;
    Ok(Verdict::with_words(told))
}

/// Attack `server-token-for-others`: the attacker brings tokens that were made for another server, or for
/// another time.
async fn for_others(stage: &ServerStage) -> Stopped {
    let scene = IssuerScene::new(stage).await?;
    let now = unix_seconds();
    let with = |claim: &str, value: Value| {
        let mut claims = scene.subject_claims("rita");
        claims[claim] = value;
        scene.issue_token(&claims)
    };
    let tokens = [
        with("aud", json!("https://other.test/mcp")),
        with("aud", Value::Null),
        with("iss", json!(format!("{}/", scene.url))),
        with("exp", json!(now - 3_600)),
        with("exp", Value::Null),
        with("nbf", json!(now + 3_600)),
        with("iat", json!(now + 3_600)),
    ];
    let told = scene.none_opens(&tokens).await?;
    scene.close_checked().await?;
    Ok(Verdict::with_words(told))
}

/// Attack `server-token-of-nobody`: the attacker brings an issuer's own token for a subject whom nobody let
/// in.
async fn name_unknown_subjects(stage: &ServerStage) -> Stopped {
    let scene = IssuerScene::new(stage).await?;
    let tokens = ["Rita", "rita ", "blue", "*"]
        .map(|subject| scene.issue_token(&scene.subject_claims(subject)));
    let told = scene.none_opens(&tokens).await?;
    scene.close_checked().await?;
    Ok(Verdict::with_words(told))
}

/// Attack `server-token-widened`: the attacker claims the rights of an admin, and another tenant, in a token
/// of its own.
async fn widen_claims(stage: &ServerStage) -> Stopped {
    let scene = IssuerScene::new(stage).await?;
    let mut claims = scene.subject_claims("rita");
    for claim in ["scope", "scp", "roles", "role", "tenant"] {
        claims[claim] = json!("belljar:admin admin blue");
    }
    let token = scene.issue_token(&claims);
    let blue = format!("/v1/sessions/{}", scene.own.session_id("blue")?);
    let other = scene.send_with_token(&token, &blue).await?;
    escape_unless(other.status == 404, || format!("another tenant's session: {}", other.body))?;
    let answer = scene.send_with_token(&token, "/v1/audit").await?;
    escape_unless(answer.status == 403, || answer.body.clone())?;
    scene.close_checked().await?;
    Ok(Verdict::with_words(answer.body))
}

/// Attack `server-token-flood`: the attacker has the server ask the issuer for forty keys that there are not.
async fn flood_key_lookups(stage: &ServerStage) -> Stopped {
    let scene = IssuerScene::new(stage).await?;
    let claims = scene.subject_claims("rita");
    // An address with too many invalid tokens has to wait, so this attack sends fewer.
    for number in 0..40 {
        let head = json!({"alg": "EdDSA", "kid": format!("made-up-{number}")});
        let token = scene.sign_token(&scene.stranger, &head, &claims);
        let answer = scene.send_with_token(&token, "/v1/sessions").await?;
        escape_unless(answer.status == 401, || answer.body.clone())?;
    }
    let asked = scene.asked.load(Ordering::Relaxed);
    scene.close_checked().await?;
    escape_unless(asked == 1, || format!("the issuer was asked {asked} times"))?;
    Ok(Verdict::with_words("the issuer was asked once"))
}
