//go:build wasip1

package tool

import (
	"os"
	"runtime"
	"unsafe"

	"belljar.local/tool/internal/abi"
)

// The contract's functions as a component exports and imports them. A text is a pointer and a length,
// a record its fields one after another, a variant a tag before its value.

// answer is what the host reads after a call; it lives until the host has read it.
var answer []any

func textOf(value string) abi.Text {
	answer = append(answer, value)
	return abi.Of(value)
}

type definition struct {
	name, description, schema abi.Text
	hints                     uint8
}

//go:wasmexport belljar:tool/tools@0.2.0#describe
func describe() unsafe.Pointer {
	definitions := make([]definition, len(tools)+1)
	for at, tool := range tools {
		definitions[at] = definition{
			textOf(tool.name), textOf(tool.description), textOf(tool.schema), uint8(tool.hints),
		}
	}
	result := &abi.Text{Data: abi.Address(unsafe.Pointer(&definitions[0])), Length: uint32(len(tools))}
	answer = append(answer, definitions, result)
	return unsafe.Pointer(result)
}

//go:wasmexport cabi_post_belljar:tool/tools@0.2.0#describe
func postDescribe(unsafe.Pointer) { answer = nil }

type part struct {
	tag                  uint32
	first, second, third abi.Text
}

type result struct {
	isError uint32
	parts   uint32 // or the kind of the error
	length  uint32 // or the address of its message
	more    uint32
}

//go:wasmexport belljar:tool/tools@0.2.0#invoke
func invoke(name, nameLength, arguments, length uint32) unsafe.Pointer {
	abi.Begin()
	called, given := abi.Text{Data: name, Length: nameLength}.String(), abi.Text{Data: arguments, Length: length}.Bytes()
	abi.Free()
	// Fails where the tool has no workspace; then no file is found.
	_ = os.Chdir("/workspace")
	output, err := call(called, given)
	made := &result{}
	answer = append(answer, made)
	if err != nil {
		known := errorOf(err)
		message := textOf(known.message)
		made.isError, made.parts = 1, uint32(known.kind)
		made.length, made.more = message.Data, message.Length
		return unsafe.Pointer(made)
	}
	parts := make([]part, len(output.parts)+1)
	for at, one := range output.parts {
		parts[at].tag = uint32(one.tag)
		if one.tag == 2 {
			data := abi.Text{Data: abi.Address(unsafe.Pointer(unsafe.SliceData(one.file.data))), Length: uint32(len(one.file.data))}
			answer = append(answer, one.file.data)
			parts[at].first, parts[at].second = textOf(one.file.name), textOf(one.file.mediaType)
			parts[at].third = data
		} else {
			parts[at].first = textOf(one.text)
		}
	}
	answer = append(answer, parts)
	made.parts, made.length = abi.Address(unsafe.Pointer(&parts[0])), uint32(len(output.parts))
	return unsafe.Pointer(made)
}

//go:wasmexport cabi_post_belljar:tool/tools@0.2.0#invoke
func postInvoke(unsafe.Pointer) { answer = nil }

//go:wasmimport belljar:tool/log@0.2.0 log
func importLog(level uint32, data unsafe.Pointer, length uint32)

//go:wasmimport belljar:tool/progress@0.2.0 report
func importReport(done uint64, has uint32, total uint64, data unsafe.Pointer, length uint32)

//go:wasmimport wasi:config/store@0.2.0-rc.1 get
func importConfig(data unsafe.Pointer, length uint32, into unsafe.Pointer)

func hostLog(level Level, message string) {
	importLog(uint32(level), unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)))
	runtime.KeepAlive(message)
}

func hostProgress(done, total uint64, message string) {
	has := uint32(0)
	if total > 0 {
		has = 1
	}
	importReport(done, has, total, unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)))
	runtime.KeepAlive(message)
}

func hostConfig(key string) (string, bool) {
	var into struct {
		isError, isSome uint32
		value           abi.Text
	}
	abi.Begin()
	importConfig(unsafe.Pointer(unsafe.StringData(key)), uint32(len(key)), unsafe.Pointer(&into))
	runtime.KeepAlive(key)
	defer abi.Free()
	if into.isError&0xff != 0 || into.isSome&0xff == 0 {
		return "", false
	}
	return into.value.String(), true
}
