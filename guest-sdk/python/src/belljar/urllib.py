"""Makes `urllib.request` work in a component: import it, and `urlopen` sends its requests through
the host. Costs a megabyte or two of component; `belljar.http` is smaller."""

from __future__ import annotations

import email.message
import io
import urllib.request
import urllib.response

from . import http


class _Handler(urllib.request.BaseHandler):
    # In front of the handlers that would open sockets.
    handler_order = 100

    def http_open(self, request: urllib.request.Request):
        headers = {**request.headers, **request.unredirected_hdrs}
        timeout = request.timeout if isinstance(request.timeout, (int, float)) else 30.0
        answer = http.request(request.get_method(), request.full_url, headers, request.data, timeout)
        message = email.message.Message()
        for name, value in answer.headers:
            message[name] = value
        body = io.BytesIO(answer.body)
        found = urllib.response.addinfourl(body, message, request.full_url, answer.status)
        found.msg = ""
        return found

    https_open = http_open


urllib.request.install_opener(urllib.request.build_opener(_Handler()))
