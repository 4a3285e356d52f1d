// word_count counts the words of a text file. Make it yours.
package main

import (
	"fmt"
	"os"
	"strings"

	"belljar.local/tool"
)

type arguments struct {
	Path string `json:"path" describe:"The file, relative to the workspace."`
}

func init() {
	tool.Offer("word_count", "Counts the words of a text file.", run, tool.ReadOnly, tool.Idempotent)
}

func run(args arguments) (any, error) {
	text, err := os.ReadFile(args.Path)
	if err != nil {
		return nil, err
	}
	return fmt.Sprintf("%s: %d words", args.Path, len(strings.Fields(string(text)))), nil
}

func main() {}
