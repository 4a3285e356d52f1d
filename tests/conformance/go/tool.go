// The conformance tools in Go. `tests/conformance/README.md` says what each has to do.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"belljar.local/tool"
	"belljar.local/tool/http"
	"belljar.local/tool/peers"
)

type object = map[string]any

type types struct {
	Text  string   `json:"text" describe:"Any text."`
	Count int64    `json:"count" describe:"A whole number."`
	Ratio float64  `json:"ratio" describe:"A number."`
	Flag  bool     `json:"flag" describe:"Yes or no."`
	Words []string `json:"words" describe:"Some words."`
	Color string   `json:"color" enum:"red,green,blue" describe:"One of three."`
	Note  *string  `json:"note" describe:"May be left out."`
}

type (
	text struct {
		Text string `json:"text"`
	}
	path struct {
		Path string `json:"path"`
	}
	amount struct {
		Bytes int `json:"bytes"`
	}
	failure struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	}
	written struct {
		Path string `json:"path"`
		Text string `json:"text"`
	}
	renamed struct {
		Source string `json:"source"`
		Target string `json:"target"`
	}
	request struct {
		Method string  `json:"method"`
		URL    string  `json:"url"`
		Body   *string `json:"body"`
	}
	key struct {
		Key string `json:"key"`
	}
	name struct {
		Name string `json:"name"`
	}
	logged struct {
		Level   string `json:"level" enum:"trace,debug,info,warn,error"`
		Message string `json:"message"`
		Times   int    `json:"times"`
	}
	steps struct {
		Steps uint64 `json:"steps"`
	}
	called struct {
		Tool      string `json:"tool"`
		Arguments string `json:"arguments"`
	}
	calledMany struct {
		Tools     []string `json:"tools"`
		Arguments []string `json:"arguments"`
	}
	printed struct {
		Out string `json:"out"`
		Err string `json:"err"`
	}
)

var calls int

func init() {
	const read, once = tool.ReadOnly, tool.Idempotent
	tool.Offer("conf_types", "Answers its arguments, as JSON.", func(args types) (any, error) {
		return tool.JSON(args), nil
	}, read, once)
	tool.Offer("conf_echo", "Answers the text.", func(args text) (any, error) { return args.Text, nil }, read, once)
	tool.Offer("conf_error", "Fails with an error of this kind.", fail, read)
	tool.Offer("conf_output", "Answers so many times `x`.", func(args amount) (any, error) {
		return strings.Repeat("x", args.Bytes), nil
	}, read)
	tool.Offer("conf_parts", "Answers a text, JSON and a file.", parts, read)
	tool.Offer("conf_read", "Answers the content of a file.", func(args path) (any, error) {
		found, err := os.ReadFile(args.Path)
		return string(found), err
	}, read)
	tool.Offer("conf_write", "Writes a file.", func(args written) (any, error) {
		return "written", os.WriteFile(args.Path, []byte(args.Text), 0o666)
	})
	tool.Offer("conf_append", "Writes at the end of a file.", appended)
	tool.Offer("conf_list", "Answers the names in a directory, sorted.", list, read)
	tool.Offer("conf_mkdir", "Makes a directory.", func(args path) (any, error) {
		return "made", os.Mkdir(args.Path, 0o777)
	})
	tool.Offer("conf_rename", "Renames a file.", func(args renamed) (any, error) {
		return "renamed", os.Rename(args.Source, args.Target)
	})
	tool.Offer("conf_remove", "Removes a file.", func(args path) (any, error) {
		return "removed", os.Remove(args.Path)
	})
	tool.Offer("conf_http", "Sends a request and answers its status and body.", send, tool.OpenWorld)
	tool.Offer("conf_config", "Answers a setting.", setting, read)
	tool.Offer("conf_secret", "Answers whether a secret exists.", func(args name) (any, error) {
		return object{"exists": tool.SecretExists(args.Name)}, nil
	}, read)
	tool.Offer("conf_log", "Logs a message.", logs, read)
	tool.Offer("conf_progress", "Reports progress.", func(args steps) (any, error) {
		for step := uint64(1); step <= args.Steps; step++ {
			tool.Progress(step, args.Steps, fmt.Sprintf("step %d", step))
		}
		return "reported", nil
	}, read)
	tool.Offer("conf_clock", "Answers the time, and how long a moment takes.", func(tool.None) (any, error) {
		begun := time.Now()
		return object{"wall_ms": begun.UnixMilli(), "elapsed_ns": time.Since(begun).Nanoseconds()}, nil
	}, read)
	tool.Offer("conf_random", "Answers random bytes.", func(args amount) (any, error) {
		found := make([]byte, args.Bytes)
		_, err := rand.Read(found)
		return object{"hex": hex.EncodeToString(found)}, err
	}, read)
	tool.Offer("conf_environment", "Answers how many environment variables there are.", func(tool.None) (any, error) {
		return object{"variables": len(os.Environ())}, nil
	}, read)
	tool.Offer("conf_print", "Writes to the standard streams.", func(args printed) (any, error) {
		fmt.Println(args.Out)
		fmt.Fprintln(os.Stderr, args.Err)
		return "printed", nil
	}, read)
	tool.Offer("conf_count", "Answers how often it was called in this store.", func(tool.None) (any, error) {
		calls++
		return object{"count": calls}, nil
	}, read)
	tool.Offer("conf_trap", "Ends the instance.", func(tool.None) (any, error) { panic("as it was asked to") }, read)
	tool.Offer("conf_loop", "Never ends.", func(tool.None) (any, error) {
		for {
		}
	}, read)
	tool.Offer("conf_memory", "Takes memory until there is none.", hog, read)
	tool.Offer("conf_peers", "Answers the other tools that can be called.", others, read)
	tool.Offer("conf_call", "Calls another tool and answers what it answers.", func(args called) (any, error) {
		return peers.Call(args.Tool, json.RawMessage(args.Arguments))
	})
	tool.Offer("conf_call_many", "Calls other tools at once.", callMany)
}

