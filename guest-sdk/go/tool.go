// Package tool is for writing tools for belljar in Go.
//
// A tool is a struct and a function:
//
//	type Args struct {
//		Path string `json:"path" describe:"The file, relative to the workspace."`
//	}
//
//	func init() {
//		tool.Offer("word_count", "Counts the words of a text file.", wordCount, tool.ReadOnly)
//	}
//
//	func wordCount(args Args) (any, error) {
//		text, err := os.ReadFile(args.Path)
//		...
//	}
//
//	func main() {}
//
// The struct becomes the JSON schema that models read, and every call is checked against it before the
// function runs. The workspace is the current directory: package os works with relative paths. An error
// of os becomes the contract's error of the same meaning, so a tool need not look at it.
package tool

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Hint is a promise about a tool's effects. Hints let the host overlap calls; they never widen a right.
type Hint uint8

const (
	// ReadOnly: it changes nothing outside its own store.
	ReadOnly Hint = 1 << iota
	// Idempotent: calling it again changes nothing more.
	Idempotent
	// OpenWorld: it talks to the network.
	OpenWorld
)

type offered struct {
	name, description, schema string
	hints                     Hint
	run                       func(arguments []byte) (any, error)
}

var tools []offered

// Offer offers a function as a tool. Args is a struct: its exported fields are the arguments, named by
// their `json` tags, described by `describe`, limited to some texts by `enum:"a,b"`. A pointer may be
// absent, or null. The result is a string, a Part, an Output, or what JSON can express.
//
// Offer panics where Args has no schema; call it from init, so that a test meets that.
func Offer[Args any](name, description string, run func(Args) (any, error), hints ...Hint) {
	fields := fieldsOf[Args]()
	tool := offered{name: name, description: description, schema: encode(objectSchema(fields))}
	for _, hint := range hints {
		tool.hints |= hint
	}
	tool.run = func(arguments []byte) (any, error) {
		var args Args
		if err := read(arguments, fields, &args); err != nil {
			return nil, err
		}
		return run(args)
	}
	tools = append(tools, tool)
}

// None is the arguments of a tool that takes none.
type None struct{}

func call(name string, arguments []byte) (Output, error) {
	for _, tool := range tools {
		if tool.name == name {
			value, err := tool.run(arguments)
			if err != nil {
				return Output{}, err
			}
			return outputOf(value)
		}
	}
	return Output{}, NotFound("this component has no tool `%s`", name)
}

func encode(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("not JSON: %v", err))
	}
	return strings.TrimSuffix(text.String(), "\n")
}
