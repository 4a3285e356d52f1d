package tool

import "strings"

// Part is one part of an answer: Text, JSON or File.
type Part struct {
	tag  uint8
	text string
	file file
}

type file struct {
	name, mediaType string
	data            []byte
}

// Output is an answer of several parts.
type Output struct {
	parts []Part
}

// Text is the texts and the JSON of an answer, one below the other.
func (o Output) Text() string {
	var texts []string
	for _, one := range o.parts {
		if one.tag != 2 {
			texts = append(texts, one.text)
		}
	}
	return strings.Join(texts, "\n")
}

// Parts is an answer of these parts; strings are text, other values JSON.
func Parts(values ...any) Output {
	var output Output
	for _, value := range values {
		output.parts = append(output.parts, partOf(value))
	}
	return output
}

// JSON is a part that is JSON, for values that would be taken as text otherwise.
func JSON(value any) Part { return Part{tag: 1, text: encode(value)} }

// File is a part that is a file. The name is for display; the host keeps its last component only.
func File(name, mediaType string, data []byte) Part {
	return Part{tag: 2, file: file{name, mediaType, data}}
}

func partOf(value any) Part {
	switch value := value.(type) {
	case Part:
		return value
	case string:
		return Part{text: value}
	default:
		return JSON(value)
	}
}

func outputOf(value any) (Output, error) {
	if output, is := value.(Output); is {
		return output, nil
	}
	return Parts(value), nil
}
