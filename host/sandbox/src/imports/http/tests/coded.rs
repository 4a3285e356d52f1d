//! Replies that are compressed although the request did not ask for compression.

use std::io::Write as _;

use belljar_policy::Meter;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};

use super::*;

const PAGE: &[u8] = b"<p>the needle is here</p>";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bare(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn rig(server: &HttpPeer, limits: &Limits) -> Rig {
    let rule = format!("http://{}", server.address);
    Rig::with(&[&rule], limits, HttpOptions::default(), JarSecrets::default())
}

#[tokio::test]
async fn a_reply_that_is_compressed_unasked_is_decoded_and_billed_as_it_comes_out() {
    let page = PAGE.repeat(1_000);
    for (coding, body) in [
        ("gzip", gzip(&page)),
        ("deflate", zlib(&page)),
        ("deflate", bare(&page)),
        ("gzip, x-gzip", gzip(&gzip(&page))),
    ] {
        let pieces = coded(coding, &body);
        let pieces: Vec<&[u8]> = pieces.chunks(7).collect();
        let server = HttpPeer::with_reply(in_pieces(&pieces));
        let rig = rig(&server, &Limits::default());
        let plain = Request::get(server.url("/")).header("accept-encoding", "identity");
        let reply = rig.send(plain, "", None).await.unwrap();
        assert_eq!(reply.passed, page, "{coding}");
        assert!(!reply.headers.contains_key(CONTENT_ENCODING));
        assert!(!reply.headers.contains_key(CONTENT_LENGTH));
        let billed = rig.budget.spent_amount(Meter::Ingress);
        assert!(billed > page.len() as u64 + body.len() as u64, "{billed}");
    }
}

#[tokio::test]
async fn whoever_asks_for_a_coding_gets_the_bytes_as_they_came() {
    let body = gzip(PAGE);
    let server = HttpPeer::with_reply(Reply::bytes(coded("gzip", &body)));
    let rig = rig(&server, &Limits::default());
    let asks = Request::get(server.url("/")).header("accept-encoding", "br;q=0.5, gzip");
    let reply = rig.send(asks, "", None).await.unwrap();
    assert_eq!(reply.passed, body);
    assert_eq!(reply.headers.get(CONTENT_ENCODING).unwrap(), "gzip");
}

#[tokio::test]
async fn a_coding_that_is_not_decoded_is_refused_by_its_name() {
    for (coding, named) in [("br", "br"), ("gzip, zstd", "zstd"), ("a`{", "a?{")] {
        let server = HttpPeer::with_reply(Reply::bytes(coded(coding, b"\x0b\x02\x80")));
        match rig(&server, &Limits::default()).get(&server.url("/")).await {
            Err(Error::HttpResponseContentCoding(Some(name))) => assert_eq!(name, named),
            other => panic!("{coding}: {other:?}"),
        }
    }
    let server = HttpPeer::with_reply(Reply::bytes(coded("gzip", PAGE)));
    let reply = rig(&server, &Limits::default()).get(&server.url("/")).await.unwrap();
    assert!(reply.passed.is_empty());
    assert_error!(reply.body, Error::HttpResponseContentCoding(Some(_)));
}

#[tokio::test]
async fn a_bomb_ends_at_the_budget_and_at_the_bound_of_a_reply() {
    let server = HttpPeer::with_reply(Reply::bytes(coded("gzip", &gzip(&vec![0; 40 << 20]))));
    for (limit, most) in [(100_000, 100_000), (1 << 40, 32 << 20)] {
        let rig = rig(&server, &Limits { ingress_bytes: limit, ..Limits::default() });
        let reply = rig.get(&server.url("/")).await.unwrap();
        assert_error!(reply.body, Error::HttpResponseBodySize(None));
        assert!(reply.passed.len() <= most, "{}", reply.passed.len());
        assert_eq!(rig.denials(), [DenyCode::LimitReached]);
    }
    let small = HttpPeer::with_reply(Reply::bytes(coded("gzip", &gzip(PAGE))));
    let reply = rig(&small, &Limits::default()).get(&small.url("/")).await.unwrap();
    assert_eq!(reply.passed, PAGE, "the next one is decoded");
}
