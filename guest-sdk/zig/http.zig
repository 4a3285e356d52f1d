//! Requests through the host, to the hosts that the operator granted. The host joins secrets, which are
//! never seen here.

const std = @import("std");

const abi = @import("abi.zig");
const bj = @import("belljar.zig");

const imports = struct {
    extern "wasi:http/types@0.2.12" fn @"[constructor]fields"() i32;
    extern "wasi:http/types@0.2.12" fn @"[method]fields.append"(self: i32, name: [*]const u8, name_length: usize, value: [*]const u8, length: usize, into: *Slot) void;
    extern "wasi:http/types@0.2.12" fn @"[constructor]outgoing-request"(headers: i32) i32;
    extern "wasi:http/types@0.2.12" fn @"[method]outgoing-request.set-method"(self: i32, tag: u32, name: [*]const u8, length: usize) u32;
    extern "wasi:http/types@0.2.12" fn @"[method]outgoing-request.set-scheme"(self: i32, some: u32, tag: u32, name: usize, length: usize) u32;
    extern "wasi:http/types@0.2.12" fn @"[method]outgoing-request.set-authority"(self: i32, some: u32, text: [*]const u8, length: usize) u32;
    extern "wasi:http/types@0.2.12" fn @"[method]outgoing-request.set-path-with-query"(self: i32, some: u32, text: [*]const u8, length: usize) u32;
    extern "wasi:http/types@0.2.12" fn @"[method]outgoing-request.body"(self: i32, into: *Slot) void;
    extern "wasi:http/types@0.2.12" fn @"[method]outgoing-body.write"(self: i32, into: *Slot) void;
    extern "wasi:http/types@0.2.12" fn @"[static]outgoing-body.finish"(self: i32, some: u32, trailers: i32, into: *Slot) void;
    extern "wasi:http/types@0.2.12" fn @"[method]future-incoming-response.subscribe"(self: i32) i32;
    extern "wasi:http/types@0.2.12" fn @"[method]future-incoming-response.get"(self: i32, into: *Slot) void;
    extern "wasi:http/types@0.2.12" fn @"[resource-drop]future-incoming-response"(self: i32) void;
    extern "wasi:http/types@0.2.12" fn @"[method]incoming-response.status"(self: i32) u32;
    extern "wasi:http/types@0.2.12" fn @"[method]incoming-response.consume"(self: i32, into: *Slot) void;
    extern "wasi:http/types@0.2.12" fn @"[resource-drop]incoming-response"(self: i32) void;
    extern "wasi:http/types@0.2.12" fn @"[method]incoming-body.stream"(self: i32, into: *Slot) void;
    extern "wasi:http/types@0.2.12" fn @"[resource-drop]incoming-body"(self: i32) void;
    extern "wasi:http/outgoing-handler@0.2.12" fn handle(request: i32, some: u32, options: i32, into: *Slot) void;
    extern "wasi:io/poll@0.2.12" fn @"[method]pollable.block"(self: i32) void;
    extern "wasi:io/poll@0.2.12" fn @"[resource-drop]pollable"(self: i32) void;
    extern "wasi:io/streams@0.2.12" fn @"[method]input-stream.blocking-read"(self: i32, length: u64, into: *Slot) void;
    extern "wasi:io/streams@0.2.12" fn @"[method]output-stream.blocking-write-and-flush"(self: i32, data: [*]const u8, length: usize, into: *Slot) void;
    extern "wasi:io/streams@0.2.12" fn @"[resource-drop]input-stream"(self: i32) void;
    extern "wasi:io/streams@0.2.12" fn @"[resource-drop]output-stream"(self: i32) void;
};

/// Room for every result above: the largest has 56 bytes.
const Slot = extern struct {
    words: [16]u32 align(8),

    fn byte(slot: *const Slot, at: usize) u8 {
        return @as([*]const u8, @ptrCast(slot))[at];
    }

    fn handle(slot: *const Slot, at: usize) i32 {
        return @bitCast(slot.words[at]);
    }
};

const methods = [_][]const u8{ "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH" };
const chunk = 4096;

pub const Header = struct { name: []const u8, value: []const u8 };

pub const Request = struct {
    method: []const u8 = "GET",
    url: []const u8,
    headers: []const Header = &.{},
    body: ?[]const u8 = null,
};

/// An answer, read whole, whatever its status; a redirect is one too.
pub const Response = struct { status: u16, body: []const u8 };

/// Asks for what is at a URL.
pub fn get(call: *bj.Call, url: []const u8) !Response {
    return send(call, .{ .url = url });
}

