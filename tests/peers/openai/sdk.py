"""OpenAI's package for Python, against `belljar serve`."""

import os
import time

import openai
from pydantic import BaseModel

URL, KEY = os.environ["BELLJAR_URL"], os.environ["BELLJAR_KEY"]
SAID = "High water is at 06:12."

client = openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0)

FUNCTION = {
    "name": "get_tide",
    "description": "When high water is.",
    "parameters": {
        "type": "object",
        "properties": {"port": {"type": "string"}},
        "required": ["port"],
        "additionalProperties": False,
    },
}
OF_CHAT = {"type": "function", "function": FUNCTION}
OF_RESPONSES = {"type": "function", "strict": True, **FUNCTION}


class Hour(BaseModel):
    hour: int


def user(text="When is high water?"):
    return [{"role": "user", "content": text}]


def fails(kind, code, call):
    try:
        call()
    except kind as error:
        assert error.code == code, (error.code, error.body)
        return error
    raise AssertionError(f"no {kind.__name__}")


def models():
    names = [model.id for model in client.models.list()]
    assert "py-clerk" in names, names
    assert client.models.retrieve("py-clerk").owned_by == "belljar"


def chat():
    raw = client.chat.completions.with_raw_response.create(model="py-clerk", messages=user())
    answer = raw.parse()
    assert answer.choices[0].message.content == SAID
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens_details.cached_tokens == 8, answer.usage
    assert answer.usage.total_tokens == 27, answer.usage
    assert answer.id == "chatcmpl-" + raw.headers["x-belljar-run"]


def chat_streamed():
    chunks = list(client.chat.completions.create(
        model="py-clerk", messages=user(), stream=True, stream_options={"include_usage": True},
    ))
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said == SAID, said
    assert chunks[-1].usage.total_tokens == 27
    with client.chat.completions.stream(model="py-clerk", messages=user()) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == SAID


def chat_tools(stream):
    messages = user()
    if stream:
        with client.chat.completions.stream(
            model="py-tools", messages=messages, tools=[OF_CHAT],
        ) as events:
            answer = events.get_final_completion()
    else:
        answer = client.chat.completions.create(
            model="py-tools", messages=messages, tools=[OF_CHAT],
        )
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls", choice
    call = choice.message.tool_calls[0]
    assert (call.function.name, call.function.arguments) == ("get_tide", '{"port":"Brest"}')
    messages.append({"role": "assistant", "tool_calls": [
        {"id": call.id, "type": "function",
         "function": {"name": call.function.name, "arguments": call.function.arguments}},
    ]})
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "06:12"})
    told = client.chat.completions.create(model="py-tools", messages=messages, tools=[OF_CHAT])
    assert told.choices[0].message.content == SAID


def chat_formed():
    answer = client.chat.completions.parse(
        model="py-formed", messages=user(), response_format=Hour,
    )
    assert answer.choices[0].message.parsed == Hour(hour=6)


def responses():
    answer = client.responses.create(model="py-clerk", input="When?", metadata={"a": "b"})
    assert (answer.status, answer.output_text) == ("completed", SAID)
    assert answer.usage.input_tokens_details.cached_tokens == 8
    more = client.responses.create(
        model="py-clerk", input="And then?", previous_response_id=answer.id,
        instructions="Be brief.",
    )
    assert (more.output_text, more.previous_response_id) == (SAID, answer.id)
    assert client.responses.retrieve(more.id).output_text == SAID
    items = list(client.responses.input_items.list(more.id))
    assert items[0].content[0].text == "And then?"
    client.responses.delete(more.id)
    fails(openai.NotFoundError, "not_found", lambda: client.responses.retrieve(more.id))


def responses_streamed():
    with client.responses.stream(model="py-clerk", input="When?") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_text == SAID
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds
    events = list(client.responses.create(model="py-clerk", input="When?", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))


def responses_tools(stream):
    asked = {"model": "py-tools", "input": "When?", "tools": [OF_RESPONSES]}
    if stream:
        with client.responses.stream(**asked) as events:
            deltas = [event.delta for event in events
                      if event.type == "response.function_call_arguments.delta"]
            called = events.get_final_response()
        assert "".join(deltas) == '{"port":"Brest"}', deltas
    else:
        called = client.responses.create(**asked)
    call = called.output[-1]
    assert (call.type, call.name) == ("function_call", "get_tide"), called.output
    left_out = {**asked, "input": "And?", "previous_response_id": called.id}
    fails(openai.BadRequestError, "invalid_value", lambda: client.responses.create(**left_out))
    told = client.responses.create(
        model="py-tools", tools=[OF_RESPONSES], previous_response_id=called.id,
        input=[{"type": "function_call_output", "call_id": call.call_id, "output": "06:12"}],
    )
    assert told.output_text == SAID


def responses_formed():
    answer = client.responses.parse(model="py-formed", input="When?", text_format=Hour)
    assert answer.output_parsed == Hour(hour=6)


def background():
    begun = client.responses.create(model="py-clerk", input="When?", background=True)
    end = time.monotonic() + 60
    while begun.status in ("queued", "in_progress"):
        assert time.monotonic() < end, begun
        begun = client.responses.retrieve(begun.id)
    assert begun.output_text == SAID
    slow = client.responses.create(model="py-slow", input="When?", background=True)
    assert slow.status == "in_progress", slow.status
    assert client.responses.cancel(slow.id).status == "cancelled"


def errors():
    create = client.chat.completions.create
    fails(openai.NotFoundError, "model_not_found",
          lambda: create(model="gpt-5", messages=user()))
    error = fails(openai.BadRequestError, "unsupported_parameter",
                  lambda: client.responses.create(
                      model="py-clerk", input="x", conversation="conv_elsewhere"))
    assert error.param == "conversation", error.param
    stranger = openai.OpenAI(base_url=URL, api_key="bj_no", max_retries=0)
    fails(openai.AuthenticationError, "invalid_api_key", stranger.models.list)
    reader = openai.OpenAI(base_url=URL, api_key=os.environ["BELLJAR_READER"], max_retries=0)
    assert any(model.id == "py-clerk" for model in reader.models.list())
    fails(openai.PermissionDeniedError, "permission_denied",
          lambda: reader.responses.create(model="py-clerk", input="When?"))
    fails(openai.NotFoundError, "previous_response_not_found",
          lambda: client.responses.create(
              model="py-clerk", input="x", previous_response_id="resp_nobody"))
    shell = {**OF_RESPONSES, "name": "shell"}
    fails(openai.BadRequestError, "invalid_value",
          lambda: client.responses.create(model="py-clerk", input="x", tools=[shell]))


CHECKS = [
    ("models", models),
    ("chat", chat),
    ("chat, streamed", chat_streamed),
    ("chat with tools", lambda: chat_tools(False)),
    ("chat with tools, streamed", lambda: chat_tools(True)),
    ("chat of a form", chat_formed),
    ("responses", responses),
    ("responses, streamed", responses_streamed),
    ("responses with tools", lambda: responses_tools(False)),
    ("responses with tools, streamed", lambda: responses_tools(True)),
    ("responses of a form", responses_formed),
    ("background", background),
    ("errors", errors),
]

for name, check in CHECKS:
    check()
    print(f"python {openai.__version__}: {name}")
