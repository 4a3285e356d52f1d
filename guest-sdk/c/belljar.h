/* Write tools for belljar in C: one header, included once, in the file that offers the tools.
 *
 *     #include "belljar.h"
 *
 *     typedef struct { const char *path; } word_count_args;
 *     static const bj_field word_count_fields[] = {
 *         BJ_STRING(word_count_args, path, "The file, relative to the workspace."),
 *         BJ_END,
 *     };
 *
 *     static bj_output *word_count(const word_count_args *args) { ... return bj_text(...); }
 *
 *     BJ_TOOLS(BJ_TOOL(word_count, "Counts the words of a text file.", BJ_READ_ONLY));
 *
 * The fields become the JSON schema that models read, and every call is checked against it before the
 * function runs. Files are those of <stdio.h>, <dirent.h> and <unistd.h>; the workspace is the current
 * directory. What the functions below give lives until the call has ended; nothing has to be freed.
 *
 * A text ends with a NUL; one from outside that has a NUL in it is refused as an argument.
 */
#ifndef BELLJAR_H
#define BELLJAR_H

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the contract, as it stands in the names of its functions. */
#define BJ_CONTRACT "0.2.0"
#define BJ_WASI "0.2.12"

#define BJ_UNUSED __attribute__((unused))

/* ---- Answers ---------------------------------------------------------------------------------- */

/* An answer, or an error: of tools, and of the functions below that can fail. */
typedef struct bj_output bj_output;

/* Hints: promises about a tool's effects. They never widen a right. */
enum {
    BJ_READ_ONLY = 1,  /* changes nothing outside its own store */
    BJ_IDEMPOTENT = 2, /* calling again changes nothing more */
    BJ_OPEN_WORLD = 4, /* talks to the network */
};

/* Why a call gives nothing. The text goes to the model: say what to do differently. */
typedef enum {
    BJ_INVALID_ARGUMENTS,
    BJ_NOT_FOUND,
    BJ_DENIED,
    BJ_TOO_LARGE,
    BJ_FAILED,
} bj_error_kind;

/* ---- Arguments -------------------------------------------------------------------------------- */

typedef enum { BJ_T_END, BJ_T_STRING, BJ_T_INTEGER, BJ_T_NUMBER, BJ_T_BOOLEAN, BJ_T_STRINGS } bj_type;

/* A list of texts. */
typedef struct {
    size_t count;
    const char **items;
} bj_strings;

/* One argument: a member of the tool's struct. */
typedef struct {
    bj_type type;
    const char *name;
    const char *description;
    size_t offset;
    size_t present;      /* the offset of the `bool` that says whether it is there, or BJ_REQUIRED */
    const char *choices; /* separated by `|`, or NULL */
} bj_field;

#define BJ_REQUIRED ((size_t)-1)
/* A `const char *`, `int64_t`, `double`, `bool` or `bj_strings` member that has to be given. */
#define BJ_STRING(S, m, text) { BJ_T_STRING, #m, text, offsetof(S, m), BJ_REQUIRED, NULL }
#define BJ_INTEGER(S, m, text) { BJ_T_INTEGER, #m, text, offsetof(S, m), BJ_REQUIRED, NULL }
#define BJ_NUMBER(S, m, text) { BJ_T_NUMBER, #m, text, offsetof(S, m), BJ_REQUIRED, NULL }
#define BJ_BOOLEAN(S, m, text) { BJ_T_BOOLEAN, #m, text, offsetof(S, m), BJ_REQUIRED, NULL }
#define BJ_STRINGS(S, m, text) { BJ_T_STRINGS, #m, text, offsetof(S, m), BJ_REQUIRED, NULL }
/* A `const char *` with one of these values, as "red|green". */
#define BJ_CHOICE(S, m, values, text) { BJ_T_STRING, #m, text, offsetof(S, m), BJ_REQUIRED, values }
/* The same, and it may be absent: the `bool` member `has` says whether it is there. */
#define BJ_OPTIONAL(S, m, type, has, text) { type, #m, text, offsetof(S, m), offsetof(S, has), NULL }
#define BJ_END { BJ_T_END, NULL, NULL, 0, 0, NULL }

typedef struct {
    const char *name;
    const char *description;
    uint8_t hints;
    const bj_field *fields;
    size_t size;
    bj_output *(*run)(const void *);
} bj_tool;