/// Sends a request. Its error is one of the contract's.
pub fn send(call: *bj.Call, request: Request) !Response {
    var slot: Slot = undefined;
    var host: []const u8 = "";
    const outgoing = try prepared(call, request, &host);
    imports.@"[method]outgoing-request.body"(outgoing, &slot);
    const sink = slot.handle(1);
    imports.handle(outgoing, 0, 0, &slot);
    if (slot.byte(0) != 0) return refusal(call, slot.byte(8), host);
    const future = slot.handle(2);
    defer imports.@"[resource-drop]future-incoming-response"(future);
    if (request.body) |body| if (body.len > 0) {
        imports.@"[method]outgoing-body.write"(sink, &slot);
        const stream = slot.handle(1);
        var rest = body;
        while (rest.len > 0) {
            const now = rest[0..@min(rest.len, chunk)];
            imports.@"[method]output-stream.blocking-write-and-flush"(stream, now.ptr, now.len, &slot);
            if (slot.byte(0) != 0) return call.fail(.failed, "`{s}` did not take the request", .{host});
            rest = rest[now.len..];
        }
        imports.@"[resource-drop]output-stream"(stream);
    };
    imports.@"[static]outgoing-body.finish"(sink, 0, 0, &slot);
    if (slot.byte(0) != 0) return refusal(call, slot.byte(8), host);
    const ready = imports.@"[method]future-incoming-response.subscribe"(future);
    imports.@"[method]pollable.block"(ready);
    imports.@"[resource-drop]pollable"(ready);
    imports.@"[method]future-incoming-response.get"(future, &slot);
    if (slot.byte(0) == 0 or slot.byte(8) != 0) return call.fail(.failed, "`{s}` gave no answer", .{host});
    if (slot.byte(16) != 0) return refusal(call, slot.byte(24), host);
    const response = slot.handle(6);
    defer imports.@"[resource-drop]incoming-response"(response);
    const status = imports.@"[method]incoming-response.status"(response);
    return .{ .status = @truncate(status), .body = try readAll(call, response, host) };
}

fn prepared(call: *bj.Call, request: Request, host: *[]const u8) !i32 {
    var slot: Slot = undefined;
    const secure = std.mem.startsWith(u8, request.url, "https://");
    if (!secure and !std.mem.startsWith(u8, request.url, "http://")) return refused(call, request);
    var rest = request.url[if (secure) 8 else 7..];
    rest = rest[0 .. std.mem.indexOfScalar(u8, rest, '#') orelse rest.len];
    const end = std.mem.indexOfAny(u8, rest, "/?") orelse rest.len;
    host.* = rest[0..end];
    var path = rest[end..];
    if (path.len == 0 or path[0] != '/') path = try std.fmt.allocPrint(call.arena, "/{s}", .{path});
    const fields = imports.@"[constructor]fields"();
    for (request.headers) |one|
        imports.@"[method]fields.append"(fields, abi.at(one.name), one.name.len, abi.at(one.value), one.value.len, &slot);
    if (request.body) |body| {
        const name = "content-length";
        const length = try std.fmt.allocPrint(call.arena, "{d}", .{body.len});
        imports.@"[method]fields.append"(fields, name, name.len, length.ptr, length.len, &slot);
    }
    const outgoing = imports.@"[constructor]outgoing-request"(fields);
    const tag = for (methods, 0..) |known, at| {
        if (std.mem.eql(u8, known, request.method)) break at;
    } else methods.len;
    const bad = imports.@"[method]outgoing-request.set-method"(outgoing, @intCast(tag), abi.at(request.method), request.method.len) |
        imports.@"[method]outgoing-request.set-scheme"(outgoing, 1, @intFromBool(secure), 0, 0) |
        imports.@"[method]outgoing-request.set-authority"(outgoing, 1, abi.at(host.*), host.len) |
        imports.@"[method]outgoing-request.set-path-with-query"(outgoing, 1, path.ptr, path.len);
    return if (bad != 0 or host.len == 0) refused(call, request) else outgoing;
}

fn refused(call: *bj.Call, request: Request) error{ OutOfMemory, Tool } {
    return call.fail(.invalid_arguments, "`{s}` cannot be requested", .{request.url});
}

fn readAll(call: *bj.Call, response: i32, host: []const u8) ![]const u8 {
    var slot: Slot = undefined;
    imports.@"[method]incoming-response.consume"(response, &slot);
    const body = slot.handle(1);
    defer imports.@"[resource-drop]incoming-body"(body);
    imports.@"[method]incoming-body.stream"(body, &slot);
    const stream = slot.handle(1);
    defer imports.@"[resource-drop]input-stream"(stream);
    var whole: std.ArrayList(u8) = .empty;
    while (true) {
        imports.@"[method]input-stream.blocking-read"(stream, 64 << 10, &slot);
        if (slot.byte(0) != 0) break;
        const read: abi.Text = .{ .data = slot.words[1], .length = slot.words[2] };
        defer read.free(u8);
        try whole.appendSlice(call.arena, read.bytes());
    }
    if (slot.byte(4) != 1) return call.fail(.failed, "the response of `{s}` broke off", .{host});
    return whole.items;
}

/// The contract's error for a code of wasi:http.
fn refusal(call: *bj.Call, code: u8, host: []const u8) error{ OutOfMemory, Tool } {
    return switch (code) {
        15 => call.fail(.denied, "requests to `{s}` are not allowed", .{host}),
        4 => call.fail(.denied, "the address of `{s}` is not allowed", .{host}),
        26, 28 => call.fail(.too_large, "the response of `{s}` is larger than allowed", .{host}),
        else => call.fail(.failed, "the exchange with `{s}` failed (wasi:http error {d})", .{ host, code }),
    };
}
