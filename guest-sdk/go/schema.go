package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// field is one argument.
type field struct {
	name     string
	index    int
	required bool
	choices  []string
	schema   map[string]any
}

func fieldsOf[Args any]() []field {
	kind := reflect.TypeFor[Args]()
	if kind.Kind() != reflect.Struct {
		panic(fmt.Sprintf("the arguments are a struct, not %v", kind))
	}
	return fieldsOfStruct(kind)
}

func fieldsOfStruct(kind reflect.Type) []field {
	var fields []field
	for at := range kind.NumField() {
		member := kind.Field(at)
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		if !member.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = member.Name
		}
		one := field{name: name, index: at, required: member.Type.Kind() != reflect.Pointer}
		one.schema = schemaOf(member.Type)
		if text := member.Tag.Get("describe"); text != "" {
			one.schema["description"] = text
		}
		if choices := member.Tag.Get("enum"); choices != "" {
			one.choices = strings.Split(choices, ",")
			one.schema["enum"] = one.choices
		}
		fields = append(fields, one)
	}
	return fields
}

func objectSchema(fields []field) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, one := range fields {
		properties[one.name] = one.schema
		if one.required {
			required = append(required, one.name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func schemaOf(kind reflect.Type) map[string]any {
	switch kind.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Pointer:
		return schemaOf(kind.Elem())
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": schemaOf(kind.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(kind.Elem())}
	case reflect.Struct:
		return objectSchema(fieldsOfStruct(kind))
	case reflect.Interface:
		return map[string]any{}
	default:
		panic(fmt.Sprintf("%v has no JSON schema", kind))
	}
}

// read checks the arguments and puts them into the struct that into points to.
func read(arguments []byte, fields []field, into any) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &given); err != nil {
		return InvalidArguments("the arguments are no JSON object")
	}
	for name := range given {
		if !slices.ContainsFunc(fields, func(one field) bool { return one.name == name }) {
			return InvalidArguments("unknown field `%s`", name)
		}
	}
	target := reflect.ValueOf(into).Elem()
	for _, one := range fields {
		text, is := given[one.name]
		if null := bytes.Equal(text, []byte("null")); !is || (null && !one.required) {
			if one.required {
				return InvalidArguments("missing field `%s`", one.name)
			}
			continue
		} else if null {
			return InvalidArguments("`%s`: expected %v, got null", one.name, one.schema["type"])
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		value := target.Field(one.index)
		if err := decoder.Decode(value.Addr().Interface()); err != nil {
			return InvalidArguments("`%s`: expected %v, got `%.40s`", one.name, one.schema["type"], text)
		}
		if one.choices != nil && !slices.Contains(one.choices, reflect.Indirect(value).String()) {
			return InvalidArguments("`%s`: %s is none of %s", one.name, text, strings.Join(one.choices, ", "))
		}
	}
	return nil
}
