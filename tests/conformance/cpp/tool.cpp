// The conformance tools in C++. `tests/conformance/README.md` says what each has to do.

#include "belljar.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace bj = belljar;

struct types {
    std::string text, color;
    std::int64_t count;
    double ratio;
    bool flag;
    std::vector<std::string> words;
    std::optional<std::string> note;
};

static std::string listed(const std::vector<std::string>& texts) {
    std::string list;
    for (const auto& text : texts) list += (list.empty() ? "" : ",") + bj::quoted(text);
    return "[" + list + "]";
}

static bj::result conf_types(const types& args) {
    return bj::json("{\"text\":" + bj::quoted(args.text) + ",\"count\":" + std::to_string(args.count) +
                    ",\"ratio\":" + bj_format("%.17g", args.ratio) + ",\"flag\":" +
                    (args.flag ? "true" : "false") + ",\"words\":" + listed(args.words) +
                    ",\"color\":" + bj::quoted(args.color) +
                    ",\"note\":" + (args.note ? bj::quoted(*args.note) : "null") + "}");
}

struct one_text { std::string text; };
struct one_path { std::string path; };
struct one_name { std::string name; };
struct one_number { std::int64_t number; };
struct two_texts { std::string first, second; };

static bj::result conf_echo(const one_text& args) { return bj::text(args.text); }

static constexpr std::array kinds = {"invalid-arguments", "not-found", "denied", "too-large", "failed"};

static bj::result conf_error(const two_texts& args) {
    int kind = 0;
    while (kind < BJ_FAILED && args.first != kinds[kind]) kind++;
    return bj::fail(static_cast<bj_error_kind>(kind), args.second);
}

static bj::result conf_output(const one_number& args) {
    return bj::text(std::string(static_cast<std::size_t>(args.number), 'x'));
}

static bj::result conf_parts() {
    std::string bytes;
    for (int at = 0; at < 256; at++) bytes += static_cast<char>(at);
    return bj::text("one").json("{\"two\":2}").file("three.bin", "application/octet-stream", bytes);
}

static bj::result conf_read(const one_path& args) {
    return bj::read_file(args.path).transform([](const std::string& text) { return bj::text(text); });
}

static bj::result conf_write(const two_texts& args) {
    return bj::write_file(args.first, args.second).transform([] { return bj::text("written"); });
}

static bj::result conf_append(const two_texts& args) {
    return bj::write_file(args.first, args.second, true).transform([] { return bj::text("appended"); });
}

static bj::result conf_list(const one_path& args) {
    DIR* directory = opendir(args.path.c_str());
    if (!directory) return bj::from_errno(args.path);
    std::vector<std::string> names;
    while (dirent* entry = readdir(directory)) {
        std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(name);
    }
    closedir(directory);
    std::ranges::sort(names);
    return bj::json(listed(names));
}

static bj::result conf_mkdir(const one_path& args) {
    if (mkdir(args.path.c_str(), 0777) != 0) return bj::from_errno(args.path);
    return bj::text("made");
}

static bj::result conf_rename(const two_texts& args) {
    if (std::rename(args.first.c_str(), args.second.c_str()) != 0) return bj::from_errno(args.first);
    return bj::text("renamed");
}

static bj::result conf_remove(const one_path& args) {
    if (std::remove(args.path.c_str()) != 0) return bj::from_errno(args.path);
    return bj::text("removed");
}

struct request {
    std::string method, url;
    std::optional<std::string> body;
};

static bj::result conf_http(const request& args) {
    return bj::http(args.method, args.url, {}, args.body).transform([](const bj::response& got) {
        return bj::json("{\"status\":" + std::to_string(got.status) + ",\"body\":" + bj::quoted(got.body) + "}");
    });
}

static bj::result conf_config(const one_name& args) {
    auto value = bj::config(args.name);
    return bj::json("{\"value\":" + (value ? bj::quoted(*value) : "null") + "}");
}