/* The tool NAME: its function, its struct NAME_args and its table NAME_fields. */
#define BJ_TOOL(name, text, hints) \
    { #name, text, (uint8_t)(hints), name##_fields, sizeof(name##_args), (bj_output * (*)(const void *))(void *)name }
/* A tool without arguments: `static bj_output *name(const void *)`. */
#define BJ_PLAIN_TOOL(name, text, hints) { #name, text, (uint8_t)(hints), bj_no_fields, 0, name }
#define BJ_TOOLS(...) \
    static const bj_tool bj_tools[] = { __VA_ARGS__ }; \
    static void *bj_describe_all(void) { return bj_describe(bj_tools, sizeof bj_tools / sizeof bj_tools[0]); } \
    static bj_output *bj_run_one(const char *name, const char *json, size_t length) { \
        return bj_run(bj_tools, sizeof bj_tools / sizeof bj_tools[0], name, json, length); \
    } \
    BJ_EXPORTS(bj_describe_all, bj_run_one)

static const bj_field bj_no_fields[] BJ_UNUSED = { BJ_END };

/* ---- Memory: a call's own, freed when it has ended -------------------------------------------- */

typedef struct bj_block {
    struct bj_block *next;
    size_t size;
} bj_block;

static bj_block *bj_blocks;

/* Memory until the end of the call. Ends the instance where there is none. */
static void *bj_alloc(size_t size) {
    bj_block *block = (bj_block *)malloc(sizeof(bj_block) + size);
    if (!block) abort();
    block->next = bj_blocks;
    block->size = size;
    bj_blocks = block;
    return block + 1;
}

static void bj_free_all(void) {
    while (bj_blocks) {
        bj_block *next = bj_blocks->next;
        free(bj_blocks);
        bj_blocks = next;
    }
}

/* Where the host puts what it hands over; whoever takes it frees it. It is no memory of the call: the
 * adapter of older system interfaces keeps its own state in it. */
__attribute__((export_name("cabi_realloc"))) void *bj_cabi_realloc(void *old, size_t old_size, size_t align,
                                                                   size_t size);
void *bj_cabi_realloc(void *old, size_t old_size, size_t align, size_t size) {
    (void)old_size;
    if (size == 0) return (void *)align;
    void *made = realloc(old, size);
    if (!made) abort();
    return made;
}

/* A text that grows. */
typedef struct {
    char *data;
    size_t length, room;
} bj_text_buffer;

static void bj_put_bytes(bj_text_buffer *out, const void *bytes, size_t length) {
    if (out->length + length + 1 > out->room) {
        size_t room = (out->length + length + 1) * 2 + 64;
        char *grown = (char *)bj_alloc(room);
        if (out->length) memcpy(grown, out->data, out->length);
        out->data = grown;
        out->room = room;
    }
    if (length) memcpy(out->data + out->length, bytes, length);
    out->length += length;
    out->data[out->length] = 0;
}

static void bj_put(bj_text_buffer *out, const char *text) { bj_put_bytes(out, text, strlen(text)); }

/* Writes a text as JSON has it, with its quotes. */
static void bj_put_json_string(bj_text_buffer *out, const char *text) {
    bj_put(out, "\"");
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        char escaped[8];
        switch (*at) {
        case '"': bj_put(out, "\\\""); break;
        case '\\': bj_put(out, "\\\\"); break;
        case '\n': bj_put(out, "\\n"); break;
        case '\r': bj_put(out, "\\r"); break;
        case '\t': bj_put(out, "\\t"); break;
        default:
            if (*at < 0x20) {
                snprintf(escaped, sizeof escaped, "\\u%04x", *at);
                bj_put(out, escaped);
            } else {
                bj_put_bytes(out, at, 1);
            }
        }
    }
    bj_put(out, "\"");
}