func others(tool.None) (any, error) {
	listed := []object{}
	for _, one := range peers.List() {
		listed = append(listed, object{
			"name": one.Name, "description": one.Description, "schema": one.Schema,
			"read_only": one.Hints&tool.ReadOnly != 0,
		})
	}
	return listed, nil
}

func callMany(args calledMany) (any, error) {
	requests := make([]peers.Request, len(args.Tools))
	for at, name := range args.Tools {
		requests[at] = peers.Request{Tool: name, Arguments: json.RawMessage(args.Arguments[at])}
	}
	listed := []object{}
	for _, made := range peers.CallMany(requests) {
		if made.Err != nil {
			listed = append(listed, object{"error": tool.KindOf(made.Err).String()})
		} else {
			listed = append(listed, object{"ok": made.Output.Text()})
		}
	}
	return listed, nil
}

func fail(args failure) (any, error) {
	kinds := map[string]func(string, ...any) error{
		"invalid-arguments": tool.InvalidArguments, "not-found": tool.NotFound, "denied": tool.Denied,
		"too-large": tool.TooLarge, "failed": tool.Failed,
	}
	return nil, kinds[args.Kind]("%s", args.Message)
}

func parts(tool.None) (any, error) {
	bytes := make([]byte, 256)
	for at := range bytes {
		bytes[at] = byte(at)
	}
	return tool.Parts("one", object{"two": 2}, tool.File("three.bin", "application/octet-stream", bytes)), nil
}

func appended(args written) (any, error) {
	file, err := os.OpenFile(args.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	_, err = file.WriteString(args.Text)
	return "appended", err
}

func list(args path) (any, error) {
	entries, err := os.ReadDir(args.Path)
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

func send(args request) (any, error) {
	request := http.Request{Method: args.Method, URL: args.URL}
	if args.Body != nil {
		request.Body = []byte(*args.Body)
	}
	answer, err := http.Send(request)
	if err != nil {
		return nil, err
	}
	return object{"status": answer.Status, "body": string(answer.Body)}, nil
}

func setting(args key) (any, error) {
	if value, is := tool.Config(args.Key); is {
		return object{"value": value}, nil
	}
	return object{"value": nil}, nil
}

func logs(args logged) (any, error) {
	levels := map[string]tool.Level{
		"trace": tool.Trace, "debug": tool.Debug, "info": tool.Info, "warn": tool.Warn, "error": tool.ErrorLevel,
	}
	for range args.Times {
		tool.Log(levels[args.Level], args.Message)
	}
	return "logged", nil
}

var taken [][]byte

func hog(tool.None) (any, error) {
	for {
		block := make([]byte, 1<<20)
		for at := range block {
			block[at] = 1
		}
		taken = append(taken, block)
	}
}

func main() {}
