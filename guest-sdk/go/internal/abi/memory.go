//go:build wasip1

// Package abi is the memory that the host and a component hand each other.
package abi

import "unsafe"

// The host asks for memory in the middle of a call from Go to the host, by the function below. It runs
// on the stack of the goroutine that makes the call. If it grew that stack, it would move it under a
// call that is under way; if it took memory that is collected, it could start the collector. So it does
// neither: it takes pages beside the heap, and no function that it calls checks the stack.

// block is a run of pages beside the heap; used is how much of it is taken.
type block struct {
	start, size, used uintptr
}

const (
	page       = 64 << 10
	smallest   = 4 * page
	mostBlocks = 1024
)

var (
	blocks [mostBlocks]block
	count  uintptr
	// started says that the runtime has: what the adapter of older system interfaces asks for before
	// stays with it.
	started bool
)

func init() { started = true }

// The runtime's own account of the end of its memory.
//
//go:linkname bloc runtime.bloc
var bloc uintptr

//go:linkname blocMax runtime.blocMax
var blocMax uintptr

//go:linkname growMemory runtime.growMemory
func growMemory(pages int32) int32

// pages takes whole pages, as the runtime does.
//
//go:nosplit
func pages(size uintptr) uintptr {
	start := bloc
	size = (size + page - 1) &^ (page - 1)
	if start+size > blocMax {
		if growMemory(int32((start+size-blocMax)/page)) < 0 {
			trap()
		}
		blocMax = start + size
	}
	bloc = start + size
	return start
}

//go:nosplit
func trap() {
	var nothing *byte
	*nothing = 0
	for {
	}
}

//go:wasmexport cabi_realloc
//go:nosplit
func realloc(old, oldSize, align, size uint32) uint32 {
	if size == 0 {
		return align
	}
	if !started {
		return uint32(pages(uintptr(size)))
	}
	made := take(uintptr(align), uintptr(size))
	for at := uintptr(0); at < uintptr(oldSize); at++ {
		*(*byte)(unsafe.Pointer(made + at)) = *(*byte)(unsafe.Pointer(uintptr(old) + at))
	}
	return uint32(made)
}

//go:nosplit
func take(align, size uintptr) uintptr {
	for at := uintptr(0); at < count; at++ {
		one := (*block)(unsafe.Pointer(uintptr(unsafe.Pointer(&blocks)) + at*unsafe.Sizeof(blocks[0])))
		begin := (one.start + one.used + align - 1) &^ (align - 1)
		if begin+size <= one.start+one.size {
			one.used = begin + size - one.start
			return begin
		}
	}
	if count == mostBlocks {
		trap()
	}
	// Twice as large each time, so that the same block serves later calls.
	room := uintptr(smallest)
	for room < size {
		room *= 2
	}
	one := (*block)(unsafe.Pointer(uintptr(unsafe.Pointer(&blocks)) + count*unsafe.Sizeof(blocks[0])))
	count++
	one.start, one.size, one.used = pages(room), room, size
	return one.start
}

// users are the goroutines between a call to the host and the copy of its answer: a copy can let another
// one run.
var users int

// Begin is called before each call to the host that answers with more than a number.
func Begin() { users++ }

// Free gives back all that the host has put into memory, once nobody is left who has to copy some of it.
func Free() {
	if users--; users > 0 {
		return
	}
	users = 0
	for at := range blocks[:count] {
		blocks[at].used = 0
	}
}
