/* `word_count`: counts the words of a text file. Make it yours. */

#include "belljar.h"

#include <ctype.h>

typedef struct {
    const char *path;
} word_count_args;

static const bj_field word_count_fields[] = {
    BJ_STRING(word_count_args, path, "The file, relative to the workspace."),
    BJ_END,
};

static int count(const char *text) {
    int words = 0;
    for (bool inside = false; *text; text++) {
        bool space = isspace((unsigned char)*text);
        words += !space && !inside;
        inside = !space;
    }
    return words;
}

static bj_output *word_count(const word_count_args *args) {
    const char *text = bj_read_file(args->path, NULL);
    if (!text) return bj_errno(args->path);
    return bj_text(bj_format("%s: %d words", args->path, count(text)));
}

BJ_TOOLS(BJ_TOOL(word_count, "Counts the words of a text file.", BJ_READ_ONLY | BJ_IDEMPOTENT));
