//go:build wasip1

package http

import (
	"unsafe"

	"belljar.local/tool/internal/abi"
)

// slot is room for the results below, as the canonical ABI lays them out; the largest has 56 bytes.
type slot struct {
	_     [0]uint64
	bytes [64]byte
}

func (s *slot) word(at int) uint32 { return *(*uint32)(unsafe.Pointer(&s.bytes[at])) }

func (s *slot) text(at int) abi.Text { return abi.Text{Data: s.word(at), Length: s.word(at + 4)} }

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
