// Package http sends requests through the host, to the hosts that the operator granted. The host joins
// secrets, which are never seen here. It is a tenth of the size of net/http, for which package
// transport, below this one, does the same.
package http

import (
	"strings"

	"belljar.local/tool"
)

// Request is a request. Without a method it is GET.
type Request struct {
	Method  string
	URL     string
	Headers []Header
	Body    []byte
}

// Header is one line of a head.
type Header struct {
	Name  string
	Value string
}

// Response is an answer, read whole, whatever its status; a redirect is one, too.
type Response struct {
	Status int
	// Headers have their names in lower case, in the order in which they came.
	Headers []Header
	Body    []byte
}

// Get asks for what is at a URL.
func Get(url string) (*Response, error) { return Send(Request{URL: url}) }

// Send sends a request. Its error is one of the contract's.
func Send(request Request) (*Response, error) {
	if request.Method == "" {
		request.Method = "GET"
	}
	scheme, rest, is := strings.Cut(request.URL, "://")
	if scheme = strings.ToLower(scheme); !is || (scheme != "http" && scheme != "https") {
		return nil, tool.InvalidArguments("`%s` cannot be requested", request.URL)
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	where := target{scheme == "https", rest[:end], rest[end:]}
	if !strings.HasPrefix(where.path, "/") {
		where.path = "/" + where.path
	}
	return send(request, where)
}

// target is a URL in its parts.
type target struct {
	secure    bool
	authority string
	path      string
}

// refusal is the contract's error for a code of wasi:http.
func refusal(code uint8, host string) error {
	switch code {
	case 15:
		return tool.Denied("requests to `%s` are not allowed", host)
	case 4:
		return tool.Denied("the address of `%s` is not allowed", host)
	case 26, 28:
		return tool.TooLarge("the response of `%s` is larger than allowed", host)
	default:
		return tool.Failed("the exchange with `%s` failed (wasi:http error %d)", host, code)
	}
}
