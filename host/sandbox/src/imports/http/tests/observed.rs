//! What a guest and its peer can observe of an exchange has to be the same for two different secrets.
//!
//! The peer guesses ever longer beginnings of both secrets. Time is simulated, so times are compared
//! exactly.

use super::*;
use crate::imports::http::connect::{CheckedConnection, HttpTimeouts};
use crate::imports::http::{Secret, SecretStore};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_policy::SecretName;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

/// Two secrets of the same length, with the same number of escaped bytes.
const SECRETS: [&str; 2] = ["Kq7/first+value%x", "Zm3+other/guess%y"];

/// Everything that can be observed of an exchange.
#[derive(Debug, PartialEq)]
struct Observed {
    /// When the head or an error arrived, and how often the exchange was polled until then.
    answered: (Duration, usize),
    /// The head, or the error.
    head: Result<(StatusCode, HeaderMap), String>,
    /// The frames, each with its time and number of polls. An error takes the place of the last frame.
    frames: Vec<(Duration, usize, Result<Bytes, String>)>,
    trailers: Option<HeaderMap>,
    /// What the peer observes: when each piece was read, and when the connection ended.
    peer: Vec<(Duration, bool)>,
    /// The calls and bytes that the guest pays for in fuel.
    work: (u64, u64),
}

/// How a peer ends its reply.
#[derive(Debug, Clone, Copy)]
enum Ends {
    Waits,
    Resets,
    Stalls,
}

async fn observe(secret: &str, pieces: &[Vec<u8>], ends: Ends) -> Observed {
    let name = SecretName::new("key").unwrap();
    let mut store = SecretStore::default();
    let rule = vec!["https://api.test".parse().unwrap()];
    store.insert(name.clone(), Secret::new(&secret.into(), rule, "x-key", "").unwrap());
    let options = HttpOptions::default();
    let secrets = store.allowed_secrets(&[name].into());
    let rig = Rig::with(&["http://peer.test"], &Limits::default(), options, secrets);
    let request = Request::get("http://peer.test/").body(full("")).unwrap();
    let checked =
        rig.gate.check_request(request.uri(), request.method(), request.headers()).unwrap();

    let began = Instant::now();
    // A small buffer, so that the peer notices when the host reads.
    let (ours, theirs) = tokio::io::duplex(32);
    let peer = tokio::spawn(peer(theirs, pieces.to_vec(), ends, began));
    let (times, place) = (HttpTimeouts::from_options(None), rig.gate.acquire_connection().unwrap());
    let connected = CheckedConnection { stream: Box::new(ours), here: false };
    let exchange = rig.gate.exchange_messages(request, checked, connected, times, place);
    let (polls, answer) = polled(exchange).await;
    let answered = (began.elapsed(), polls);
    let (mut frames, mut trailers) = (Vec::new(), None);
    let head = match answer {
        Err(error) => Err(format!("{error:?}")),
        Ok((reply, io)) => {
            let io = tokio::spawn(Box::into_pin(io));
            let (parts, mut body) = reply.into_parts();
            while let (polls, Some(frame)) = polled(body.frame()).await {
                let frame = match frame.map(http_body::Frame::into_data) {
                    Ok(Ok(data)) => Ok(data),
                    Ok(Err(frame)) => {
                        trailers = frame.into_trailers().ok();
                        continue;
                    }
                    Err(error) => Err(format!("{error:?}")),
                };
                frames.push((began.elapsed(), polls, frame));
            }
            drop(body);
            io.abort();
            Ok((parts.status, parts.headers))
        }
    };
    let peer = peer.await.unwrap();
    Observed { answered, head, frames, trailers, peer, work: rig.record.host_work() }
}

/// The result of a future, and how often the future was polled.
async fn polled<F: Future>(future: F) -> (usize, F::Output) {
    let mut future = pin!(future);
    let mut polls = 0;
    let output = poll_fn(|context| {
        polls += 1;
        future.as_mut().poll(context)
    });
    let output = output.await;
    (polls, output)
}

async fn peer(
    mut stream: tokio::io::DuplexStream,
    pieces: Vec<Vec<u8>>,
    ends: Ends,
    began: Instant,
) -> Vec<(Duration, bool)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let mut seen = Vec::new();
    for piece in pieces {
        tokio::time::sleep(Duration::from_millis(10)).await;
        seen.push((began.elapsed(), stream.write_all(&piece).await.is_ok()));
        seen.push((began.elapsed(), true));
    }
    match ends {
        Ends::Resets => return seen,
        Ends::Stalls => {}
        Ends::Waits => stream.shutdown().await.unwrap(),
    }
    let ended = stream.read(&mut [0; 64]).await;
    seen.push((began.elapsed(), ended.is_ok_and(|read| read == 0)));
    seen
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(text: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}

