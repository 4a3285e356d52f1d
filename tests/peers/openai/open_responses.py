"""The HTTP cases of Open Responses, against `belljar serve`: basic, streaming, system, tools, tools
streamed, image, several turns.

Each answer is held against the types that OpenAI's package has for it, strictly, and against the
fields that the specification wants to be there, null or not.
"""

import json
import os
import urllib.error
import urllib.request

from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

EVENT = TypeAdapter(ResponseStreamEvent)

REQUIRED = {
    "id", "object", "created_at", "completed_at", "status", "incomplete_details", "model",
    "previous_response_id", "instructions", "output", "error", "tools", "tool_choice", "truncation",
    "parallel_tool_calls", "text", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs",
    "temperature", "reasoning", "usage", "max_output_tokens", "max_tool_calls", "store",
    "background", "service_tier", "metadata", "safety_identifier", "prompt_cache_key",
}

TIDE = {
    "type": "function", "name": "get_tide", "description": "When high water is.",
    "parameters": {"type": "object", "properties": {"port": {"type": "string"}}},
}


def post(body):
    """The status, the headers and the text of a response."""
    request = urllib.request.Request(
        os.environ["BELLJAR_URL"] + "/responses", json.dumps(body).encode(), method="POST",
        headers={
            "authorization": "Bearer " + os.environ["BELLJAR_KEY"],
            "content-type": "application/json",
        },
    )
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers, answer.read().decode()


def message(role, text):
    return {"type": "message", "role": role, "content": text}


def whole(response):
    missing = REQUIRED - response.keys()
    assert not missing, missing
    Response.model_validate_json(json.dumps(response), strict=True)
    assert response["object"] == "response"
    ended = response["status"] == "completed"
    assert (response["completed_at"] is not None) == ended, response["completed_at"]
    if ended:
        usage = response["usage"]
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"], usage
        assert "cached_tokens" in usage["input_tokens_details"], usage
        assert "reasoning_tokens" in usage["output_tokens_details"], usage
    for tool in response["tools"]:
        assert {"type", "name", "description", "parameters", "strict"} <= tool.keys(), tool
    return response


def create(**body):
    status, headers, text = post(body)
    assert status == 200, text
    assert headers["x-belljar-run"]
    return whole(json.loads(text))


def stream(**body):
    events = []
    status, headers, text = post({**body, "stream": True})
    assert status == 200, text
    assert headers["content-type"].startswith("text/event-stream")
    frames = [frame for frame in text.split("\n\n") if frame and not frame.startswith(":")]
    assert frames[-1] == "data: [DONE]", frames[-1]
    for number, frame in enumerate(frames[:-1]):
        kind, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert kind == "event: " + event["type"], frame
        assert event["sequence_number"] == number, frame
        EVENT.validate_json(json.dumps(event), strict=True)
        events.append(event)
    added = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    final = whole(events[-1]["response"])
    assert added == [item["id"] for item in done], "each item is begun and done"
    assert done == final["output"], "the last event has the items that were sent"
    return events, final


def basic():
    response = create(model="open-clerk", input=[message("user", "When is high water?")])
    assert response["output"][0]["content"][0]["text"], response["output"]


def streaming():
    events, final = stream(model="open-clerk", input=[message("user", "When is high water?")])
    said = "".join(event["delta"] for event in events
                   if event["type"] == "response.output_text.delta")
    assert said == final["output"][0]["content"][0]["text"]


def system():
    response = create(model="open-clerk", input=[
        message("system", "Answer like a pirate."), message("user", "When is high water?"),
    ])
    assert response["status"] == "completed"


def tools():
    response = create(model="open-tools", input="When is high water?", tools=[TIDE])
    call = response["output"][0]
    assert (call["type"], call["name"], call["status"]) == ("function_call", "get_tide", "completed")
    assert json.loads(call["arguments"]) == {"port": "Brest"}
    told = create(model="open-tools", previous_response_id=response["id"], tools=[TIDE], input=[
        {"type": "function_call_output", "call_id": call["call_id"], "output": "06:12"},
    ])
    assert "06:12" in told["output"][0]["content"][0]["text"]


def tools_streamed():
    events, final = stream(model="open-tools", input="When is high water?", tools=[TIDE])
    kinds = [event["type"] for event in events]
    assert "response.function_call_arguments.delta" in kinds, kinds
    call = final["output"][0]
    # Without a name for what came before: everything that was said is sent again.
    told = create(model="open-tools", tools=[TIDE], input=[
        message("user", "When is high water?"),
        {"type": "function_call", "call_id": call["call_id"], "name": call["name"],
         "arguments": call["arguments"]},
        {"type": "function_call_output", "call_id": call["call_id"], "output": "06:12"},
    ])
    assert "06:12" in told["output"][0]["content"][0]["text"]


def image():
    pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
    parts = [{"type": "input_text", "text": "What is this?"},
             {"type": "input_image", "image_url": pixel}]
    asked = [{"type": "message", "role": "user", "content": parts}]
    response = create(model="open-clerk", input=asked)
    assert response["output"][0]["role"] == "assistant"
    # Nothing is fetched: one that lies elsewhere is refused, with the place of what is at fault.
    parts[1]["image_url"] = "https://images.example/pixel.gif"
    status, _, text = post({"model": "open-clerk", "input": asked})
    assert status == 400, text
    error = json.loads(text)["error"]
    assert error["code"] == "unsupported_parameter", error
    assert error["param"] == "input[0].content[1]", error


def several_turns():
    response = create(model="open-clerk", input=[
        message("user", "I am in Brest."),
        message("assistant", "Noted."),
        message("user", "When is high water?"),
    ])
    assert response["output"][0]["role"] == "assistant"


CASES = [basic, streaming, system, tools, tools_streamed, image, several_turns]

for case in CASES:
    case()
    print(f"open responses: {case.__name__}")
