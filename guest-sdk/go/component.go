//go:build wasip1

package tool

import (
	"os"
	"runtime"
	"unsafe"
)

// The contract's functions as a component exports and imports them. A text is a pointer and a length,
// a record its fields one after another, a variant a tag before its value.

// pinned holds memory that the host was given, or has given, and that no Go value refers to.
var pinned = map[unsafe.Pointer][]uint64{}

// started says that the runtime has: the adapter of older system interfaces asks for memory before.
var started bool

func init() { started = true }

// sbrk is the runtime's own source of memory, in the same place as all of it.
//
//go:linkname sbrk runtime.sbrk
func sbrk(size uintptr) unsafe.Pointer

//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	if size == 0 {
		return unsafe.Pointer(uintptr(align))
	}
	if !started {
		// The runtime takes whole pages, and so does this.
		return sbrk(uintptr(size+65535) &^ 65535)
	}
	memory := make([]uint64, (size+7)/8)
	made := unsafe.Pointer(&memory[0])
	if oldSize > 0 {
		copy(unsafe.Slice((*byte)(made), size), unsafe.Slice((*byte)(old), oldSize))
		delete(pinned, old)
	}
	pinned[made] = memory
	return made
}

// Taken copies what the host has put at an address, and frees it. For the packages of this module.
func Taken(data unsafe.Pointer, length uint32) []byte {
	if length == 0 {
		return nil
	}
	copied := append([]byte(nil), unsafe.Slice((*byte)(data), length)...)
	delete(pinned, data)
	return copied
}

// text is a text as it lies in memory: an address has 32 bits there, and 64 in Go.
type text struct {
	data   uint32
	length uint32
}

func address(data unsafe.Pointer) uint32 { return uint32(uintptr(data)) }

// At is the memory at an address of the host's. For the packages of this module.
func At(address uint32) unsafe.Pointer { return unsafe.Pointer(uintptr(address)) }

// answer is what the host reads after a call; it lives until the host has read it.
var answer []any

func textOf(value string) text {
	answer = append(answer, value)
	return text{address(unsafe.Pointer(unsafe.StringData(value))), uint32(len(value))}
}

type definition struct {
	name, description, schema text
	hints                     uint8
}

type list struct {
	data   uint32
	length uint32
}

//go:wasmexport belljar:tool/tools@0.1.0#describe
func describe() unsafe.Pointer {
	definitions := make([]definition, len(tools)+1)
	for at, tool := range tools {
		definitions[at] = definition{
			textOf(tool.name), textOf(tool.description), textOf(tool.schema), uint8(tool.hints),
		}
	}
	result := &list{address(unsafe.Pointer(&definitions[0])), uint32(len(tools))}
	answer = append(answer, definitions, result)
	return unsafe.Pointer(result)
}

//go:wasmexport cabi_post_belljar:tool/tools@0.1.0#describe
func postDescribe(unsafe.Pointer) { answer = nil }

type part struct {
	tag                   uint32
	first, second, third text
}

type result struct {
	isError uint32
	parts   uint32 // or the kind of the error
	length  uint32         // or the address of its message
	more    uint32
}

//go:wasmexport belljar:tool/tools@0.1.0#invoke
func invoke(name unsafe.Pointer, nameLength uint32, arguments unsafe.Pointer, length uint32) unsafe.Pointer {
	called, given := string(Taken(name, nameLength)), Taken(arguments, length)
	// Fails where the tool has no workspace; then no file is found.
	_ = os.Chdir("/workspace")
	output, err := call(called, given)
	made := &result{}
	answer = append(answer, made)
	if err != nil {
		known := errorOf(err)
		message := textOf(known.message)
		made.isError, made.parts = 1, uint32(known.kind)
		made.length, made.more = message.data, message.length
		return unsafe.Pointer(made)
	}
	parts := make([]part, len(output.parts)+1)
	for at, one := range output.parts {
		parts[at].tag = uint32(one.tag)
		if one.tag == 2 {
			data := text{address(unsafe.Pointer(unsafe.SliceData(one.file.data))), uint32(len(one.file.data))}
			answer = append(answer, one.file.data)
			parts[at].first, parts[at].second = textOf(one.file.name), textOf(one.file.mediaType)
			parts[at].third = data
		} else {
			parts[at].first = textOf(one.text)
		}
	}
	answer = append(answer, parts)
	made.parts, made.length = address(unsafe.Pointer(&parts[0])), uint32(len(output.parts))
	return unsafe.Pointer(made)
}

//go:wasmexport cabi_post_belljar:tool/tools@0.1.0#invoke
func postInvoke(unsafe.Pointer) { answer = nil }

//go:wasmimport belljar:tool/log@0.1.0 log
func importLog(level uint32, data unsafe.Pointer, length uint32)

//go:wasmimport belljar:tool/progress@0.1.0 report
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
		value           text
	}
	importConfig(unsafe.Pointer(unsafe.StringData(key)), uint32(len(key)), unsafe.Pointer(&into))
	runtime.KeepAlive(key)
	if into.isError&0xff != 0 || into.isSome&0xff == 0 {
		return "", false
	}
	return string(Taken(At(into.value.data), into.value.length)), true
}