static bj::result conf_secret(const one_name& args) {
    return bj::json(bj::secret_exists(args.name) ? "{\"exists\":true}" : "{\"exists\":false}");
}

struct logged {
    std::string level, message;
    std::int64_t times;
};

static bj::result conf_log(const logged& args) {
    static const std::array levels = {"trace", "debug", "info", "warn", "error"};
    int level = 0;
    while (level < BJ_ERROR && args.level != levels[level]) level++;
    for (std::int64_t at = 0; at < args.times; at++) bj::log(static_cast<bj_level>(level), args.message);
    return bj::text("logged");
}

static bj::result conf_progress(const one_number& args) {
    for (std::int64_t step = 1; step <= args.number; step++)
        bj::progress(step, args.number, "step " + std::to_string(step));
    return bj::text("reported");
}

static bj::result conf_clock() {
    using namespace std::chrono;
    auto wall = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
    auto begun = steady_clock::now();
    auto elapsed = duration_cast<nanoseconds>(steady_clock::now() - begun).count();
    return bj::json("{\"wall_ms\":" + std::to_string(wall) + ",\"elapsed_ns\":" + std::to_string(elapsed) + "}");
}

static bj::result conf_random(const one_number& args) {
    std::string hex;
    for (std::int64_t at = 0; at < args.number; at++) {
        unsigned char byte = 0;
        if (getentropy(&byte, 1) != 0) return bj::failed("no random bytes");
        hex += bj_format("%02x", byte);
    }
    return bj::json("{\"hex\":\"" + hex + "\"}");
}

extern "C" char** environ;

static bj::result conf_environment() {
    int count = 0;
    while (environ && environ[count]) count++;
    return bj::json("{\"variables\":" + std::to_string(count) + "}");
}

static bj::result conf_print(const two_texts& args) {
    std::printf("%s\n", args.first.c_str());
    std::fprintf(stderr, "%s\n", args.second.c_str());
    return bj::text("printed");
}

static bj::result conf_count() {
    static int count = 0;
    return bj::json("{\"count\":" + std::to_string(++count) + "}");
}

static bj::result conf_trap() { std::abort(); }

static bj::result conf_loop() {
    for (volatile unsigned turns = 0;; turns = turns + 1) {}
}

static bj::result conf_memory() {
    for (;;) {
        char* taken = new (std::nothrow) char[1 << 20];
        if (!taken) std::abort();
        std::fill_n(taken, 1 << 20, 'x');
        // Without this the compiler sees that nobody reads it.
        asm volatile("" : : "r"(taken) : "memory");
    }
}

static bj::result conf_peers() {
    std::string list;
    for (const auto& peer : bj::peers::list()) {
        list += (list.empty() ? "" : ",") + ("{\"name\":" + bj::quoted(peer.name)) +
                ",\"description\":" + bj::quoted(peer.description) + ",\"schema\":" + peer.schema +
                ",\"read_only\":" + (peer.read_only ? "true}" : "false}");
    }
    return bj::json("[" + list + "]");
}

static bj::result conf_call(const two_texts& args) { return bj::peers::call(args.first, args.second); }

struct many_calls { std::vector<std::string> tools, arguments; };

static bj::result conf_call_many(const many_calls& args) {
    if (args.tools.size() != args.arguments.size())
        return bj::invalid_arguments("`arguments`: one for each tool");
    std::vector<bj::peers::request> calls;
    for (std::size_t at = 0; at < args.tools.size(); at++) calls.push_back({args.tools[at], args.arguments[at]});
    std::string list;
    for (const auto& made : bj::peers::call_many(calls)) {
        list += list.empty() ? "" : ",";
        list += made ? "{\"ok\":" + bj::quoted(made->text_parts()) + "}"
                     : "{\"error\":" + bj::quoted(kinds[made.error().kind]) + "}";
    }
    return bj::json("[" + list + "]");
}