/// Replies with a guess, in every place that a guest would look at.
fn replies(guess: &[u8]) -> Vec<(Vec<Vec<u8>>, Ends)> {
    let text = [guess, b"!"].concat();
    let bytes = || text.chunks(1).map(chunk);
    let begin = || std::iter::once(CHUNKED.as_bytes().to_vec());
    let end = || std::iter::once(b"0\r\n\r\n".to_vec());
    let length = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", text.len()).into_bytes();
    let line = [b"x-guess: ", &*text, b"\r\n"].concat();
    vec![
        // All at once; byte by byte; the guess at the end of a piece, with the rest later.
        (vec![[&length, &b"\r\n"[..], &text].concat()], Ends::Waits),
        (begin().chain(bytes()).chain(end()).collect(), Ends::Waits),
        (
            begin().chain([chunk(guess), chunk(b"!"), chunk(guess)]).chain(end()).collect(),
            Ends::Waits,
        ),
        // After the guess, the connection is reset or stops.
        (begin().chain([chunk(guess)]).collect(), Ends::Resets),
        (begin().chain([chunk(guess)]).collect(), Ends::Stalls),
        // The guess in the status line, in a header, and in the trailers.
        (vec![[&length, &*line, b"\r\n", &text].concat()], Ends::Waits),
        (vec![[b"HTTP/1.1 200 ", &*text, b"\r\ncontent-length: 0\r\n\r\n"].concat()], Ends::Waits),
        (begin().chain([[b"0\r\n", &*line, b"\r\n"].concat()]).collect(), Ends::Waits),
    ]
}

fn forms(value: &str) -> Vec<Vec<u8>> {
    let each = |form: fn(u8) -> String| value.bytes().map(form).collect::<String>().into_bytes();
    vec![
        value.as_bytes().to_vec(),
        each(|byte| format!("%{byte:02X}")),
        each(|byte| format!("{byte:02x}")),
        each(|byte| format!("\\u{byte:04x}")),
        STANDARD.encode(value).into_bytes(),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_beginning_of_the_secret_shows_in_no_byte_no_piece_and_no_time() {
    for form in SECRETS.into_iter().flat_map(forms) {
        // Without the last eight bytes, no form is complete, not even a form that omits its ends.
        for end in 1..=form.len() - 8 {
            for (pieces, ends) in replies(&form[..end]) {
                let [one, other] = SECRETS.map(|secret| observe(secret, &pieces, ends));
                let (one, other) = (one.await, other.await);
                let shown = String::from_utf8_lossy(&pieces.concat()).into_owned();
                assert_eq!(one, other, "{ends:?} {shown}");
                assert_eq!(one.head.is_ok(), matches!(ends, Ends::Waits), "{ends:?} {shown}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_a_secret_stands_shows_neither_to_the_guest_nor_to_its_peer() {
    let [held, other] = SECRETS;
    let place = |before: usize| {
        let text = [&b"x".repeat(before), other.as_bytes(), &b"y".repeat(600 - before)].concat();
        let pieces = text.chunks(50).map(chunk);
        let begin = std::iter::once(CHUNKED.as_bytes().to_vec());
        begin.chain(pieces).chain([b"0\r\n\r\n".to_vec()]).collect::<Vec<_>>()
    };
    let first = observe(other, &place(0), Ends::Waits).await;
    assert_eq!(first.head.as_ref().unwrap_err(), "HttpRequestDenied");
    for before in [1, 49, 50, 333, 600] {
        assert_eq!(observe(other, &place(before), Ends::Waits).await, first, "{before}");
    }
    // Only the equality of a whole guess is visible.
    let passed = observe(held, &place(0), Ends::Waits).await;
    assert!(passed.head.is_ok());
    assert_eq!(
        (passed.answered, passed.peer, passed.work),
        (first.answered, first.peer, first.work)
    );
    // An incomplete reply gives the same result with a secret as without a secret.
    for ends in [Ends::Resets, Ends::Stalls] {
        let mut pieces = place(0);
        pieces.pop();
        let (with, without) = (observe(other, &pieces, ends), observe(held, &pieces, ends));
        assert_eq!(with.await, without.await, "{ends:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_reply_comes_in_blocks_of_one_size_however_it_was_sent() {
    let text = b"0123456789".repeat(15_000);
    let begin = || std::iter::once(CHUNKED.as_bytes().to_vec());
    let sizes = async |size: usize| {
        let pieces = begin().chain(text.chunks(size).map(chunk)).chain([b"0\r\n\r\n".to_vec()]);
        let seen = observe(SECRETS[0], &pieces.collect::<Vec<_>>(), Ends::Waits).await;
        let frames: Vec<Bytes> =
            seen.frames.into_iter().map(|(.., frame)| frame.unwrap()).collect();
        assert_eq!(frames.concat(), text);
        frames.iter().map(Bytes::len).collect::<Vec<_>>()
    };
    for size in [777, 40_000, 150_000] {
        assert_eq!(sizes(size).await, [65_536, 65_536, 18_928], "{size}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_without_secrets_is_handed_each_piece_as_it_comes() {
    let rig = Rig::new(&["http://peer.test"]);
    let request = Request::get("http://peer.test/").body(full("")).unwrap();
    let checked =
        rig.gate.check_request(request.uri(), request.method(), request.headers()).unwrap();
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    let pieces = vec![CHUNKED.as_bytes().to_vec(), chunk(b"one"), chunk(b"two")];
    let _peer = tokio::spawn(peer(theirs, pieces, Ends::Stalls, Instant::now()));
    let (times, place) = (HttpTimeouts::from_options(None), rig.gate.acquire_connection().unwrap());
    let connected = CheckedConnection { stream: Box::new(ours), here: false };
    let exchange = rig.gate.exchange_messages(request, checked, connected, times, place);
    let (reply, io) = exchange.await.unwrap();
    let _io = tokio::spawn(Box::into_pin(io));
    let mut body = reply.into_body();
    for piece in ["one", "two"] {
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), piece);
    }
    assert_error!(body.frame().await.unwrap(), Error::ConnectionReadTimeout);
}