/* A text as `printf` makes it. */
__attribute__((format(printf, 1, 2))) static char *bj_format(const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = (char *)bj_alloc((size_t)(length < 0 ? 0 : length) + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

/* ---- Answers, built --------------------------------------------------------------------------- */

/* The contract's records, as they lie in memory. */
typedef struct {
    const void *data;
    size_t length;
} bj_bytes;

typedef struct {
    uint8_t tag; /* 0 text, 1 json, 2 attachment */
    union {
        bj_bytes text;
        struct {
            bj_bytes name, media_type, data;
        } attachment;
    } value;
} bj_part;

struct bj_output {
    bool is_error;
    bj_error_kind kind;
    const char *message;
    size_t count, room;
    bj_part *parts;
};

static bj_part *bj_add(bj_output *output) {
    if (output->count == output->room) {
        output->room = output->room * 2 + 4;
        bj_part *grown = (bj_part *)bj_alloc(output->room * sizeof(bj_part));
        if (output->count) memcpy(grown, output->parts, output->count * sizeof(bj_part));
        output->parts = grown;
    }
    bj_part *part = &output->parts[output->count++];
    memset(part, 0, sizeof *part);
    return part;
}

/* An answer without parts; the functions below add one and give the same answer. */
static bj_output *bj_answer(void) {
    bj_output *output = (bj_output *)bj_alloc(sizeof *output);
    memset(output, 0, sizeof *output);
    return output;
}

BJ_UNUSED static bj_output *bj_add_bytes(bj_output *output, const void *text, size_t length) {
    bj_part *part = bj_add(output);
    part->value.text.data = text;
    part->value.text.length = length;
    return output;
}

BJ_UNUSED static bj_output *bj_add_text(bj_output *output, const char *text) {
    return bj_add_bytes(output, text, strlen(text));
}

/* `json` is JSON text. */
BJ_UNUSED static bj_output *bj_add_json(bj_output *output, const char *json) {
    bj_add_bytes(output, json, strlen(json));
    output->parts[output->count - 1].tag = 1;
    return output;
}

/* The name is for display; the host keeps its last component only. The data is not copied. */
BJ_UNUSED static bj_output *bj_add_file(bj_output *output, const char *name, const char *media_type,
                                        const void *data, size_t length) {
    bj_part *part = bj_add(output);
    part->tag = 2;
    part->value.attachment.name.data = name;
    part->value.attachment.name.length = strlen(name);
    part->value.attachment.media_type.data = media_type;
    part->value.attachment.media_type.length = strlen(media_type);
    part->value.attachment.data.data = data;
    part->value.attachment.data.length = length;
    return output;
}

/* Answers of one part. */
BJ_UNUSED static bj_output *bj_text(const char *text) { return bj_add_text(bj_answer(), text); }
BJ_UNUSED static bj_output *bj_json(const char *json) { return bj_add_json(bj_answer(), json); }

/* An error. */
BJ_UNUSED static bj_output *bj_error(bj_error_kind kind, const char *message) {
    bj_output *output = bj_answer();
    output->is_error = true;
    output->kind = kind;
    output->message = message;
    return output;
}

/* The error that `errno` stands for, on a path as the model gave it. */
BJ_UNUSED static bj_output *bj_errno(const char *path) {
    int code = errno;
    switch (code) {
    case ENOENT: return bj_error(BJ_NOT_FOUND, bj_format("`%s` does not exist", path));
    case EROFS: return bj_error(BJ_DENIED, bj_format("`%s` is in a read-only mount", path));
    case EACCES:
    case EPERM:
    case ENOTCAPABLE: return bj_error(BJ_DENIED, bj_format("access to `%s` was refused", path));
    case EDQUOT:
    case EFBIG:
    case ENOSPC:
        return bj_error(BJ_TOO_LARGE, bj_format("`%s`: the limit on written bytes is reached", path));
    default: return bj_error(BJ_FAILED, bj_format("`%s`: %s", path, strerror(code)));
    }
}

/* ---- The host --------------------------------------------------------------------------------- */

#define BJ_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))

typedef enum { BJ_TRACE, BJ_DEBUG, BJ_INFO, BJ_WARN, BJ_ERROR } bj_level;

BJ_IMPORT("belljar:tool/log@" BJ_CONTRACT, "log")
void bj_import_log(int32_t level, const char *text, size_t length);
BJ_IMPORT("belljar:tool/progress@" BJ_CONTRACT, "report")
void bj_import_report(int64_t done, int32_t has, int64_t total, const char *text, size_t length);
BJ_IMPORT("wasi:config/store@0.2.0-rc.1", "get")
void bj_import_config(const char *key, size_t length, void *result);

/* A line for the operator's log. Never shown to the model; the host keeps a bounded number. */
BJ_UNUSED static void bj_log(bj_level level, const char *message) {
    bj_import_log((int32_t)level, message, strlen(message));
}

/* How far a long call has come, both numbers in the same unit; a total of 0 = not known. */
BJ_UNUSED static void bj_progress(uint64_t done, uint64_t total, const char *message) {
    bj_import_report((int64_t)done, total != 0, (int64_t)total, message, strlen(message));
}

static char *bj_copy(const void *data, size_t length) {
    char *text = (char *)bj_alloc(length + 1);
    if (length) memcpy(text, data, length);
    text[length] = 0;
    return text;
}

/* The same, of what the host has handed over. */
static char *bj_taken(const void *data, size_t length) {
    char *text = bj_copy(data, length);
    if (length) free((void *)(uintptr_t)data);
    return text;
}

/* What the operator set for this tool, or NULL. `tool.toml` names the keys. */
BJ_UNUSED static const char *bj_config(const char *key) {
    struct {
        uint8_t is_error, pad[3], is_some, pad2[3];
        const char *data;
        size_t length;
    } result;
    bj_import_config(key, strlen(key), &result);
    if (result.is_error || !result.is_some) return NULL;
    return bj_taken(result.data, result.length);
}

/* Whether the operator granted this tool a secret of this name. Its value is never seen here. */
BJ_UNUSED static bool bj_secret_exists(const char *name) {
    return bj_config(bj_format("secret.%s", name)) != NULL;
}

/* A file's content, with a NUL behind it; NULL and `errno` where it cannot be read. */
BJ_UNUSED static char *bj_read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    bj_text_buffer out = { NULL, 0, 0 };
    char chunk[16384];
    size_t read;
    bj_put_bytes(&out, "", 0);
    while ((read = fread(chunk, 1, sizeof chunk, file)) > 0) bj_put_bytes(&out, chunk, read);
    int failed = ferror(file) ? errno : 0;
    fclose(file);
    if (failed) {
        errno = failed;
        return NULL;
    }
    if (length) *length = out.length;
    return out.data;
}

/* ---- JSON arguments --------------------------------------------------------------------------- */

typedef struct {
    const char *at, *end;
} bj_reader;

static void bj_space(bj_reader *in) {
    while (in->at < in->end && strchr(" \t\r\n", *in->at) && *in->at) in->at++;
}

static bool bj_take(bj_reader *in, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(in->end - in->at) < length || memcmp(in->at, word, length) != 0) return false;
    in->at += length;
    return true;
}

static int bj_hex4(bj_reader *in) {
    int value = 0;
    if (in->end - in->at < 4) return -1;
    for (int digit = 0; digit < 4; digit++, in->at++) {
        char c = *in->at;
        int bits = c >= '0' && c <= '9'   ? c - '0'
                   : c >= 'a' && c <= 'f' ? c - 'a' + 10
                   : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                          : -1;
        if (bits < 0) return -1;
        value = value * 16 + bits;
    }
    return value;
}

