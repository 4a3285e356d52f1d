//go:build wasip1

package peers

import (
	"encoding/json"
	"runtime"
	"unsafe"

	"belljar.local/tool"
	"belljar.local/tool/internal/abi"
)

//go:wasmimport belljar:tool/peers@0.2.0 list
func importList(into unsafe.Pointer)

//go:wasmimport belljar:tool/peers@0.2.0 call
func importCall(name unsafe.Pointer, nameLength uint32, arguments unsafe.Pointer, length uint32, into unsafe.Pointer)

//go:wasmimport belljar:tool/peers@0.2.0 call-many
func importCallMany(calls unsafe.Pointer, count uint32, into unsafe.Pointer)

type definition struct {
	name, description, schema abi.Text
	hints                     uint32
}

// result is a result as it lies in memory: of an error, the first word is its kind.
type result struct {
	isError uint32
	first   uint32
	second  uint32
	third   uint32
}

type part struct {
	tag                  uint32
	first, second, third abi.Text
}

func list() []Peer {
	var into abi.Text
	abi.Begin()
	importList(unsafe.Pointer(&into))
	defer abi.Free()
	var peers []Peer
	for _, one := range abi.List[definition](into) {
		peers = append(peers, Peer{
			one.name.String(), one.description.String(), one.schema.Bytes(), tool.Hint(one.hints & 0xff),
		})
	}
	return peers
}

func call(name, arguments string) Result {
	var into result
	abi.Begin()
	importCall(unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)),
		unsafe.Pointer(unsafe.StringData(arguments)), uint32(len(arguments)), unsafe.Pointer(&into))
	runtime.KeepAlive(name)
	runtime.KeepAlive(arguments)
	defer abi.Free()
	return into.taken()
}

func callMany(requests []Request, texts []string) []Result {
	calls := make([][2]abi.Text, len(requests)+1)
	for at, request := range requests {
		calls[at] = [2]abi.Text{abi.Of(request.Tool), abi.Of(texts[at])}
	}
	var into abi.Text
	abi.Begin()
	importCallMany(unsafe.Pointer(&calls[0]), uint32(len(requests)), unsafe.Pointer(&into))
	runtime.KeepAlive(requests)
	runtime.KeepAlive(texts)
	defer abi.Free()
	results := make([]Result, len(requests))
	for at, one := range abi.List[result](into) {
		results[at] = one.taken()
	}
	return results
}

func (r result) taken() Result {
	if r.isError&0xff != 0 {
		message := abi.Text{Data: r.second, Length: r.third}.String()
		return Result{Err: tool.NewError(tool.Kind(r.first&0xff), message)}
	}
	var values []any
	for _, one := range abi.List[part](abi.Text{Data: r.first, Length: r.second}) {
		switch one.tag & 0xff {
		case 0:
			values = append(values, one.first.String())
		case 1:
			values = append(values, tool.JSON(json.RawMessage(one.first.Bytes())))
		default:
			values = append(values, tool.File(one.first.String(), one.second.String(), one.third.Bytes()))
		}
	}
	return Result{Output: tool.Parts(values...)}
}
