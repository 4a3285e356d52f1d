// `word_count`: counts the words of a text file. Make it yours.

#include "belljar.hpp"

#include <sstream>

struct word_count_args {
    std::string path;
};

static int count(const std::string& text) {
    std::istringstream words(text);
    int found = 0;
    for (std::string word; words >> word;) found++;
    return found;
}

static belljar::result word_count(const word_count_args& args) {
    auto text = belljar::read_file(args.path);
    if (!text) return std::unexpected(text.error());
    return belljar::text(args.path + ": " + std::to_string(count(*text)) + " words");
}

BELLJAR_TOOLS(belljar::tool("word_count", "Counts the words of a text file.", word_count)
                  .read_only()
                  .idempotent()
                  .arg("path", &word_count_args::path, "The file, relative to the workspace."));