static void bj_put_point(bj_text_buffer *out, uint32_t point) {
    unsigned char bytes[4];
    size_t length;
    if (point < 0x80) {
        bytes[0] = (unsigned char)point;
        length = 1;
    } else if (point < 0x800) {
        bytes[0] = (unsigned char)(0xc0 | point >> 6);
        bytes[1] = (unsigned char)(0x80 | (point & 63));
        length = 2;
    } else if (point < 0x10000) {
        bytes[0] = (unsigned char)(0xe0 | point >> 12);
        bytes[1] = (unsigned char)(0x80 | (point >> 6 & 63));
        bytes[2] = (unsigned char)(0x80 | (point & 63));
        length = 3;
    } else {
        bytes[0] = (unsigned char)(0xf0 | point >> 18);
        bytes[1] = (unsigned char)(0x80 | (point >> 12 & 63));
        bytes[2] = (unsigned char)(0x80 | (point >> 6 & 63));
        bytes[3] = (unsigned char)(0x80 | (point & 63));
        length = 4;
    }
    bj_put_bytes(out, bytes, length);
}

/* A text; NULL where there is none, or where it holds a NUL. */
static char *bj_read_string(bj_reader *in) {
    bj_text_buffer out = { NULL, 0, 0 };
    bj_put_bytes(&out, "", 0);
    if (!bj_take(in, "\"")) return NULL;
    while (in->at < in->end) {
        const char *plain = in->at;
        while (in->at < in->end && *in->at != '"' && *in->at != '\\' && *in->at) in->at++;
        bj_put_bytes(&out, plain, (size_t)(in->at - plain));
        if (in->at == in->end || !*in->at) return NULL;
        if (*in->at++ == '"') return out.data;
        if (in->at == in->end) return NULL;
        char escape = *in->at++;
        const char *from = "\"\\/bfnrt", *to = "\"\\/\b\f\n\r\t", *known = strchr(from, escape);
        if (known && escape) {
            bj_put_bytes(&out, to + (known - from), 1);
            continue;
        }
        int unit = escape == 'u' ? bj_hex4(in) : -1;
        if (unit <= 0) return NULL;
        uint32_t point = (uint32_t)unit;
        if (unit >= 0xd800 && unit < 0xdc00) {
            int low = bj_take(in, "\\u") ? bj_hex4(in) : -1;
            point = low >= 0xdc00 && low < 0xe000
                        ? 0x10000 + (((uint32_t)unit - 0xd800) << 10) + ((uint32_t)low - 0xdc00)
                        : 0xfffd;
        } else if (unit >= 0xdc00 && unit < 0xe000) {
            point = 0xfffd;
        }
        bj_put_point(&out, point);
    }
    return NULL;
}

static const char *const BJ_TYPE_NAMES[] BJ_UNUSED = { "", "a string", "an integer", "a number",
                                                       "true or false", "a list of strings" };

static bool bj_read_number(bj_reader *in, double *value) {
    char *end;
    if (in->at == in->end || !strchr("-0123456789", *in->at)) return false;
    *value = strtod(in->at, &end);
    if (end > in->end || end == in->at) return false;
    in->at = end;
    return true;
}

BJ_UNUSED static bool bj_read_strings(bj_reader *in, bj_strings *into) {
    size_t room = 0;
    into->count = 0;
    into->items = NULL;
    if (!bj_take(in, "[")) return false;
    bj_space(in);
    if (bj_take(in, "]")) return true;
    for (;;) {
        bj_space(in);
        char *text = bj_read_string(in);
        if (!text) return false;
        if (into->count == room) {
            room = room * 2 + 8;
            const char **grown = (const char **)bj_alloc(room * sizeof(char *));
            if (into->count) memcpy((void *)grown, (const void *)into->items, into->count * sizeof(char *));
            into->items = grown;
        }
        into->items[into->count++] = text;
        bj_space(in);
        if (bj_take(in, "]")) return true;
        if (!bj_take(in, ",")) return false;
    }
}

static bool bj_is_choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        if (strncmp(at, text, length) == 0 && (at[length] == '|' || !at[length])) return true;
    }
    return false;
}

/* Reads one value into its member; an error names it. */
static bj_output *bj_read_value(bj_reader *in, const bj_field *field, void *args) {
    void *into = (char *)args + field->offset;
    bool fits = false;
    double number;
    switch (field->type) {
    case BJ_T_STRING: {
        const char *text = bj_read_string(in);
        if (text && field->choices && !bj_is_choice(field->choices, text))
            return bj_error(BJ_INVALID_ARGUMENTS, bj_format("`%s`: `%s` is none of `%s`", field->name, text,
                                                            field->choices));
        *(const char **)into = text;
        fits = text != NULL;
        break;
    }
    case BJ_T_INTEGER: {
        /* Exact where a double is not: read as an integer first. */
        char *end;
        errno = 0;
        long long whole = strtoll(in->at, &end, 10);
        bool plain = end > in->at && end <= in->end && !errno && !strchr(".eE", *end);
        fits = bj_read_number(in, &number) && (plain || (number == floor(number) && fabs(number) < 9e15));
        if (fits) *(int64_t *)into = plain ? (int64_t)whole : (int64_t)number;
        break;
    }
    case BJ_T_NUMBER: fits = bj_read_number(in, (double *)into); break;
    case BJ_T_BOOLEAN:
        *(bool *)into = in->at < in->end && *in->at == 't';
        fits = bj_take(in, "true") || bj_take(in, "false");
        break;
    case BJ_T_STRINGS: fits = bj_read_strings(in, (bj_strings *)into); break;
    case BJ_T_END: break;
    }
    if (fits) return NULL;
    return bj_error(BJ_INVALID_ARGUMENTS,
                    bj_format("`%s`: expected %s", field->name, BJ_TYPE_NAMES[field->type]));
}

