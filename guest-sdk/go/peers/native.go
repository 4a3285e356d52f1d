//go:build !wasip1

package peers

import "belljar.local/tool"

func list() []Peer { return nil }

func call(string, string) Result {
	return Result{Err: tool.Denied("there are no other tools outside of a component")}
}

func callMany(requests []Request, _ []string) []Result {
	results := make([]Result, len(requests))
	for at := range results {
		results[at] = call("", "")
	}
	return results
}
