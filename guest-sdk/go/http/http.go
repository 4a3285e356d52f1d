//go:build wasip1

// Package http makes net/http work in a component: import it for its effect, and http.Get and every
// client without a transport of its own send their requests through the host, to the hosts that the
// operator granted.
package http

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"unsafe"

	"belljar.local/tool"
)

func init() { http.DefaultTransport = Transport{} }

// Transport sends requests through the host.
type Transport struct{}

// slot is room for the results below, as the canonical ABI lays them out; the largest has 56 bytes.
type slot struct {
	_     [0]uint64
	bytes [64]byte
}

func (s *slot) word(at int) uint32 { return *(*uint32)(unsafe.Pointer(&s.bytes[at])) }

//go:wasmimport wasi:http/types@0.2.12 [constructor]fields
func newFields() uint32

//go:wasmimport wasi:http/types@0.2.12 [method]fields.append
func fieldsAppend(self uint32, name unsafe.Pointer, nameLength uint32, value unsafe.Pointer, length uint32, into unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [method]fields.entries
func fieldsEntries(self uint32, into unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [constructor]outgoing-request
func newRequest(headers uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-method
func setMethod(self, tag uint32, name unsafe.Pointer, length uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-scheme
func setScheme(self, some, tag uint32, name unsafe.Pointer, length uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-authority
func setAuthority(self, some uint32, text unsafe.Pointer, length uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.set-path-with-query
func setPath(self, some uint32, text unsafe.Pointer, length uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-request.body
func requestBody(self uint32, into unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [method]outgoing-body.write
func bodyWrite(self uint32, into unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [static]outgoing-body.finish
func bodyFinish(self, some, trailers uint32, into unsafe.Pointer)

//go:wasmimport wasi:http/outgoing-handler@0.2.12 handle
func handle(request, some, options uint32, into unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [method]future-incoming-response.subscribe
func futureSubscribe(self uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]future-incoming-response.get
func futureGet(self uint32, into unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [resource-drop]future-incoming-response
func dropFuture(self uint32)

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-response.status
func responseStatus(self uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-response.headers
func responseHeaders(self uint32) uint32

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-response.consume
func responseConsume(self uint32, into unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [method]incoming-body.stream
func bodyStream(self uint32, into unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.12 [resource-drop]fields
func dropFields(self uint32)

//go:wasmimport wasi:http/types@0.2.12 [resource-drop]incoming-response
func dropResponse(self uint32)

//go:wasmimport wasi:http/types@0.2.12 [resource-drop]incoming-body
func dropBody(self uint32)

//go:wasmimport wasi:io/poll@0.2.12 [method]pollable.block
func pollableBlock(self uint32)

//go:wasmimport wasi:io/poll@0.2.12 [resource-drop]pollable
func dropPollable(self uint32)

//go:wasmimport wasi:io/streams@0.2.12 [method]input-stream.blocking-read
func streamRead(self uint32, length uint64, into unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.12 [method]output-stream.blocking-write-and-flush
func streamWrite(self uint32, data unsafe.Pointer, length uint32, into unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.12 [resource-drop]input-stream
func dropInput(self uint32)

//go:wasmimport wasi:io/streams@0.2.12 [resource-drop]output-stream
func dropOutput(self uint32)

var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

func data(text string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(text)), uint32(len(text))
}

// RoundTrip implements http.RoundTripper. The body of the answer is read whole, up to what the host
// lets through.
func (Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		read, err := io.ReadAll(request.Body)
		request.Body.Close()
		if err != nil {
			return nil, err
		}
		body = read
	}
	host := request.URL.Host
	outgoing, err := outgoing(request, len(body))
	if err != nil {
		return nil, err
	}
	var room slot
	into := unsafe.Pointer(&room)
	requestBody(outgoing, into)
	sink := room.word(4)
	handle(outgoing, 0, 0, into)
	if room.bytes[0] != 0 {
		return nil, refusal(room.bytes[8], host)
	}
	future := room.word(8)
	defer dropFuture(future)
	if len(body) > 0 {
		bodyWrite(sink, into)
		stream := room.word(4)
		for len(body) > 0 {
			now := body[:min(len(body), 4096)]
			streamWrite(stream, unsafe.Pointer(unsafe.SliceData(now)), uint32(len(now)), into)
			if room.bytes[0] != 0 {
				return nil, tool.Failed("`%s` did not take the request", host)
			}
			body = body[len(now):]
		}
		dropOutput(stream)
	}
	bodyFinish(sink, 0, 0, into)
	if room.bytes[0] != 0 {
		return nil, refusal(room.bytes[8], host)
	}
	ready := futureSubscribe(future)
	pollableBlock(ready)
	dropPollable(ready)
	futureGet(future, into)
	if room.bytes[0] == 0 || room.bytes[8] != 0 {
		return nil, tool.Failed("`%s` gave no answer", host)
	}
	if room.bytes[16] != 0 {
		return nil, refusal(room.bytes[24], host)
	}
	response := room.word(24)
	defer dropResponse(response)
	read, err := readAll(response, host)
	if err != nil {
		return nil, err
	}
	status := int(responseStatus(response))
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", status, http.StatusText(status)),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        headers(response),
		Body:          io.NopCloser(bytes.NewReader(read)),
		ContentLength: int64(len(read)),
		Request:       request,
	}, nil
}

func outgoing(request *http.Request, length int) (uint32, error) {
	var room slot
	into := unsafe.Pointer(&room)
	fields := newFields()
	add := func(name, value string) {
		namePointer, nameLength := data(name)
		valuePointer, valueLength := data(value)
		fieldsAppend(fields, namePointer, nameLength, valuePointer, valueLength, into)
	}
	for name, values := range request.Header {
		for _, value := range values {
			add(strings.ToLower(name), value)
		}
	}
	if length > 0 {
		add("content-length", fmt.Sprint(length))
	}
	outgoing := newRequest(fields)
	tag := uint32(len(methods))
	method := request.Method
	if method == "" {
		method = "GET"
	}
	for at, known := range methods {
		if known == method {
			tag = uint32(at)
		}
	}
	secure := uint32(0)
	if request.URL.Scheme == "https" {
		secure = 1
	}
	methodPointer, methodLength := data(method)
	hostPointer, hostLength := data(request.URL.Host)
	path := request.URL.RequestURI()
	pathPointer, pathLength := data(path)
	bad := setMethod(outgoing, tag, methodPointer, methodLength) + setScheme(outgoing, 1, secure, nil, 0) +
		setAuthority(outgoing, 1, hostPointer, hostLength) + setPath(outgoing, 1, pathPointer, pathLength)
	runtime.KeepAlive(path)
	if bad != 0 {
		return 0, tool.InvalidArguments("`%s` cannot be requested", request.URL)
	}
	return outgoing, nil
}

func headers(response uint32) http.Header {
	var room slot
	fields := responseHeaders(response)
	defer dropFields(fields)
	fieldsEntries(fields, unsafe.Pointer(&room))
	type entry struct {
		name, nameLength, value, valueLength uint32
	}
	found := http.Header{}
	length := room.word(4)
	if length == 0 {
		return found
	}
	list := tool.At(room.word(0))
	for _, one := range unsafe.Slice((*entry)(list), length) {
		found.Add(string(tool.Taken(tool.At(one.name), one.nameLength)), string(tool.Taken(tool.At(one.value), one.valueLength)))
	}
	tool.Taken(list, length*16)
	return found
}

func readAll(response uint32, host string) ([]byte, error) {
	var room slot
	into := unsafe.Pointer(&room)
	responseConsume(response, into)
	body := room.word(4)
	defer dropBody(body)
	bodyStream(body, into)
	stream := room.word(4)
	defer dropInput(stream)
	var read []byte
	for {
		streamRead(stream, 64<<10, into)
		if room.bytes[0] != 0 {
			break
		}
		chunk := tool.At(room.word(4))
		read = append(read, tool.Taken(chunk, room.word(8))...)
	}
	if room.bytes[4] != 1 {
		return nil, tool.Failed("the response of `%s` broke off", host)
	}
	return read, nil
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