/* Reads the arguments of a call into a struct; an error, or NULL. */
BJ_UNUSED static bj_output *bj_read_arguments(const char *json, size_t length, const bj_field *fields, void *args) {
    /* Behind the text stands a NUL, for the functions of <stdlib.h> that read numbers. */
    bj_reader in = { json, json + length };
    uint64_t seen = 0;
    bj_space(&in);
    bool more = bj_take(&in, "{");
    if (!more) return bj_error(BJ_INVALID_ARGUMENTS, "the arguments are no JSON object");
    bj_space(&in);
    more = !bj_take(&in, "}");
    while (more) {
        bj_space(&in);
        const char *name = bj_read_string(&in);
        bj_space(&in);
        if (!name || !bj_take(&in, ":")) return bj_error(BJ_INVALID_ARGUMENTS, "the arguments are not JSON");
        bj_space(&in);
        size_t at = 0;
        while (fields[at].type != BJ_T_END && strcmp(fields[at].name, name) != 0) at++;
        if (fields[at].type == BJ_T_END)
            return bj_error(BJ_INVALID_ARGUMENTS, bj_format("unknown field `%s`", name));
        bool optional = fields[at].present != BJ_REQUIRED;
        if (!(optional && bj_take(&in, "null"))) {
            bj_output *error = bj_read_value(&in, &fields[at], args);
            if (error) return error;
            seen |= (uint64_t)1 << (at & 63);
            if (optional) *(bool *)((char *)args + fields[at].present) = true;
        }
        bj_space(&in);
        more = bj_take(&in, ",");
        if (!more && !bj_take(&in, "}"))
            return bj_error(BJ_INVALID_ARGUMENTS, bj_format("`%s`: not JSON", name));
    }
    for (size_t at = 0; fields[at].type != BJ_T_END; at++) {
        if (fields[at].present == BJ_REQUIRED && !(seen >> (at & 63) & 1))
            return bj_error(BJ_INVALID_ARGUMENTS, bj_format("missing field `%s`", fields[at].name));
    }
    return NULL;
}

BJ_UNUSED static const char *bj_schema(const bj_field *fields) {
    static const char *const types[] = { "", "string", "integer", "number", "boolean", "array" };
    bj_text_buffer out = { NULL, 0, 0 }, required = { NULL, 0, 0 };
    bj_put(&out, "{\"type\":\"object\",\"properties\":{");
    for (const bj_field *field = fields; field->type != BJ_T_END; field++) {
        if (field != fields) bj_put(&out, ",");
        bj_put_json_string(&out, field->name);
        bj_put(&out, bj_format(":{\"type\":\"%s\"", types[field->type]));
        if (field->type == BJ_T_STRINGS) bj_put(&out, ",\"items\":{\"type\":\"string\"}");
        if (field->choices) {
            bj_put(&out, ",\"enum\":[");
            for (const char *at = field->choices; at;) {
                const char *end = strchr(at, '|');
                if (at != field->choices) bj_put(&out, ",");
                bj_put_json_string(&out, bj_copy(at, end ? (size_t)(end - at) : strlen(at)));
                at = end ? end + 1 : NULL;
            }
            bj_put(&out, "]");
        }
        if (field->description && *field->description) {
            bj_put(&out, ",\"description\":");
            bj_put_json_string(&out, field->description);
        }
        bj_put(&out, "}");
        if (field->present == BJ_REQUIRED) {
            bj_put(&required, required.length ? "," : ",\"required\":[");
            bj_put_json_string(&required, field->name);
        }
    }
    bj_put(&out, "}");
    if (required.length) {
        bj_put(&out, required.data);
        bj_put(&out, "]");
    }
    bj_put(&out, ",\"additionalProperties\":false}");
    return out.data;
}

/* ---- HTTP ------------------------------------------------------------------------------------- */

typedef struct {
    uint16_t status;
    char *body; /* with a NUL behind it */
    size_t length;
} bj_response;

