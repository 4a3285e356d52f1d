//! Images of a caller: sent to a model that reads them, stored once, and refused by one that does not.

use serde_json::{Value, json};

use super::{complete, error, respond, text, user};
use crate::kit::{Plan, World};

/// One pixel.
const GIF: &str = "R0lGODlhAQABAAAAACw=";

fn url() -> String {
    format!("data:image/gif;base64,{GIF}")
}

fn shown(words: &str) -> Value {
    let words = json!({"type": "input_text", "text": words});
    json!([{"role": "user", "content": [words, {"type": "input_image", "image_url": url()}]}])
}

const SEES: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - expect: {images: [image/gif]}
        say: A pixel.
      - expect: {images: [image/gif]}
        say: Still that one.
      - expect: {images: [image/gif, image/gif]}
        say: Twice.
      - expect: {images: [image/gif]}
        say: An earlier one.
";

/// The files of the one session that has some, besides the one that every tenant has.
async fn files(world: &World) -> Vec<Value> {
    let mut files = Vec::new();
    for session in world.state("blue").await.0 {
        let path = format!("/v1/sessions/{}/attachments", session.id);
        let listed = world.call_as("blue-read-only", "GET", &path).send().await.is(200).json();
        files.extend(listed["attachments"].as_array().unwrap().iter().cloned());
    }
    files.retain(|file| file["name"] != "page.html");
    files
}

/// INV-347.
#[tokio::test]
async fn an_image_reaches_the_model_in_every_later_turn_and_is_stored_once() {
    let world = World::with(Plan { transcript: SEES, ..Plan::default() }).await;
    let body = json!({"model": "teller", "input": shown("what is it?")});
    let first = respond(&world, "blue-member", body).await.is(200).json();
    assert_eq!(first["output"][0]["content"][0]["text"], "A pixel.");
    let go_on = |input: Value| json!({"model": "teller", "previous_response_id": first["id"], "input": input});
    let next = respond(&world, "blue-member", go_on(json!("sure?"))).await.is(200).json();
    assert_eq!(next["output"][0]["content"][0]["text"], "Still that one.");
    let body = json!({
        "model": "teller", "previous_response_id": next["id"], "input": shown("and this?"),
    });
    let third = respond(&world, "blue-member", body).await.is(200).json();
    assert_eq!(third["output"][0]["content"][0]["text"], "Twice.");
    let files = files(&world).await;
    assert_eq!(files.len(), 1, "{files:#?}");
    assert_eq!(files[0]["media_type"], "image/gif");
    // No row of a message has its bytes, nor what is read of the input.
    let rows = world.state("blue").await.1;
    assert!(rows.iter().all(|row| !format!("{row:?}").contains(GIF)), "{rows:#?}");
    let path = format!("/v1/responses/{}/input_items", text(&first["id"]));
    let items = world.call_as("blue-member", "GET", &path).send().await.is(200).json();
    let told = text(&items["data"][0]["content"][1]["image_url"]);
    assert_eq!(told, format!("attachment:{}", text(&files[0]["name"])));
    // From an earlier response on, in a session of its own.
    let other = respond(&world, "blue-member", go_on(json!("once more"))).await.is(200).json();
    assert_eq!(other["output"][0]["content"][0]["text"], "An earlier one.");
}

const CHAT: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - expect: {images: [image/gif]}
        say: In what was said before.
      - expect: {images: [image/gif]}
        say: Alone.
";

#[tokio::test]
async fn a_chat_has_images_in_earlier_messages_and_without_words() {
    let world = World::with(Plan { transcript: CHAT, ..Plan::default() }).await;
    let image = json!([{"type": "image_url", "image_url": {"url": url(), "detail": "low"}}]);
    let said = json!({"role": "assistant", "content": "A pixel."});
    let messages = json!([{"role": "user", "content": image}, said, user("where?")]);
    let body = json!({"model": "teller", "messages": messages});
    let answer = complete(&world, "blue-member", body).await.is(200).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "In what was said before.");
    let body = json!({"model": "teller", "messages": [{"role": "user", "content": image}]});
    let answer = complete(&world, "blue-member", body).await.is(200).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "Alone.");
}

const BLIND: &str = "
transcript: 1
text_only: true
agents:
  - agent: teller
    turns:
      - say: Once upon a time.
      - say: The end.
";

/// INV-346.
#[tokio::test]
async fn a_model_that_reads_text_alone_is_sent_no_image_and_nothing_is_stored() {
    let world = World::with(Plan { transcript: BLIND, ..Plan::default() }).await;
    let before = world.state("blue").await;
    let body = json!({"model": "teller", "input": shown("what is it?")});
    let answer = respond(&world, "blue-member", body).await.is(400);
    let message = answer.json()["error"]["message"].to_string();
    assert!(message.contains("reads text alone") && message.contains("images = true"), "{message}");
    assert_eq!(answer.json()["error"]["param"], "input");
    let image = json!([{"type": "image_url", "image_url": {"url": url()}}]);
    let body = json!({"model": "teller", "messages": [{"role": "user", "content": image}]});
    let answer = complete(&world, "blue-member", body).await.is(400);
    assert_eq!(error(&answer, "invalid_value")["param"], "messages");
    assert_eq!(world.state("blue").await, before);
    let body = json!({"model": "teller", "input": "tell"});
    respond(&world, "blue-member", body.clone()).await.is(200);
    respond(&world, "red-member", body).await.is(200);
}

/// INV-345, INV-346.
#[tokio::test]
async fn what_is_no_image_or_too_much_of_it_is_refused_and_nothing_is_stored() {
    let world = World::with(Plan { transcript: SEES, ..Plan::default() }).await;
    let before = world.state("blue").await;
    let of = |urls: Vec<String>| {
        let part = |url: String| json!({"type": "input_image", "image_url": url});
        let content: Vec<Value> = urls.into_iter().map(part).collect();
        json!({"model": "teller", "input": [{"role": "user", "content": content}]})
    };
    for bad in [
        format!("data:image/png;base64,{GIF}"),
        "data:image/png;base64,PHN2Zz48L3N2Zz4=".to_owned(),
        "data:image/gif;base64,%%%".to_owned(),
    ] {
        let answer = respond(&world, "blue-member", of(vec![bad])).await.is(400);
        assert_eq!(error(&answer, "invalid_value")["param"], "input[0].content[0]");
    }
    let answer = respond(&world, "blue-member", of(vec![url(); 21])).await.is(400);
    assert!(answer.json()["error"]["message"].to_string().contains("21 images"));
    assert_eq!(error(&answer, "invalid_value")["param"], "input");
    for address in ["https://example.org/a.png", "http://127.0.0.1/a.png"] {
        let answer = respond(&world, "blue-member", of(vec![address.to_owned()])).await.is(400);
        let said = error(&answer, "unsupported_parameter")["message"].to_string();
        assert!(said.contains("nothing is fetched") && said.contains("base64"), "{said}");
    }
    let long = format!("data:image/png;base64,{}", "A".repeat(belljar_server::MAX_BODY));
    let answer = respond(&world, "blue-member", of(vec![long])).await.is(413);
    let said = error(&answer, "request_too_large")["message"].to_string();
    assert!(said.contains("of images send smaller ones"), "{said}");
    assert_eq!(world.state("blue").await, before);
    let body = json!({"model": "teller", "input": shown("what is it?")});
    respond(&world, "red-member", body).await.is(200);
}
