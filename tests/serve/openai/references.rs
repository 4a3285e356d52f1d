//! Items of earlier responses, named by their ids, as the AI SDK of Vercel sends them.

use serde_json::{Value, json};

use super::{respond, text, weather};
use crate::kit::{Plan, World};

const TURNS: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - say: I will look.
        calls: [{name: get_weather, arguments: {place: Brest}}]
      - expect: {results: [{name: get_weather, contains: rain}]}
        say: It rains.
      - say: And on.
      - say: The neighbour's.
";

/// INV-551.
#[tokio::test]
async fn an_item_is_named_by_its_id_and_found_in_its_own_tenant_alone() {
    let world = World::with(Plan { transcript: TURNS, ..Plan::default() }).await;
    let asking = |input: Value| json!({"model": "teller", "input": input, "tools": [weather()]});
    let user = |text: &str| json!({"role": "user", "content": text});
    let named = |item: &Value| json!({"type": "item_reference", "id": item["id"]});
    let first = respond(&world, "blue-member", asking(json!("weather?"))).await.is(200).json();
    let (said, call) = (&first["output"][0], &first["output"][1]);
    let result =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "rain"});
    let input = json!([user("weather?"), named(said), named(call), result]);
    let second = respond(&world, "blue-member", asking(input)).await.is(200).json();
    let last = &second["output"][0];
    assert_eq!(last["content"][0]["text"], "It rains.");
    let input = json!([user("weather?"), named(last), user("and?")]);
    let third = respond(&world, "blue-member", asking(input)).await.is(200).json();
    assert_eq!(third["output"][0]["content"][0]["text"], "And on.");
    let path = format!("/v1/responses/{}/input_items?order=asc", text(&third["id"]));
    let items = world.call_as("blue-read-only", "GET", &path).send().await.is(200).json();
    assert_eq!(items["data"][1]["content"][0]["text"], "It rains.", "the item in its place");
    // Of another tenant, of nobody, and twice.
    let before = (world.state("blue").await, world.state("red").await);
    let refused = async |caller: &str, ids: &[&str]| {
        let named = ids.iter().map(|id| json!({"type": "item_reference", "id": id}));
        let input: Vec<Value> =
            std::iter::once(user("x")).chain(named).chain([user("y")]).collect();
        let told = respond(&world, caller, asking(json!(input))).await.is(404).json();
        assert_eq!(told["error"]["param"], format!("input[{}]", ids.len()), "{told}");
        text(&told["error"]["message"]).replace(ids[0], "ID")
    };
    let theirs = text(&last["id"]);
    let other = refused("red-member", &[&theirs]).await;
    for nobody in ["msg_20261122T000000000Z-0000_0", "msg_x", "msg_../x_0", "resp_1"] {
        assert_eq!(refused("red-member", &[nobody]).await, other, "{nobody}");
    }
    refused("blue-member", &[&theirs, &theirs]).await;
    refused("blue-member", &[&theirs.replace("_0", "_1")]).await;
    assert_eq!((world.state("blue").await, world.state("red").await), before);
    let neighbour = respond(&world, "red-member", asking(json!("x"))).await.is(200).json();
    assert_eq!(neighbour["status"], "completed");
}
