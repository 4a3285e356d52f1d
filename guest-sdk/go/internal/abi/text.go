//go:build wasip1

package abi

import "unsafe"

// Text is a text, or a list, as it lies in memory: an address has 32 bits there, and 64 in Go.
type Text struct {
	Data   uint32
	Length uint32
}

// At is the memory at an address of the host's.
func At(address uint32) unsafe.Pointer { return unsafe.Pointer(uintptr(address)) }

// Address is where something lies. It has to be kept alive as long as the host may look.
func Address(data unsafe.Pointer) uint32 { return uint32(uintptr(data)) }

// Of is a text's address and length.
func Of(text string) Text {
	return Text{Address(unsafe.Pointer(unsafe.StringData(text))), uint32(len(text))}
}

// Bytes is a copy of what the host has put there.
func (t Text) Bytes() []byte {
	if t.Length == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(At(t.Data)), t.Length)...)
}

// String is the same, as a string.
func (t Text) String() string {
	if t.Length == 0 {
		return ""
	}
	return string(unsafe.Slice((*byte)(At(t.Data)), t.Length))
}

// List is a list of the host's, in place.
func List[T any](t Text) []T {
	if t.Length == 0 {
		return nil
	}
	return unsafe.Slice((*T)(At(t.Data)), t.Length)
}
