// Write tools for belljar in C++23: one header, on top of C's `belljar.h`, included once.
//
//     struct word_count_args { std::string path; };
//
//     static belljar::result word_count(const word_count_args& args) { ... return belljar::text(...); }
//
//     BELLJAR_TOOLS(belljar::tool("word_count", "Counts the words of a text file.", word_count)
//                       .read_only()
//                       .arg("path", &word_count_args::path, "The file, relative to the workspace."));
//
// The types of the members become the JSON schema that models read: std::string, std::int64_t, double,
// bool, std::vector of these, and std::optional for what may be absent. Every call is checked against it
// before the function runs. Files are those of <cstdio> and <dirent.h>; the workspace is the current
// directory. There are no exceptions: what can fail gives std::expected.
#pragma once

#include "belljar.h"

#include <cstdint>
#include <expected>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belljar {

// Why a call gives nothing. The text goes to the model: it says what to do differently.
struct error {
    bj_error_kind kind;
    std::string message;
};

using failure = std::unexpected<error>;

inline failure fail(bj_error_kind kind, std::string message) { return failure(error{kind, std::move(message)}); }
inline failure invalid_arguments(std::string message) { return fail(BJ_INVALID_ARGUMENTS, std::move(message)); }
inline failure not_found(std::string message) { return fail(BJ_NOT_FOUND, std::move(message)); }
inline failure denied(std::string message) { return fail(BJ_DENIED, std::move(message)); }
inline failure too_large(std::string message) { return fail(BJ_TOO_LARGE, std::move(message)); }
inline failure failed(std::string message) { return fail(BJ_FAILED, std::move(message)); }

// An error of the functions in C as one of C++.
inline failure from_c(const bj_output* output) { return fail(output->kind, output->message); }
// The error that `errno` stands for, on a path as the model gave it.
inline failure from_errno(const std::string& path) { return from_c(bj_errno(path.c_str())); }

// An answer: parts, in order.
class output {
  public:
    output() : raw_(bj_answer()) {}
    // An answer of the functions in C.
    explicit output(bj_output* raw) : raw_(raw) {}
    output& text(std::string_view text) {
        bj_add_bytes(raw_, bj_copy(text.data(), text.size()), text.size());
        return *this;
    }
    // `json` is JSON text.
    output& json(std::string_view json) {
        bj_add_json(raw_, bj_copy(json.data(), json.size()));
        return *this;
    }
    // The name is for display; the host keeps its last component only.
    output& file(std::string_view name, std::string_view media_type, std::string_view data) {
        bj_add_file(raw_, bj_copy(name.data(), name.size()), bj_copy(media_type.data(), media_type.size()),
                    bj_copy(data.data(), data.size()), data.size());
        return *this;
    }
    // Its texts and its JSON, one below the other.
    std::string text_parts() const { return bj_text_of(raw_); }
    bj_output* raw() const { return raw_; }

  private:
    bj_output* raw_;
};

// What a tool's function gives.
using result = std::expected<output, error>;

inline output text(std::string_view value) { return output().text(value); }
inline output json(std::string_view value) { return output().json(value); }

// A text as JSON has it, with its quotes.
inline std::string quoted(const std::string& text) {
    bj_text_buffer out = {nullptr, 0, 0};
    bj_put_json_string(&out, text.c_str());
    return std::string(out.data, out.length);
}