BELLJAR_TOOLS(
    bj::tool("conf_types", "Answers its arguments, as JSON.", conf_types)
        .read_only()
        .idempotent()
        .arg("text", &types::text, "Any text.")
        .arg("count", &types::count, "A whole number.")
        .arg("ratio", &types::ratio, "A number.")
        .arg("flag", &types::flag, "Yes or no.")
        .arg("words", &types::words, "Some words.")
        .choice("color", &types::color, {"red", "green", "blue"}, "One of three.")
        .arg("note", &types::note, "May be left out."),
    bj::tool("conf_echo", "Answers the text.", conf_echo).read_only().idempotent().arg("text", &one_text::text),
    bj::tool("conf_error", "Fails with an error of this kind.", conf_error)
        .read_only()
        .arg("kind", &two_texts::first)
        .arg("message", &two_texts::second),
    bj::tool("conf_output", "Answers so many times `x`.", conf_output).read_only().arg("bytes", &one_number::number),
    bj::tool("conf_parts", "Answers a text, JSON and a file.", conf_parts).read_only(),
    bj::tool("conf_read", "Answers the content of a file.", conf_read).read_only().arg("path", &one_path::path),
    bj::tool("conf_write", "Writes a file.", conf_write).arg("path", &two_texts::first).arg("text", &two_texts::second),
    bj::tool("conf_append", "Writes at the end of a file.", conf_append)
        .arg("path", &two_texts::first)
        .arg("text", &two_texts::second),
    bj::tool("conf_list", "Answers the names in a directory, sorted.", conf_list).read_only().arg("path", &one_path::path),
    bj::tool("conf_mkdir", "Makes a directory.", conf_mkdir).arg("path", &one_path::path),
    bj::tool("conf_rename", "Renames a file.", conf_rename)
        .arg("source", &two_texts::first)
        .arg("target", &two_texts::second),
    bj::tool("conf_remove", "Removes a file.", conf_remove).arg("path", &one_path::path),
    bj::tool("conf_http", "Sends a request and answers its status and body.", conf_http)
        .open_world()
        .arg("method", &request::method)
        .arg("url", &request::url)
        .arg("body", &request::body),
    bj::tool("conf_config", "Answers a setting.", conf_config).read_only().arg("key", &one_name::name),
    bj::tool("conf_secret", "Answers whether a secret exists.", conf_secret).read_only().arg("name", &one_name::name),
    bj::tool("conf_log", "Logs a message.", conf_log)
        .read_only()
        .choice("level", &logged::level, {"trace", "debug", "info", "warn", "error"})
        .arg("message", &logged::message)
        .arg("times", &logged::times),
    bj::tool("conf_progress", "Reports progress.", conf_progress).read_only().arg("steps", &one_number::number),
    bj::tool("conf_clock", "Answers the time, and how long a moment takes.", conf_clock).read_only(),
    bj::tool("conf_random", "Answers random bytes.", conf_random).read_only().arg("bytes", &one_number::number),
    bj::tool("conf_environment", "Answers how many environment variables there are.", conf_environment).read_only(),
    bj::tool("conf_print", "Writes to the standard streams.", conf_print)
        .read_only()
        .arg("out", &two_texts::first)
        .arg("err", &two_texts::second),
    bj::tool("conf_count", "Answers how often it was called in this store.", conf_count).read_only(),
    bj::tool("conf_trap", "Ends the instance.", conf_trap).read_only(),
    bj::tool("conf_loop", "Never ends.", conf_loop).read_only(),
    bj::tool("conf_memory", "Takes memory until there is none.", conf_memory).read_only(),
    bj::tool("conf_peers", "Answers the other tools that can be called.", conf_peers).read_only(),
    bj::tool("conf_call", "Calls another tool and answers what it answers.", conf_call)
        .arg("tool", &two_texts::first)
        .arg("arguments", &two_texts::second),
    bj::tool("conf_call_many", "Calls other tools at once.", conf_call_many)
        .arg("tools", &many_calls::tools)
        .arg("arguments", &many_calls::arguments));