#define BJ_HTTP "wasi:http/types@" BJ_WASI
BJ_IMPORT(BJ_HTTP, "[constructor]fields") int32_t bj_fields(void);
BJ_IMPORT(BJ_HTTP, "[method]fields.append")
void bj_fields_append(int32_t self, const char *name, size_t name_length, const char *value, size_t length, void *);
BJ_IMPORT(BJ_HTTP, "[constructor]outgoing-request") int32_t bj_request(int32_t headers);
BJ_IMPORT(BJ_HTTP, "[method]outgoing-request.set-method")
int32_t bj_set_method(int32_t self, int32_t tag, const char *name, size_t length);
BJ_IMPORT(BJ_HTTP, "[method]outgoing-request.set-scheme")
int32_t bj_set_scheme(int32_t self, int32_t some, int32_t tag, const char *name, size_t length);
BJ_IMPORT(BJ_HTTP, "[method]outgoing-request.set-authority")
int32_t bj_set_authority(int32_t self, int32_t some, const char *text, size_t length);
BJ_IMPORT(BJ_HTTP, "[method]outgoing-request.set-path-with-query")
int32_t bj_set_path(int32_t self, int32_t some, const char *text, size_t length);
BJ_IMPORT(BJ_HTTP, "[method]outgoing-request.body") void bj_request_body(int32_t self, void *);
BJ_IMPORT(BJ_HTTP, "[method]outgoing-body.write") void bj_body_write(int32_t self, void *);
BJ_IMPORT(BJ_HTTP, "[static]outgoing-body.finish")
void bj_body_finish(int32_t self, int32_t some, int32_t trailers, void *);
BJ_IMPORT(BJ_HTTP, "[method]future-incoming-response.subscribe") int32_t bj_future_subscribe(int32_t self);
BJ_IMPORT(BJ_HTTP, "[method]future-incoming-response.get") void bj_future_get(int32_t self, void *);
BJ_IMPORT(BJ_HTTP, "[method]incoming-response.status") int32_t bj_response_status(int32_t self);
BJ_IMPORT(BJ_HTTP, "[method]incoming-response.consume") void bj_response_consume(int32_t self, void *);
BJ_IMPORT(BJ_HTTP, "[method]incoming-body.stream") void bj_body_stream(int32_t self, void *);
BJ_IMPORT(BJ_HTTP, "[resource-drop]future-incoming-response") void bj_drop_future(int32_t self);
BJ_IMPORT(BJ_HTTP, "[resource-drop]incoming-response") void bj_drop_response(int32_t self);
BJ_IMPORT(BJ_HTTP, "[resource-drop]incoming-body") void bj_drop_body(int32_t self);
BJ_IMPORT("wasi:http/outgoing-handler@" BJ_WASI, "handle")
void bj_handle(int32_t request, int32_t some, int32_t options, void *);
BJ_IMPORT("wasi:io/poll@" BJ_WASI, "[method]pollable.block") void bj_block_on(int32_t self);
BJ_IMPORT("wasi:io/poll@" BJ_WASI, "[resource-drop]pollable") void bj_drop_pollable(int32_t self);
BJ_IMPORT("wasi:io/streams@" BJ_WASI, "[method]input-stream.blocking-read")
void bj_stream_read(int32_t self, int64_t length, void *);
BJ_IMPORT("wasi:io/streams@" BJ_WASI, "[method]output-stream.blocking-write-and-flush")
void bj_stream_write(int32_t self, const char *data, size_t length, void *);
BJ_IMPORT("wasi:io/streams@" BJ_WASI, "[resource-drop]input-stream") void bj_drop_input(int32_t self);
BJ_IMPORT("wasi:io/streams@" BJ_WASI, "[resource-drop]output-stream") void bj_drop_output(int32_t self);

/* Room for every result above: the largest has 56 bytes. */
typedef union {
    uint64_t align;
    uint8_t byte[64];
    int32_t word[16];
} bj_slot;

static bj_output *bj_http_error(uint8_t code, const char *host) {
    switch (code) {
    case 15: return bj_error(BJ_DENIED, bj_format("requests to `%s` are not allowed", host));
    case 4: return bj_error(BJ_DENIED, bj_format("the address of `%s` is not allowed", host));
    case 26:
    case 28: return bj_error(BJ_TOO_LARGE, bj_format("the response of `%s` is larger than allowed", host));
    case 6: return bj_error(BJ_FAILED, bj_format("`%s` refused the connection", host));
    default:
        return bj_error(BJ_FAILED, bj_format("the exchange with `%s` failed (wasi:http error %d)", host, code));
    }
}

