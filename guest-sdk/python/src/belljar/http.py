"""HTTP requests, to the hosts that the operator granted.

`request` is the whole of it. `urlopen` of `urllib.request` works as well after
`import belljar.urllib`. Redirects are answers like any other here: each hop would be a request of
its own, to a host that may not be granted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional
from urllib.parse import urlsplit

from ._errors import Denied, Failed, InvalidArguments, TooLarge, ToolError

try:
    from componentize_py_types import Err
    from wit_world.imports import outgoing_handler, streams

    try:
        from wit_world.imports import wasi_http_types as types
    except ImportError:
        from wit_world.imports import types
except ImportError:
    types = None

# What the contract of `wasi:io` lets one write take.
_WRITE = 4096
_READ = 64 * 1024


@dataclass
class Response:
    """An answer, whatever its status."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    def header(self, name: str) -> Optional[str]:
        """The first header of this name."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key == wanted), None)


def get(url: str, headers: Optional[dict[str, str]] = None, timeout: float = 30.0) -> Response:
    """`request("GET", ...)`."""
    return request("GET", url, headers, timeout=timeout)


def request(
    method: str,
    url: str,
    headers: Optional[dict[str, str]] = None,
    body: Optional[bytes] = None,
    timeout: float = 30.0,
    max_body: int = 8 << 20,
) -> Response:
    """Sends a request and reads the whole answer. `timeout` is in seconds, for each of connecting,
    the first byte and the time between two; `max_body` is in bytes, and more is `TooLarge`."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidArguments(f"`{url}` is no http or https URL")
    if types is None:
        raise Failed("there is no network outside of a component")
    try:
        return _send(method, parts, headers or {}, body, int(timeout * 1e9), max_body)
    except Err as error:
        raise _error(error.value, parts.netloc) from None


def _send(method, parts, headers, body, timeout, max_body) -> Response:
    pairs = [(name.lower(), value.encode()) for name, value in headers.items()]
    # Its length is the body's own, and its framing the host's business.
    pairs = [pair for pair in pairs if pair[0] not in ("content-length", "connection", "host")]
    if body is not None:
        pairs.append(("content-length", str(len(body)).encode()))
    outgoing = types.OutgoingRequest(types.Fields.from_list(pairs))
    outgoing.set_method(_method(method))
    outgoing.set_scheme(types.Scheme_Https() if parts.scheme == "https" else types.Scheme_Http())
    outgoing.set_authority(parts.netloc)
    outgoing.set_path_with_query((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    options = types.RequestOptions()
    options.set_connect_timeout(timeout)
    options.set_first_byte_timeout(timeout)
    options.set_between_bytes_timeout(timeout)
    sink = outgoing.body()
    future = outgoing_handler.handle(outgoing, options)
    if body:
        with sink.write() as stream:
            for at in range(0, len(body), _WRITE):
                stream.blocking_write_and_flush(body[at : at + _WRITE])
    types.OutgoingBody.finish(sink, None)
    with future.subscribe() as ready:
        ready.block()
    answer = future.get()
    while not isinstance(answer, types.IncomingResponse):
        if isinstance(answer, Err):
            raise answer
        answer = answer.value
    with answer:
        with answer.headers() as fields:
            pairs = [(name.lower(), value.decode("latin-1")) for name, value in fields.entries()]
        return Response(answer.status(), pairs, _read(answer, max_body))


def _read(answer, max_body: int) -> bytes:
    chunks, size = [], 0
    with answer.consume() as body, body.stream() as stream:
        while True:
            try:
                chunk = stream.blocking_read(_READ)
            except Err as error:
                if isinstance(error.value, streams.StreamError_Closed):
                    return b"".join(chunks)
                raise
            size += len(chunk)
            if size > max_body:
                raise TooLarge(f"the response has more than {max_body} bytes")
            chunks.append(chunk)


def _method(name: str):
    known = getattr(types, f"Method_{name.capitalize()}", None)
    return known() if known and name.upper() != "OTHER" else types.Method_Other(name)


def _error(code, host: str) -> ToolError:
    """The contract's error for a code of `wasi:http`."""
    if isinstance(code, streams.StreamError_LastOperationFailed):
        return Failed(f"the exchange with `{host}` broke off")
    name = type(code).__name__.removeprefix("ErrorCode_")
    if name == "HttpRequestDenied":
        return Denied(f"requests to `{host}` are not allowed")
    if name == "DestinationIpProhibited":
        return Denied(f"the address of `{host}` is not allowed")
    if name in ("HttpResponseBodySize", "HttpResponseHeaderSectionSize"):
        return TooLarge(f"the response of `{host}` is larger than allowed")
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return Failed(f"the exchange with `{host}` failed:{words}")
