/* The conformance tools in C. `tests/conformance/README.md` says what each has to do. */

#include "belljar.h"

#include <time.h>

typedef struct {
    const char *text, *color, *note;
    int64_t count;
    double ratio;
    bool flag, has_note;
    bj_strings words;
} conf_types_args;
static const bj_field conf_types_fields[] = {
    BJ_STRING(conf_types_args, text, "Any text."),
    BJ_INTEGER(conf_types_args, count, "A whole number."),
    BJ_NUMBER(conf_types_args, ratio, "A number."),
    BJ_BOOLEAN(conf_types_args, flag, "Yes or no."),
    BJ_STRINGS(conf_types_args, words, "Some words."),
    BJ_CHOICE(conf_types_args, color, "red|green|blue", "One of three."),
    BJ_OPTIONAL(conf_types_args, note, BJ_T_STRING, has_note, "May be left out."),
    BJ_END,
};

static bj_output *conf_types(const conf_types_args *args) {
    bj_text_buffer out = { NULL, 0, 0 };
    bj_put(&out, "{\"text\":");
    bj_put_json_string(&out, args->text);
    bj_put(&out, bj_format(",\"count\":%lld,\"ratio\":%.17g,\"flag\":%s,\"words\":[", (long long)args->count,
                           args->ratio, args->flag ? "true" : "false"));
    for (size_t at = 0; at < args->words.count; at++) {
        if (at) bj_put(&out, ",");
        bj_put_json_string(&out, args->words.items[at]);
    }
    bj_put(&out, "],\"color\":");
    bj_put_json_string(&out, args->color);
    bj_put(&out, ",\"note\":");
    if (args->has_note) bj_put_json_string(&out, args->note);
    else bj_put(&out, "null");
    bj_put(&out, "}");
    return bj_json(out.data);
}

typedef struct { const char *text; } conf_echo_args;
static const bj_field conf_echo_fields[] = { BJ_STRING(conf_echo_args, text, ""), BJ_END };

static bj_output *conf_echo(const conf_echo_args *args) { return bj_text(args->text); }

typedef struct { const char *kind, *message; } conf_error_args;
static const bj_field conf_error_fields[] = {
    BJ_STRING(conf_error_args, kind, ""),
    BJ_STRING(conf_error_args, message, ""),
    BJ_END,
};

static const char *const kinds[] = { "invalid-arguments", "not-found", "denied", "too-large", "failed" };

static bj_output *conf_error(const conf_error_args *args) {
    int kind = 0;
    while (kind < BJ_FAILED && strcmp(kinds[kind], args->kind) != 0) kind++;
    return bj_error((bj_error_kind)kind, args->message);
}

typedef struct { int64_t bytes; } conf_output_args;
static const bj_field conf_output_fields[] = { BJ_INTEGER(conf_output_args, bytes, ""), BJ_END };

static bj_output *conf_output(const conf_output_args *args) {
    char *text = bj_alloc((size_t)args->bytes);
    memset(text, 'x', (size_t)args->bytes);
    return bj_add_bytes(bj_answer(), text, (size_t)args->bytes);
}

static bj_output *conf_parts(const void *args) {
    (void)args;
    static unsigned char bytes[256];
    for (int at = 0; at < 256; at++) bytes[at] = (unsigned char)at;
    bj_output *output = bj_add_json(bj_text("one"), "{\"two\":2}");
    return bj_add_file(output, "three.bin", "application/octet-stream", bytes, sizeof bytes);
}

typedef struct { const char *path; } conf_read_args;
static const bj_field conf_read_fields[] = { BJ_STRING(conf_read_args, path, ""), BJ_END };

static bj_output *conf_read(const conf_read_args *args) {
    size_t length;
    char *text = bj_read_file(args->path, &length);
    return text ? bj_add_bytes(bj_answer(), text, length) : bj_errno(args->path);
}

typedef struct { const char *path, *text; } conf_write_args;
static const bj_field conf_write_fields[] = {
    BJ_STRING(conf_write_args, path, ""),
    BJ_STRING(conf_write_args, text, ""),
    BJ_END,
};

