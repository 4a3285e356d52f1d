//go:build wasip1

package http

import (
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"belljar.local/tool"
	"belljar.local/tool/internal/abi"
)

var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// chunk is how much of a body goes over at once.
const chunk = 4096

func data(text string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(text)), uint32(len(text))
}

func send(request Request, where target) (*Response, error) {
	outgoing, err := outgoing(request, where)
	if err != nil {
		return nil, err
	}
	room, host := new(slot), where.authority
	into := unsafe.Pointer(room)
	requestBody(outgoing, into)
	sink := room.word(4)
	handle(outgoing, 0, 0, into)
	if room.bytes[0] != 0 {
		return nil, refusal(room.bytes[8], host)
	}
	future := room.word(8)
	defer dropFuture(future)
	if len(request.Body) > 0 {
		bodyWrite(sink, into)
		stream := room.word(4)
		for body := request.Body; len(body) > 0; {
			part := body[:min(len(body), chunk)]
			streamWrite(stream, unsafe.Pointer(unsafe.SliceData(part)), uint32(len(part)), into)
			if room.bytes[0] != 0 {
				return nil, tool.Failed("`%s` did not take the request", host)
			}
			body = body[len(part):]
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
	body, err := readAll(response, host)
	if err != nil {
		return nil, err
	}
	return &Response{int(responseStatus(response)), headers(response), body}, nil
}

func outgoing(request Request, where target) (uint32, error) {
	into := unsafe.Pointer(new(slot))
	fields := newFields()
	add := func(name, value string) {
		namePointer, nameLength := data(name)
		valuePointer, valueLength := data(value)
		fieldsAppend(fields, namePointer, nameLength, valuePointer, valueLength, into)
	}
	for _, one := range request.Headers {
		add(strings.ToLower(one.Name), one.Value)
	}
	if len(request.Body) > 0 {
		add("content-length", strconv.Itoa(len(request.Body)))
	}
	outgoing := newRequest(fields)
	tag := uint32(len(methods))
	for at, known := range methods {
		if known == request.Method {
			tag = uint32(at)
		}
	}
	secure := uint32(0)
	if where.secure {
		secure = 1
	}
	methodPointer, methodLength := data(request.Method)
	hostPointer, hostLength := data(where.authority)
	pathPointer, pathLength := data(where.path)
	bad := setMethod(outgoing, tag, methodPointer, methodLength) + setScheme(outgoing, 1, secure, nil, 0) +
		setAuthority(outgoing, 1, hostPointer, hostLength) + setPath(outgoing, 1, pathPointer, pathLength)
	runtime.KeepAlive(where)
	if bad != 0 {
		return 0, tool.InvalidArguments("`%s` cannot be requested", request.URL)
	}
	return outgoing, nil
}

func headers(response uint32) []Header {
	room := new(slot)
	fields := responseHeaders(response)
	defer dropFields(fields)
	abi.Begin()
	fieldsEntries(fields, unsafe.Pointer(room))
	defer abi.Free()
	var found []Header
	for _, one := range abi.List[struct{ name, value abi.Text }](room.text(0)) {
		found = append(found, Header{one.name.String(), one.value.String()})
	}
	return found
}

func readAll(response uint32, host string) ([]byte, error) {
	room := new(slot)
	into := unsafe.Pointer(room)
	responseConsume(response, into)
	body := room.word(4)
	defer dropBody(body)
	bodyStream(body, into)
	stream := room.word(4)
	defer dropInput(stream)
	var read []byte
	for {
		abi.Begin()
		streamRead(stream, 64<<10, into)
		if room.bytes[0] != 0 {
			abi.Free()
			break
		}
		read = append(read, room.text(4).Bytes()...)
		abi.Free()
	}
	if room.bytes[4] != 1 {
		return nil, tool.Failed("the response of `%s` broke off", host)
	}
	return read, nil
}
