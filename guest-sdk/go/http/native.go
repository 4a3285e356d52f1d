//go:build !wasip1

package http

import "belljar.local/tool"

func send(_ Request, where target) (*Response, error) {
	return nil, tool.Denied("requests to `%s` are not made outside of a component", where.authority)
}