static bj_output *put(const conf_write_args *args, const char *mode, const char *answer) {
    FILE *file = fopen(args->path, mode);
    if (!file) return bj_errno(args->path);
    size_t length = strlen(args->text);
    bool written = fwrite(args->text, 1, length, file) == length;
    return fclose(file) == 0 && written ? bj_text(answer) : bj_errno(args->path);
}

static bj_output *conf_write(const conf_write_args *args) { return put(args, "wb", "written"); }

typedef conf_write_args conf_append_args;
#define conf_append_fields conf_write_fields

static bj_output *conf_append(const conf_append_args *args) { return put(args, "ab", "appended"); }

typedef conf_read_args conf_list_args;
#define conf_list_fields conf_read_fields

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bj_output *conf_list(const conf_list_args *args) {
    DIR *directory = opendir(args->path);
    if (!directory) return bj_errno(args->path);
    const char *names[256];
    size_t count = 0;
    for (struct dirent *entry; count < 256 && (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            names[count++] = bj_format("%s", entry->d_name);
    }
    closedir(directory);
    qsort(names, count, sizeof names[0], by_bytes);
    bj_text_buffer out = { NULL, 0, 0 };
    bj_put(&out, "[");
    for (size_t at = 0; at < count; at++) {
        if (at) bj_put(&out, ",");
        bj_put_json_string(&out, names[at]);
    }
    bj_put(&out, "]");
    return bj_json(out.data);
}

typedef conf_read_args conf_mkdir_args;
#define conf_mkdir_fields conf_read_fields

static bj_output *conf_mkdir(const conf_mkdir_args *args) {
    return mkdir(args->path, 0777) == 0 ? bj_text("made") : bj_errno(args->path);
}

typedef struct { const char *source, *target; } conf_rename_args;
static const bj_field conf_rename_fields[] = {
    BJ_STRING(conf_rename_args, source, ""),
    BJ_STRING(conf_rename_args, target, ""),
    BJ_END,
};

static bj_output *conf_rename(const conf_rename_args *args) {
    return rename(args->source, args->target) == 0 ? bj_text("renamed") : bj_errno(args->source);
}

typedef conf_read_args conf_remove_args;
#define conf_remove_fields conf_read_fields

static bj_output *conf_remove(const conf_remove_args *args) {
    return remove(args->path) == 0 ? bj_text("removed") : bj_errno(args->path);
}

typedef struct { const char *method, *url, *body; bool has_body; } conf_http_args;
static const bj_field conf_http_fields[] = {
    BJ_STRING(conf_http_args, method, ""),
    BJ_STRING(conf_http_args, url, ""),
    BJ_OPTIONAL(conf_http_args, body, BJ_T_STRING, has_body, ""),
    BJ_END,
};

static bj_output *conf_http(const conf_http_args *args) {
    bj_response response;
    size_t length = args->body ? strlen(args->body) : 0;
    bj_output *error = bj_http(args->method, args->url, NULL, args->body, length, &response);
    if (error) return error;
    bj_text_buffer out = { NULL, 0, 0 };
    bj_put(&out, bj_format("{\"status\":%d,\"body\":", response.status));
    bj_put_json_string(&out, response.body);
    bj_put(&out, "}");
    return bj_json(out.data);
}

typedef struct { const char *key; } conf_config_args;
static const bj_field conf_config_fields[] = { BJ_STRING(conf_config_args, key, ""), BJ_END };

static bj_output *conf_config(const conf_config_args *args) {
    const char *value = bj_config(args->key);
    bj_text_buffer out = { NULL, 0, 0 };
    bj_put(&out, "{\"value\":");
    if (value) bj_put_json_string(&out, value);
    else bj_put(&out, "null");
    bj_put(&out, "}");
    return bj_json(out.data);
}

typedef struct { const char *name; } conf_secret_args;
static const bj_field conf_secret_fields[] = { BJ_STRING(conf_secret_args, name, ""), BJ_END };

static bj_output *conf_secret(const conf_secret_args *args) {
    return bj_json(bj_secret_exists(args->name) ? "{\"exists\":true}" : "{\"exists\":false}");
}

typedef struct { const char *level, *message; int64_t times; } conf_log_args;
static const bj_field conf_log_fields[] = {
    BJ_CHOICE(conf_log_args, level, "trace|debug|info|warn|error", ""),
    BJ_STRING(conf_log_args, message, ""),
    BJ_INTEGER(conf_log_args, times, ""),
    BJ_END,
};

static bj_output *conf_log(const conf_log_args *args) {
    static const char *const levels[] = { "trace", "debug", "info", "warn" };
    int level = 0;
    while (level < BJ_ERROR && strcmp(levels[level], args->level) != 0) level++;
    for (int64_t at = 0; at < args->times; at++) bj_log((bj_level)level, args->message);
    return bj_text("logged");
}

typedef struct { int64_t steps; } conf_progress_args;
static const bj_field conf_progress_fields[] = { BJ_INTEGER(conf_progress_args, steps, ""), BJ_END };

static bj_output *conf_progress(const conf_progress_args *args) {
    for (int64_t step = 1; step <= args->steps; step++)
        bj_progress((uint64_t)step, (uint64_t)args->steps, bj_format("step %lld", (long long)step));
    return bj_text("reported");
}

static bj_output *conf_clock(const void *args) {
    (void)args;
    struct timespec wall, begin, end;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    clock_gettime(CLOCK_MONOTONIC, &end);
    long long elapsed = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
    long long milliseconds = wall.tv_sec * 1000LL + wall.tv_nsec / 1000000;
    return bj_json(bj_format("{\"wall_ms\":%lld,\"elapsed_ns\":%lld}", milliseconds, elapsed));
}

typedef conf_output_args conf_random_args;
#define conf_random_fields conf_output_fields

static bj_output *conf_random(const conf_random_args *args) {
    bj_text_buffer out = { NULL, 0, 0 };
    bj_put(&out, "{\"hex\":\"");
    for (int64_t at = 0; at < args->bytes; at++) {
        unsigned char byte;
        if (getentropy(&byte, 1) != 0) return bj_error(BJ_FAILED, "no random bytes");
        bj_put(&out, bj_format("%02x", byte));
    }
    bj_put(&out, "\"}");
    return bj_json(out.data);
}

extern char **environ;

static bj_output *conf_environment(const void *args) {
    (void)args;
    int count = 0;
    while (environ && environ[count]) count++;
    return bj_json(bj_format("{\"variables\":%d}", count));
}

typedef struct { const char *out, *err; } conf_print_args;
static const bj_field conf_print_fields[] = {
    BJ_STRING(conf_print_args, out, ""),
    BJ_STRING(conf_print_args, err, ""),
    BJ_END,
};

static bj_output *conf_print(const conf_print_args *args) {
    printf("%s\n", args->out);
    fprintf(stderr, "%s\n", args->err);
    return bj_text("printed");
}

static bj_output *conf_count(const void *args) {
    (void)args;
    static int count;
    return bj_json(bj_format("{\"count\":%d}", ++count));
}

static bj_output *conf_trap(const void *args) {
    (void)args;
    abort();
}

static bj_output *conf_loop(const void *args) {
    (void)args;
    for (volatile unsigned turns = 0;; turns++) {}
}

static bj_output *conf_memory(const void *args) {
    (void)args;
    for (;;) memset(bj_alloc(1 << 20), 1, 1 << 20);
}

static bj_output *conf_peers(const void *args) {
    (void)args;
    size_t count;
    const bj_peer *peers = bj_peers(&count);
    bj_text_buffer out = { NULL, 0, 0 };
    bj_put(&out, "[");
    for (size_t at = 0; at < count; at++) {
        bj_put(&out, at ? ",{\"name\":" : "{\"name\":");
        bj_put_json_string(&out, peers[at].name);
        bj_put(&out, ",\"description\":");
        bj_put_json_string(&out, peers[at].description);
        bj_put(&out, bj_format(",\"schema\":%s,\"read_only\":%s}", peers[at].schema,
                               peers[at].hints & BJ_READ_ONLY ? "true" : "false"));
    }
    bj_put(&out, "]");
    return bj_json(out.data);
}

typedef struct { const char *tool, *arguments; } conf_call_args;
static const bj_field conf_call_fields[] = {
    BJ_STRING(conf_call_args, tool, ""),
    BJ_STRING(conf_call_args, arguments, ""),
    BJ_END,
};

static bj_output *conf_call(const conf_call_args *args) { return bj_call(args->tool, args->arguments); }

typedef struct { bj_strings tools, arguments; } conf_call_many_args;
static const bj_field conf_call_many_fields[] = {
    BJ_STRINGS(conf_call_many_args, tools, ""),
    BJ_STRINGS(conf_call_many_args, arguments, ""),
    BJ_END,
};

static bj_output *conf_call_many(const conf_call_many_args *args) {
    size_t count = args->tools.count;
    if (args->arguments.count != count) return bj_error(BJ_INVALID_ARGUMENTS, "`arguments`: one for each tool");
    bj_peer_call *calls = bj_alloc(count * sizeof *calls + 1);
    for (size_t at = 0; at < count; at++) {
        calls[at].tool = args->tools.items[at];
        calls[at].arguments = args->arguments.items[at];
    }
    bj_output **outputs = bj_call_many(calls, count);
    bj_text_buffer out = { NULL, 0, 0 };
    bj_put(&out, "[");
    for (size_t at = 0; at < count; at++) {
        bj_put(&out, at ? "," : "");
        bj_put(&out, outputs[at]->is_error ? "{\"error\":" : "{\"ok\":");
        bj_put_json_string(&out, outputs[at]->is_error ? kinds[outputs[at]->kind] : bj_text_of(outputs[at]));
        bj_put(&out, "}");
    }
    bj_put(&out, "]");
    return bj_json(out.data);
}

BJ_TOOLS(
    BJ_TOOL(conf_types, "Answers its arguments, as JSON.", BJ_READ_ONLY | BJ_IDEMPOTENT),
    BJ_TOOL(conf_echo, "Answers the text.", BJ_READ_ONLY | BJ_IDEMPOTENT),
    BJ_TOOL(conf_error, "Fails with an error of this kind.", BJ_READ_ONLY),
    BJ_TOOL(conf_output, "Answers so many times `x`.", BJ_READ_ONLY),
    BJ_PLAIN_TOOL(conf_parts, "Answers a text, JSON and a file.", BJ_READ_ONLY),
    BJ_TOOL(conf_read, "Answers the content of a file.", BJ_READ_ONLY),
    BJ_TOOL(conf_write, "Writes a file.", 0),
    BJ_TOOL(conf_append, "Writes at the end of a file.", 0),
    BJ_TOOL(conf_list, "Answers the names in a directory, sorted.", BJ_READ_ONLY),
    BJ_TOOL(conf_mkdir, "Makes a directory.", 0),
    BJ_TOOL(conf_rename, "Renames a file.", 0),
    BJ_TOOL(conf_remove, "Removes a file.", 0),
    BJ_TOOL(conf_http, "Sends a request and answers its status and body.", BJ_OPEN_WORLD),
    BJ_TOOL(conf_config, "Answers a setting.", BJ_READ_ONLY),
    BJ_TOOL(conf_secret, "Answers whether a secret exists.", BJ_READ_ONLY),
    BJ_TOOL(conf_log, "Logs a message.", BJ_READ_ONLY),
    BJ_TOOL(conf_progress, "Reports progress.", BJ_READ_ONLY),
    BJ_PLAIN_TOOL(conf_clock, "Answers the time, and how long a moment takes.", BJ_READ_ONLY),
    BJ_TOOL(conf_random, "Answers random bytes.", BJ_READ_ONLY),
    BJ_PLAIN_TOOL(conf_environment, "Answers how many environment variables there are.", BJ_READ_ONLY),
    BJ_TOOL(conf_print, "Writes to the standard streams.", BJ_READ_ONLY),
    BJ_PLAIN_TOOL(conf_count, "Answers how often it was called in this store.", BJ_READ_ONLY),
    BJ_PLAIN_TOOL(conf_trap, "Ends the instance.", BJ_READ_ONLY),
    BJ_PLAIN_TOOL(conf_loop, "Never ends.", BJ_READ_ONLY),
    BJ_PLAIN_TOOL(conf_memory, "Takes memory until there is none.", BJ_READ_ONLY),
    BJ_PLAIN_TOOL(conf_peers, "Answers the other tools that can be called.", BJ_READ_ONLY),
    BJ_TOOL(conf_call, "Calls another tool and answers what it answers.", 0),
    BJ_TOOL(conf_call_many, "Calls other tools at once.", 0));
