//! The other tools of the agent that a tool works for. They are there when `tool.toml` asks for them
//! (`peers = true`, or a list of names) and the operator agrees. A call made here is a call of that agent:
//! the same person is asked, the same budgets pay.

const std = @import("std");

const abi = @import("abi.zig");
const bj = @import("belljar.zig");
const component = @import("component.zig");

const imports = struct {
    extern "belljar:tool/peers@0.2.0" fn list(into: *abi.Text) void;
    extern "belljar:tool/peers@0.2.0" fn call(name: [*]const u8, name_length: usize, arguments: [*]const u8, length: usize, into: *component.Result) void;
    extern "belljar:tool/peers@0.2.0" fn @"call-many"(calls: [*]const Lowered, count: usize, into: *abi.Text) void;
};

const Lowered = extern struct { tool: abi.Text, arguments: abi.Text };

/// A call to be made: the tool, and its arguments as JSON text.
pub const Request = struct { tool: []const u8, arguments: []const u8 };

/// A tool that can be called; its schema is JSON text.
pub const Peer = struct { name: []const u8, description: []const u8, schema: []const u8, hints: bj.Hints };

/// What became of one of several calls.
pub const Result = union(enum) {
    ok: bj.Output,
    err: struct { kind: bj.Kind, message: []const u8 },
};

/// Those that can be called, in the agent's order.
pub fn list(call_here: *bj.Call) ![]const Peer {
    var into: abi.Text = undefined;
    imports.list(&into);
    defer into.free(component.Definition);
    const peers = try call_here.arena.alloc(Peer, into.length);
    for (peers, into.list(component.Definition)) |*peer, one| peer.* = .{
        .name = try one.name.taken(call_here.arena),
        .description = try one.description.taken(call_here.arena),
        .schema = try one.schema.taken(call_here.arena),
        .hints = @bitCast(one.hints),
    };
    return peers;
}

/// Calls one with what `std.json` makes of a struct, and waits for its answer. An error of the contract is
/// handed on with its words, and stands in `call.kind` and `call.message`.
pub fn call(call_here: *bj.Call, name: []const u8, arguments: anytype) !bj.Output {
    return callText(call_here, name, try std.json.Stringify.valueAlloc(call_here.arena, arguments, .{}));
}

/// The same, with arguments that are JSON text.
pub fn callText(call_here: *bj.Call, name: []const u8, arguments: []const u8) !bj.Output {
    var into: component.Result = undefined;
    imports.call(abi.at(name), name.len, abi.at(arguments), arguments.len, &into);
    switch (try taken(call_here.arena, into)) {
        .ok => |output| return output,
        .err => |err| return call_here.fail(err.kind, "{s}", .{err.message}),
    }
}

/// Calls several at once; those that only read overlap. One result for each, in their order.
pub fn callMany(call_here: *bj.Call, calls: []const Request) ![]const Result {
    const requests = try call_here.arena.alloc(Lowered, calls.len);
    for (requests, calls) |*request, one| request.* = .{ .tool = .of(one.tool), .arguments = .of(one.arguments) };
    if (calls.len == 0) return &.{};
    var into: abi.Text = undefined;
    imports.@"call-many"(requests.ptr, requests.len, &into);
    defer into.free(component.Result);
    const results = try call_here.arena.alloc(Result, into.length);
    for (results, into.list(component.Result)) |*result, one| result.* = try taken(call_here.arena, one);
    return results;
}

/// The texts and the JSON of an answer, one below the other.
pub fn textOf(call_here: *bj.Call, output: bj.Output) ![]const u8 {
    var text: std.ArrayList(u8) = .empty;
    for (output.parts) |part| switch (part) {
        .text, .json => |one| {
            if (text.items.len > 0) try text.append(call_here.arena, '\n');
            try text.appendSlice(call_here.arena, one);
        },
        .file => {},
    };
    return text.items;
}

fn taken(arena: std.mem.Allocator, result: component.Result) !Result {
    if (result.is_error != 0) {
        const message: abi.Text = .{ .data = result.second, .length = result.third };
        const kind: u8 = @truncate(result.first);
        return .{ .err = .{ .kind = @fromBackingInt(@intCast(@min(kind, 4))), .message = try message.taken(arena) } };
    }
    const handed: abi.Text = .{ .data = result.first, .length = result.second };
    defer handed.free(component.Part);
    const parts = try arena.alloc(bj.Part, handed.length);
    for (parts, handed.list(component.Part)) |*part, one| part.* = switch (one.tag) {
        0 => .{ .text = try one.texts[0].taken(arena) },
        1 => .{ .json = try one.texts[0].taken(arena) },
        else => .{ .file = .{
            .name = try one.texts[0].taken(arena),
            .media_type = try one.texts[1].taken(arena),
            .data = try one.texts[2].taken(arena),
        } },
    };
    return .{ .ok = .{ .parts = parts } };
}
