// Package peers calls the other tools of the agent that a tool works for.
//
// They are there when `tool.toml` asks for them (`peers = true`, or a list of names) and the operator
// agrees. A call made here is a call of that agent: the same person is asked, the same budgets pay.
//
//	output, err := peers.Call("file_read", map[string]any{"path": "a.txt"})
//
// Outside of a component there is nobody to call.
package peers

import (
	"encoding/json"

	"belljar.local/tool"
)

// Peer is a tool that can be called.
type Peer struct {
	Name        string
	Description string
	// Schema is the JSON schema of its arguments.
	Schema json.RawMessage
	Hints  tool.Hint
}

// Request is a call to be made. Arguments become a JSON object.
type Request struct {
	Tool      string
	Arguments any
}

// Result is what became of a call: its answer, or its error.
type Result struct {
	Output tool.Output
	Err    error
}

// List gives the tools that can be called, in the agent's order.
func List() []Peer { return list() }

// Call calls one and waits for its answer. tool.KindOf says which of the contract's errors an error is.
func Call(name string, arguments any) (tool.Output, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return tool.Output{}, tool.Failed("the arguments are not JSON: %v", err)
	}
	made := call(name, string(text))
	return made.Output, made.Err
}

// CallMany calls several at once; those that only read overlap. There is one result for each, in their
// order; one that fails leaves the others as they are.
func CallMany(requests []Request) []Result {
	texts := make([]string, len(requests))
	for at, request := range requests {
		text, err := json.Marshal(request.Arguments)
		if err != nil {
			text = []byte("null") // refused for this one alone: no object
		}
		texts[at] = string(text)
	}
	return callMany(requests, texts)
}