// A line for the operator's log. Never shown to the model; the host keeps a bounded number.
inline void log(bj_level level, const std::string& message) { bj_log(level, message.c_str()); }
// How far a long call has come, both numbers in the same unit; a total of 0 = not known.
inline void progress(std::uint64_t done, std::uint64_t total, const std::string& message) {
    bj_progress(done, total, message.c_str());
}
// What the operator set for this tool. `tool.toml` names the keys.
inline std::optional<std::string> config(const std::string& key) {
    const char* value = bj_config(key.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
}
// Whether the operator granted this tool a secret of this name. Its value is never seen here.
inline bool secret_exists(const std::string& name) { return bj_secret_exists(name.c_str()); }

// A file's content.
inline std::expected<std::string, error> read_file(const std::string& path) {
    std::size_t length = 0;
    const char* data = bj_read_file(path.c_str(), &length);
    if (!data) return from_errno(path);
    return std::string(data, length);
}

// Makes or replaces a file, or writes at its end.
inline std::expected<void, error> write_file(const std::string& path, std::string_view data, bool append = false) {
    FILE* file = std::fopen(path.c_str(), append ? "ab" : "wb");
    if (!file) return from_errno(path);
    bool whole = std::fwrite(data.data(), 1, data.size(), file) == data.size();
    if (std::fclose(file) != 0 || !whole) return from_errno(path);
    return {};
}

struct response {
    int status;
    std::string body;
};

// Sends a request and reads the whole answer, whatever its status. Redirects are answers too.
inline std::expected<response, error> http(const std::string& method, const std::string& url,
                                           const std::vector<std::pair<std::string, std::string>>& headers = {},
                                           const std::optional<std::string>& body = std::nullopt) {
    std::vector<const char*> pairs;
    for (const auto& [name, value] : headers) {
        pairs.push_back(name.c_str());
        pairs.push_back(value.c_str());
    }
    pairs.push_back(nullptr);
    bj_response got;
    bj_output* error = bj_http(method.c_str(), url.c_str(), pairs.data(), body ? body->c_str() : nullptr,
                               body ? body->size() : 0, &got);
    if (error) return from_c(error);
    return response{got.status, std::string(got.body, got.length)};
}

// The other tools of the agent that this one works for. They are there when `tool.toml` asks for them
// (`peers = true`) and the operator agrees; a call made here is a call of that agent.
namespace peers {

struct peer {
    std::string name, description;
    std::string schema; // of its arguments, as JSON text
    bool read_only, idempotent, open_world;
};

// A call to be made: the tool, and its arguments as JSON text.
struct request {
    std::string tool, arguments = "{}";
};

// Those that can be called, in the agent's order.
inline std::vector<peer> list() {
    std::size_t count = 0;
    const bj_peer* all = bj_peers(&count);
    std::vector<peer> peers;
    for (const bj_peer* one = all; one != all + count; one++)
        peers.push_back({one->name, one->description, one->schema, (one->hints & BJ_READ_ONLY) != 0,
                         (one->hints & BJ_IDEMPOTENT) != 0, (one->hints & BJ_OPEN_WORLD) != 0});
    return peers;
}

// Calls one and waits for its answer.
inline result call(const std::string& tool, const std::string& arguments = "{}") {
    bj_output* made = bj_call(tool.c_str(), arguments.c_str());
    return made->is_error ? result(from_c(made)) : result(output(made));
}

// Calls several at once; those that only read overlap. One result for each, in their order.
inline std::vector<result> call_many(const std::vector<request>& calls) {
    std::vector<bj_peer_call> lowered;
    for (const auto& one : calls) lowered.push_back({one.tool.c_str(), one.arguments.c_str()});
    bj_output** made = bj_call_many(lowered.data(), lowered.size());
    std::vector<result> results;
    for (std::size_t at = 0; at < calls.size(); at++)
        results.push_back(made[at]->is_error ? result(from_c(made[at])) : result(output(made[at])));
    return results;
}

} // namespace peers

namespace detail {

template <class T> struct value;

// A plain value is read as in C.
template <class C> bj_output* read_plain(bj_type type, bj_reader& in, const char* name, C& into) {
    bj_field field = {type, name, nullptr, 0, BJ_REQUIRED, nullptr};
    return bj_read_value(&in, &field, &into);
}

template <> struct value<std::string> {
    static std::string schema() { return "\"type\":\"string\""; }
    static bj_output* read(bj_reader& in, const char* name, std::string& into) {
        const char* text = nullptr;
        bj_output* error = read_plain(BJ_T_STRING, in, name, text);
        if (!error) into = text;
        return error;
    }
};
template <> struct value<std::int64_t> {
    static std::string schema() { return "\"type\":\"integer\""; }
    static bj_output* read(bj_reader& in, const char* name, std::int64_t& into) {
        return read_plain(BJ_T_INTEGER, in, name, into);
    }
};
template <> struct value<double> {
    static std::string schema() { return "\"type\":\"number\""; }
    static bj_output* read(bj_reader& in, const char* name, double& into) {
        return read_plain(BJ_T_NUMBER, in, name, into);
    }
};
template <> struct value<bool> {
    static std::string schema() { return "\"type\":\"boolean\""; }
    static bj_output* read(bj_reader& in, const char* name, bool& into) {
        return read_plain(BJ_T_BOOLEAN, in, name, into);
    }
};
template <class T> struct value<std::vector<T>> {
    static std::string schema() { return "\"type\":\"array\",\"items\":{" + value<T>::schema() + "}"; }
    static bj_output* read(bj_reader& in, const char* name, std::vector<T>& into) {
        auto expected = [&] { return bj_error(BJ_INVALID_ARGUMENTS, bj_format("`%s`: expected a list", name)); };
        if (!bj_take(&in, "[")) return expected();
        bj_space(&in);
        if (bj_take(&in, "]")) return nullptr;
        for (;;) {
            bj_space(&in);
            T item{};
            if (bj_output* error = value<T>::read(in, name, item)) return error;
            into.push_back(std::move(item));
            bj_space(&in);
            if (bj_take(&in, "]")) return nullptr;
            if (!bj_take(&in, ",")) return expected();
        }
    }
};
template <class T> struct value<std::optional<T>> {
    static std::string schema() { return value<T>::schema(); }
    static bj_output* read(bj_reader& in, const char* name, std::optional<T>& into) {
        if (bj_take(&in, "null")) return nullptr;
        into.emplace();
        return value<T>::read(in, name, *into);
    }
};

template <class T> inline constexpr bool may_be_absent = false;
template <class T> inline constexpr bool may_be_absent<std::optional<T>> = true;

struct field {
    std::string name, schema;
    bool required;
    std::function<bj_output*(bj_reader&, void*)> read;
};

} // namespace detail

// A tool that is being described: what `tool` gives. Each function adds to it.
template <class Args> class described {
  public:
    described(std::string name, std::string description, std::function<result(const Args&)> run)
        : name_(std::move(name)), description_(std::move(description)), run_(std::move(run)) {}

    // A promise: it changes nothing outside its own store.
    described& read_only() { return hint(BJ_READ_ONLY); }
    // A promise: calling it again changes nothing more.
    described& idempotent() { return hint(BJ_IDEMPOTENT); }
    // It talks to the network.
    described& open_world() { return hint(BJ_OPEN_WORLD); }

    // An argument: a member of the struct, described for models.
    template <class T> described& arg(std::string name, T Args::*member, const std::string& description = "") {
        return add(std::move(name), member, description, {});
    }
    // A text with one of these values.
    described& choice(std::string name, std::string Args::*member, std::initializer_list<std::string> values,
                      const std::string& description = "") {
        return add(std::move(name), member, description, values);
    }

    bj_definition definition() const {
        std::string properties, required;
        for (const auto& field : fields_) {
            properties += (properties.empty() ? "" : ",") + quoted(field.name) + ":{" + field.schema + "}";
            if (field.required) required += (required.empty() ? "" : ",") + quoted(field.name);
        }
        std::string schema = "{\"type\":\"object\",\"properties\":{" + properties + "}";
        if (!required.empty()) schema += ",\"required\":[" + required + "]";
        schema += ",\"additionalProperties\":false}";
        auto kept = [](const std::string& text) { return bj_bytes_of(bj_copy(text.data(), text.size())); };
        return {kept(name_), kept(description_), kept(schema), hints_};
    }

    bj_output* run(const char* json, std::size_t length) const {
        Args args{};
        if (bj_output* error = read(json, length, args)) return error;
        result made = run_(args);
        return made ? made->raw() : bj_error(made.error().kind, bj_format("%s", made.error().message.c_str()));
    }

    const std::string& name() const { return name_; }

  private:
    described& hint(int hint) {
        hints_ |= static_cast<std::uint8_t>(hint);
        return *this;
    }

    template <class T>
    described& add(std::string name, T Args::*member, const std::string& description,
                   std::vector<std::string> choices) {
        std::string schema = detail::value<T>::schema(), listed;
        for (const auto& choice : choices) listed += (listed.empty() ? "" : ",") + quoted(choice);
        if (!choices.empty()) schema += ",\"enum\":[" + listed + "]";
        if (!description.empty()) schema += ",\"description\":" + quoted(description);
        auto read = [name, member, choices](bj_reader& in, void* args) -> bj_output* {
            T& into = static_cast<Args*>(args)->*member;
            if (bj_output* error = detail::value<T>::read(in, name.c_str(), into)) return error;
            if constexpr (std::is_same_v<T, std::string>) {
                bool known = choices.empty();
                for (const auto& choice : choices) known = known || choice == into;
                if (!known)
                    return bj_error(BJ_INVALID_ARGUMENTS,
                                    bj_format("`%s`: `%s` is no choice", name.c_str(), into.c_str()));
            }
            return nullptr;
        };
        fields_.push_back({std::move(name), std::move(schema), !detail::may_be_absent<T>, std::move(read)});
        return *this;
    }

    bj_output* read(const char* json, std::size_t length, Args& args) const {
        auto refuse = [](const char* text) { return bj_error(BJ_INVALID_ARGUMENTS, text); };
        bj_reader in = {json, json + length};
        std::vector<bool> seen(fields_.size());
        bj_space(&in);
        if (!bj_take(&in, "{")) return refuse("the arguments are no JSON object");
        bj_space(&in);
        for (bool more = !bj_take(&in, "}"); more;) {
            bj_space(&in);
            const char* name = bj_read_string(&in);
            bj_space(&in);
            if (!name || !bj_take(&in, ":")) return refuse("the arguments are not JSON");
            bj_space(&in);
            std::size_t at = 0;
            while (at < fields_.size() && fields_[at].name != name) at++;
            if (at == fields_.size()) return refuse(bj_format("unknown field `%s`", name));
            if (bj_output* error = fields_[at].read(in, &args)) return error;
            seen[at] = true;
            bj_space(&in);
            more = bj_take(&in, ",");
            if (!more && !bj_take(&in, "}")) return refuse(bj_format("`%s`: not JSON", name));
        }
        for (std::size_t at = 0; at < fields_.size(); at++)
            if (fields_[at].required && !seen[at])
                return refuse(bj_format("missing field `%s`", fields_[at].name.c_str()));
        return nullptr;
    }

    std::string name_, description_;
    std::uint8_t hints_ = 0;
    std::function<result(const Args&)> run_;
    std::vector<detail::field> fields_;
};

// A tool: its name, its description for models, its function.
template <class Args> described<Args> tool(std::string name, std::string description, result (*run)(const Args&)) {
    return described<Args>(std::move(name), std::move(description), run);
}

struct nothing {};

// A tool without arguments.
inline described<nothing> tool(std::string name, std::string description, result (*run)()) {
    return described<nothing>(std::move(name), std::move(description), [run](const nothing&) { return run(); });
}

namespace detail {

// Any tool, whatever its arguments.
struct any {
    std::string name;
    std::function<bj_definition()> definition;
    std::function<bj_output*(const char*, std::size_t)> run;

    template <class Args> any(described<Args> tool) : name(tool.name()) {
        definition = [tool] { return tool.definition(); };
        run = [tool](const char* json, std::size_t length) { return tool.run(json, length); };
    }
};

inline void* describe(const std::vector<any>& tools) {
    auto* list = static_cast<bj_definition*>(bj_alloc(tools.size() * sizeof(bj_definition)));
    for (std::size_t at = 0; at < tools.size(); at++) list[at] = tools[at].definition();
    return bj_definitions(list, tools.size());
}

inline bj_output* run(const std::vector<any>& tools, const char* name, const char* json, std::size_t length) {
    for (const auto& tool : tools)
        if (tool.name == name) return tool.run(json, length);
    return bj_error(BJ_NOT_FOUND, bj_format("this component has no tool `%s`", name));
}

} // namespace detail
} // namespace belljar

// The tools of this component.
#define BELLJAR_TOOLS(...) \
    static const std::vector<belljar::detail::any>& belljar_tools() { \
        static const std::vector<belljar::detail::any> tools = {__VA_ARGS__}; \
        return tools; \
    } \
    static void* belljar_describe() { return belljar::detail::describe(belljar_tools()); } \
    static bj_output* belljar_run(const char* name, const char* json, std::size_t length) { \
        return belljar::detail::run(belljar_tools(), name, json, length); \
    } \
    BJ_EXPORTS(belljar_describe, belljar_run)