static int32_t bj_http_request(const char *method, const char *url, const char *const *headers, size_t length,
                               bool has_body, const char **host) {
    static const char *const methods[] = { "GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                           "CONNECT", "OPTIONS", "TRACE", "PATCH" };
    bj_slot slot;
    bool secure = strncmp(url, "https://", 8) == 0;
    if (!secure && strncmp(url, "http://", 7) != 0) return -1;
    const char *rest = url + (secure ? 8 : 7);
    size_t authority = strcspn(rest, "/?#");
    *host = bj_copy(rest, authority);
    const char *path = rest + authority;
    size_t path_length = strcspn(path, "#");
    path = *path == '/' ? bj_copy(path, path_length) : bj_format("/%.*s", (int)path_length, path);
    int32_t fields = bj_fields();
    for (; headers && headers[0]; headers += 2)
        bj_fields_append(fields, headers[0], strlen(headers[0]), headers[1], strlen(headers[1]), &slot);
    if (has_body) {
        const char *text = bj_format("%zu", length);
        bj_fields_append(fields, "content-length", 14, text, strlen(text), &slot);
    }
    int32_t request = bj_request(fields), tag = 0;
    while (tag < 9 && strcmp(methods[tag], method) != 0) tag++;
    if (!authority || bj_set_method(request, tag, method, strlen(method)) ||
        bj_set_scheme(request, 1, secure, NULL, 0) || bj_set_authority(request, 1, *host, authority) ||
        bj_set_path(request, 1, path, strlen(path)))
        return -1;
    return request;
}

/* Sends a request and reads the whole answer, whatever its status. `headers` are names and values in
 * turn and a NULL, or NULL; `body` may be NULL. An error, or NULL. Redirects are answers too. */
BJ_UNUSED static bj_output *bj_http(const char *method, const char *url, const char *const *headers,
                                    const char *body, size_t length, bj_response *into) {
    bj_slot slot;
    const char *host = "";
    int32_t request = bj_http_request(method, url, headers, length, body != NULL, &host);
    if (request < 0) return bj_error(BJ_INVALID_ARGUMENTS, bj_format("`%s` cannot be requested", url));
    bj_request_body(request, &slot);
    int32_t sink = slot.word[1];
    bj_handle(request, 0, 0, &slot);
    if (slot.byte[0]) return bj_http_error(slot.byte[8], host);
    int32_t future = slot.word[2];
    if (body && length) {
        bj_body_write(sink, &slot);
        int32_t stream = slot.word[1];
        for (size_t at = 0; at < length; at += 4096) {
            bj_stream_write(stream, body + at, length - at < 4096 ? length - at : 4096, &slot);
            if (slot.byte[0]) return bj_error(BJ_FAILED, bj_format("`%s` did not take the request", host));
        }
        bj_drop_output(stream);
    }
    bj_body_finish(sink, 0, 0, &slot);
    if (slot.byte[0]) return bj_http_error(slot.byte[8], host);
    int32_t ready = bj_future_subscribe(future);
    bj_block_on(ready);
    bj_drop_pollable(ready);
    bj_future_get(future, &slot);
    if (!slot.byte[0] || slot.byte[8]) return bj_error(BJ_FAILED, bj_format("`%s` gave no answer", host));
    if (slot.byte[16]) return bj_http_error(slot.byte[24], host);
    int32_t response = slot.word[6];
    into->status = (uint16_t)bj_response_status(response);
    bj_response_consume(response, &slot);
    int32_t incoming = slot.word[1];
    bj_body_stream(incoming, &slot);
    int32_t stream = slot.word[1];
    bj_text_buffer out = { NULL, 0, 0 };
    bj_put_bytes(&out, "", 0);
    for (;;) {
        bj_stream_read(stream, 65536, &slot);
        if (slot.byte[0]) break;
        void *chunk = (void *)(uintptr_t)slot.word[1];
        bj_put_bytes(&out, chunk, (size_t)slot.word[2]);
        if (slot.word[2]) free(chunk);
    }
    bool whole = slot.byte[4] == 1;
    bj_drop_input(stream);
    bj_drop_body(incoming);
    bj_drop_response(response);
    bj_drop_future(future);
    into->body = out.data;
    into->length = out.length;
    return whole ? NULL : bj_error(BJ_FAILED, bj_format("the response of `%s` broke off", host));
}

/* ---- Other tools ------------------------------------------------------------------------------ */

/* A tool as the contract has it. */
typedef struct {
    bj_bytes name, description, schema;
    uint8_t hints;
} bj_definition;

/* Another tool of the agent that this one works for. */
typedef struct {
    const char *name, *description;
    const char *schema; /* of its arguments, as JSON text */
    uint8_t hints;
} bj_peer;

/* A call to be made: the tool, and its arguments as JSON text. */
typedef struct {
    const char *tool, *arguments;
} bj_peer_call;

/* The contract's result of a call, as it lies in memory. */
typedef struct {
    uint8_t is_error, pad[3];
    union {
        struct {
            bj_part *parts;
            size_t count;
        } ok;
        struct {
            uint8_t kind, pad[3];
            bj_bytes message;
        } error;
    } value;
} bj_result;

#define BJ_PEERS "belljar:tool/peers@" BJ_CONTRACT
BJ_IMPORT(BJ_PEERS, "list") void bj_import_peers(bj_bytes *result);
BJ_IMPORT(BJ_PEERS, "call")
void bj_import_call(const char *tool, size_t length, const char *json, size_t json_length, bj_result *result);
BJ_IMPORT(BJ_PEERS, "call-many") void bj_import_call_many(const void *calls, size_t count, bj_bytes *results);

/* The other tools that can be called, in the agent's order. They are there when `tool.toml` asks for
 * them (`peers = true`) and the operator agrees. */
BJ_UNUSED static const bj_peer *bj_peers(size_t *count) {
    bj_bytes listed;
    bj_import_peers(&listed);
    const bj_definition *from = (const bj_definition *)listed.data;
    bj_peer *peers = (bj_peer *)bj_alloc(listed.length * sizeof(bj_peer));
    for (size_t at = 0; at < listed.length; at++) {
        peers[at].name = bj_taken(from[at].name.data, from[at].name.length);
        peers[at].description = bj_taken(from[at].description.data, from[at].description.length);
        peers[at].schema = bj_taken(from[at].schema.data, from[at].schema.length);
        peers[at].hints = from[at].hints;
    }
    if (listed.length) free((void *)(uintptr_t)listed.data);
    *count = listed.length;
    return peers;
}

static void bj_keep(bj_bytes *bytes) { bytes->data = bj_taken(bytes->data, bytes->length); }

static bj_output *bj_result_taken(const bj_result *result) {
    if (result->is_error) {
        bj_bytes message = result->value.error.message;
        return bj_error((bj_error_kind)result->value.error.kind, bj_taken(message.data, message.length));
    }
    bj_output *output = bj_answer();
    for (size_t at = 0; at < result->value.ok.count; at++) {
        bj_part *part = bj_add(output);
        *part = result->value.ok.parts[at];
        if (part->tag == 2) {
            bj_keep(&part->value.attachment.name);
            bj_keep(&part->value.attachment.media_type);
            bj_keep(&part->value.attachment.data);
        } else {
            bj_keep(&part->value.text);
        }
    }
    if (output->count) free(result->value.ok.parts);
    return output;
}

/* Calls another tool and waits for its answer, or its error. The call is one of the agent: the same
 * person is asked, the same budgets pay. */
BJ_UNUSED static bj_output *bj_call(const char *tool, const char *arguments) {
    bj_result result;
    bj_import_call(tool, strlen(tool), arguments, strlen(arguments), &result);
    return bj_result_taken(&result);
}

/* Calls several at once; those that only read overlap. One answer or error for each, in their order. */
BJ_UNUSED static bj_output **bj_call_many(const bj_peer_call *calls, size_t count) {
    bj_bytes *lowered = (bj_bytes *)bj_alloc((2 * count + 1) * sizeof(bj_bytes));
    for (size_t at = 0; at < count; at++) {
        lowered[2 * at].data = calls[at].tool;
        lowered[2 * at].length = strlen(calls[at].tool);
        lowered[2 * at + 1].data = calls[at].arguments;
        lowered[2 * at + 1].length = strlen(calls[at].arguments);
    }
    bj_bytes results;
    bj_import_call_many(lowered, count, &results);
    bj_output **outputs = (bj_output **)bj_alloc((count + 1) * sizeof(bj_output *));
    for (size_t at = 0; at < count; at++)
        outputs[at] = bj_result_taken((const bj_result *)results.data + at);
    if (results.length) free((void *)(uintptr_t)results.data);
    return outputs;
}

/* The texts and the JSON of an answer, one below the other. */
BJ_UNUSED static const char *bj_text_of(const bj_output *output) {
    bj_text_buffer out = { NULL, 0, 0 };
    bj_put_bytes(&out, "", 0);
    for (size_t at = 0; at < output->count; at++) {
        const bj_part *part = &output->parts[at];
        if (part->tag == 2) continue;
        if (out.length) bj_put(&out, "\n");
        bj_put_bytes(&out, part->value.text.data, part->value.text.length);
    }
    return out.data;
}

/* ---- The component's exports ------------------------------------------------------------------ */

static bj_bytes bj_bytes_of(const char *text) {
    bj_bytes bytes = { text, strlen(text) };
    return bytes;
}

static void *bj_definitions(bj_definition *list, size_t count) {
    bj_bytes *result = (bj_bytes *)bj_alloc(sizeof *result);
    result->data = list;
    result->length = count;
    return result;
}

BJ_UNUSED static void *bj_describe(const bj_tool *tools, size_t count) {
    bj_definition *list = (bj_definition *)bj_alloc(count * sizeof(bj_definition));
    memset(list, 0, count * sizeof(bj_definition));
    for (size_t at = 0; at < count; at++) {
        list[at].name = bj_bytes_of(tools[at].name);
        list[at].description = bj_bytes_of(tools[at].description);
        list[at].schema = bj_bytes_of(bj_schema(tools[at].fields));
        list[at].hints = tools[at].hints;
    }
    return bj_definitions(list, count);
}

BJ_UNUSED static bj_output *bj_run(const bj_tool *tools, size_t count, const char *name, const char *json,
                                   size_t length) {
    for (size_t at = 0; at < count; at++) {
        if (strcmp(tools[at].name, name) != 0) continue;
        void *args = bj_alloc(tools[at].size + 1);
        memset(args, 0, tools[at].size + 1);
        bj_output *error = bj_read_arguments(json, length, tools[at].fields, args);
        return error ? error : tools[at].run(args);
    }
    return bj_error(BJ_NOT_FOUND, bj_format("this component has no tool `%s`", name));
}

static void *bj_invoke(bj_output *(*run)(const char *, const char *, size_t), const char *name,
                       size_t name_length, const char *json, size_t length) {
    /* Fails where the tool has no workspace; then no file is found. */
    (void)!chdir("/workspace");
    name = bj_taken(name, name_length);
    json = bj_taken(json, length);
    bj_output *output = run(name, json, length);
    fflush(stdout);
    fflush(stderr);
    bj_result *answer = (bj_result *)bj_alloc(sizeof *answer);
    memset(answer, 0, sizeof *answer);
    answer->is_error = output->is_error;
    if (output->is_error) {
        answer->value.error.kind = (uint8_t)output->kind;
        answer->value.error.message = bj_bytes_of(output->message);
    } else {
        answer->value.ok.parts = output->parts;
        answer->value.ok.count = output->count;
    }
    return answer;
}

#define BJ_NAME(function) "belljar:tool/tools@" BJ_CONTRACT "#" function
#define BJ_EXPORT(name) __attribute__((export_name(name)))
/* Exports two functions: one that gives the definitions, one that runs a tool. */
#define BJ_EXPORTS(describe, run) \
    BJ_EXPORT(BJ_NAME("describe")) void *bj_export_describe(void); \
    void *bj_export_describe(void) { return describe(); } \
    BJ_EXPORT("cabi_post_" BJ_NAME("describe")) void bj_post_describe(void *result); \
    void bj_post_describe(void *result) { (void)result; bj_free_all(); } \
    BJ_EXPORT(BJ_NAME("invoke")) \
    void *bj_export_invoke(const char *, size_t, const char *, size_t); \
    void *bj_export_invoke(const char *name, size_t name_length, const char *json, size_t length) { \
        return bj_invoke(run, name, name_length, json, length); \
    } \
    BJ_EXPORT("cabi_post_" BJ_NAME("invoke")) void bj_post_invoke(void *result); \
    void bj_post_invoke(void *result) { (void)result; bj_free_all(); } \
    struct bj_semicolon

#ifdef __cplusplus
static_assert(sizeof(bj_part) == 28 && sizeof(bj_definition) == 28 && sizeof(bj_result) == 16,
              "the layout of the contract's records");
}
#else
_Static_assert(sizeof(bj_part) == 28 && sizeof(bj_definition) == 28, "the layout of the contract's records");
#endif
#endif
