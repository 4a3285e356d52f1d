// Package transport makes net/http work in a component: import it for its effect, and http.Get and every
// client without a transport of its own send their requests through the host. A component is 7 MB
// larger with net/http than with package http above this one.
package transport

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	host "belljar.local/tool/http"
)

func init() { http.DefaultTransport = Transport{} }

// Transport sends requests through the host. The body of the answer is read whole.
type Transport struct{}

// RoundTrip implements http.RoundTripper.
func (Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := host.Request{Method: request.Method, URL: request.URL.String()}
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		request.Body.Close()
		if err != nil {
			return nil, err
		}
		sent.Body = body
	}
	for name, values := range request.Header {
		for _, value := range values {
			sent.Headers = append(sent.Headers, host.Header{Name: name, Value: value})
		}
	}
	answer, err := host.Send(sent)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for _, one := range answer.Headers {
		header.Add(one.Name, one.Value)
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", answer.Status, http.StatusText(answer.Status)),
		StatusCode:    answer.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(answer.Body)),
		ContentLength: int64(len(answer.Body)),
		Request:       request,
	}, nil
}
