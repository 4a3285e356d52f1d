//! The conformance tools in Zig. `tests/conformance/README.md` says what each has to do.

const std = @import("std");
const bj = @import("belljar");
const wasi = std.os.wasi;

const Call = bj.Call;
const Text = struct { text: []const u8 };
const Path = struct { path: []const u8 };
const Amount = struct { bytes: u32 };
const Nothing = struct {};

const Types = struct {
    text: []const u8,
    count: i64,
    ratio: f64,
    flag: bool,
    words: []const []const u8,
    color: enum { red, green, blue },
    note: ?[]const u8,

    pub const describe = .{
        .text = "Any text.",
        .count = "A whole number.",
        .ratio = "A number.",
        .flag = "Yes or no.",
        .words = "Some words.",
        .color = "One of three.",
        .note = "May be left out.",
    };
};

fn types(call: *Call, args: Types) !bj.Output {
    return call.json(args);
}

fn echo(call: *Call, args: Text) !bj.Output {
    return call.text(args.text);
}

fn fail(call: *Call, args: struct { kind: []const u8, message: []const u8 }) !bj.Output {
    for (std.enums.values(bj.Kind)) |kind| {
        if (std.mem.eql(u8, kind.word(), args.kind)) return call.fail(kind, "{s}", .{args.message});
    }
    return call.fail(.failed, "{s}", .{args.message});
}

fn output(call: *Call, args: Amount) !bj.Output {
    const made = try call.arena.alloc(u8, args.bytes);
    @memset(made, 'x');
    return call.text(made);
}

fn parts(call: *Call, _: Nothing) !bj.Output {
    const bytes = try call.arena.alloc(u8, 256);
    for (bytes, 0..) |*byte, at| byte.* = @intCast(at);
    return call.parts(&.{
        .{ .text = "one" },
        .{ .json = "{\"two\":2}" },
        .{ .file = .{ .name = "three.bin", .media_type = "application/octet-stream", .data = bytes } },
    });
}

fn read(call: *Call, args: Path) !bj.Output {
    return call.text(try call.read(args.path));
}

const Written = struct { path: []const u8, text: []const u8 };

fn write(call: *Call, args: Written) !bj.Output {
    try call.write(args.path, args.text);
    return call.text("written");
}

fn append(call: *Call, args: Written) !bj.Output {
    try call.append(args.path, args.text);
    return call.text("appended");
}

fn list(call: *Call, args: Path) !bj.Output {
    const dir = call.dir.openDir(call.io, call.path(args.path), .{ .iterate = true }) catch |err| return call.refused(err, args.path);
    defer dir.close(call.io);
    var names: std.ArrayList([]const u8) = .empty;
    var entries = dir.iterate();
    while (entries.next(call.io) catch |err| return call.refused(err, args.path)) |entry|
        try names.append(call.arena, try call.arena.dupe(u8, entry.name));
    std.mem.sort([]const u8, names.items, {}, struct {
        fn before(_: void, a: []const u8, b: []const u8) bool {
            return std.mem.lessThan(u8, a, b);
        }
    }.before);
    return call.json(names.items);
}

fn mkdir(call: *Call, args: Path) !bj.Output {
    call.dir.createDir(call.io, call.path(args.path), .default_dir) catch |err| return call.refused(err, args.path);
    return call.text("made");
}

fn rename(call: *Call, args: struct { source: []const u8, target: []const u8 }) !bj.Output {
    call.dir.rename(call.path(args.source), call.dir, call.path(args.target), call.io) catch |err| return call.refused(err, args.source);
    return call.text("renamed");
}

fn remove(call: *Call, args: Path) !bj.Output {
    call.dir.deleteFile(call.io, call.path(args.path)) catch |err| return call.refused(err, args.path);
    return call.text("removed");
}

fn http(call: *Call, args: struct { method: []const u8, url: []const u8, body: ?[]const u8 }) !bj.Output {
    const answer = try bj.http.send(call, .{ .method = args.method, .url = args.url, .body = args.body });
    return call.json(.{ .status = answer.status, .body = answer.body });
}

fn config(call: *Call, args: struct { key: []const u8 }) !bj.Output {
    return call.json(.{ .value = try call.config(args.key) });
}

fn secret(call: *Call, args: struct { name: []const u8 }) !bj.Output {
    return call.json(.{ .exists = try call.secretExists(args.name) });
}

fn log(call: *Call, args: struct { level: bj.log.Level, message: []const u8, times: u32 }) !bj.Output {
    for (0..args.times) |_| bj.log.at(args.level, args.message);
    return call.text("logged");
}

fn progress(call: *Call, args: struct { steps: u64 }) !bj.Output {
    for (1..@intCast(args.steps + 1)) |step|
        bj.progress(step, args.steps, try std.fmt.allocPrint(call.arena, "step {d}", .{step}));
    return call.text("reported");
}

fn clock(call: *Call, _: Nothing) !bj.Output {
    const wall = std.Io.Clock.now(.real, call.io);
    const begun = std.Io.Clock.now(.awake, call.io);
    const elapsed = std.Io.Clock.now(.awake, call.io).nanoseconds - begun.nanoseconds;
    return call.json(.{ .wall_ms = @as(i64, @intCast(@divTrunc(wall.nanoseconds, 1_000_000))), .elapsed_ns = @as(i64, @intCast(elapsed)) });
}

fn random(call: *Call, args: Amount) !bj.Output {
    const bytes = try call.arena.alloc(u8, args.bytes);
    try call.io.randomSecure(bytes);
    return call.json(.{ .hex = try std.fmt.allocPrint(call.arena, "{x}", .{bytes}) });
}

fn environment(call: *Call, _: Nothing) !bj.Output {
    var found: usize = 0;
    var size: usize = 0;
    if (wasi.environ_sizes_get(&found, &size) != .SUCCESS) return call.fail(.failed, "there is no environment", .{});
    return call.json(.{ .variables = found });
}

fn print(call: *Call, args: struct { out: []const u8, err: []const u8 }) !bj.Output {
    try std.Io.File.stdout().writeStreamingAll(call.io, args.out);
    try std.Io.File.stderr().writeStreamingAll(call.io, args.err);
    return call.text("printed");
}

var calls: u32 = 0;

fn count(call: *Call, _: Nothing) !bj.Output {
    calls += 1;
    return call.json(.{ .count = calls });
}

fn trap(_: *Call, _: Nothing) !bj.Output {
    @trap();
}

fn loop(call: *Call, _: Nothing) !bj.Output {
    var turns: u32 = 0;
    const seen: *volatile u32 = &turns;
    while (seen.* < std.math.maxInt(u32)) seen.* = seen.* % 7;
    return call.text("ended");
}

fn memory(call: *Call, _: Nothing) !bj.Output {
    while (true) @memset(try call.arena.alloc(u8, 1 << 20), 1);
}

const Listed = struct { name: []const u8, description: []const u8, schema: std.json.Value, read_only: bool };

fn peers(call: *Call, _: Nothing) !bj.Output {
    var listed: std.ArrayList(Listed) = .empty;
    for (try bj.peers.list(call)) |peer| try listed.append(call.arena, .{
        .name = peer.name,
        .description = peer.description,
        .schema = try std.json.parseFromSliceLeaky(std.json.Value, call.arena, peer.schema, .{}),
        .read_only = peer.hints.read_only,
    });
    return call.json(listed.items);
}

fn callOne(call: *Call, args: struct { tool: []const u8, arguments: []const u8 }) !bj.Output {
    return bj.peers.callText(call, args.tool, args.arguments);
}

const One = union(enum) { ok: []const u8, @"error": []const u8 };

fn callMany(call: *Call, args: struct { tools: []const []const u8, arguments: []const []const u8 }) !bj.Output {
    if (args.tools.len != args.arguments.len) return call.fail(.invalid_arguments, "`arguments`: one for each tool", .{});
    const requests = try call.arena.alloc(bj.peers.Request, args.tools.len);
    for (requests, args.tools, args.arguments) |*request, name, given| request.* = .{ .tool = name, .arguments = given };
    var listed: std.ArrayList(One) = .empty;
    for (try bj.peers.callMany(call, requests)) |result| try listed.append(call.arena, switch (result) {
        .ok => |answer| .{ .ok = try bj.peers.textOf(call, answer) },
        .err => |err| .{ .@"error" = err.kind.word() },
    });
    return call.json(listed.items);
}

comptime {
    const read_only: bj.Hints = .{ .read_only = true };
    const both: bj.Hints = .{ .read_only = true, .idempotent = true };
    bj.offer(&.{
        bj.tool("conf_types", "Answers its arguments, as JSON.", types, both),
        bj.tool("conf_echo", "Answers the text.", echo, both),
        bj.tool("conf_error", "Fails with an error of this kind.", fail, read_only),
        bj.tool("conf_output", "Answers so many times `x`.", output, read_only),
        bj.tool("conf_parts", "Answers a text, JSON and a file.", parts, read_only),
        bj.tool("conf_read", "Answers the content of a file.", read, read_only),
        bj.tool("conf_write", "Writes a file.", write, .{}),
        bj.tool("conf_append", "Writes at the end of a file.", append, .{}),
        bj.tool("conf_list", "Answers the names in a directory, sorted.", list, read_only),
        bj.tool("conf_mkdir", "Makes a directory.", mkdir, .{}),
        bj.tool("conf_rename", "Renames a file.", rename, .{}),
        bj.tool("conf_remove", "Removes a file.", remove, .{}),
        bj.tool("conf_http", "Sends a request and answers its status and body.", http, .{ .open_world = true }),
        bj.tool("conf_config", "Answers a setting.", config, read_only),
        bj.tool("conf_secret", "Answers whether a secret exists.", secret, read_only),
        bj.tool("conf_log", "Logs a message.", log, read_only),
        bj.tool("conf_progress", "Reports progress.", progress, read_only),
        bj.tool("conf_clock", "Answers the time, and how long a moment takes.", clock, read_only),
        bj.tool("conf_random", "Answers random bytes.", random, read_only),
        bj.tool("conf_environment", "Answers how many environment variables there are.", environment, read_only),
        bj.tool("conf_print", "Writes to the standard streams.", print, read_only),
        bj.tool("conf_count", "Answers how often it was called in this store.", count, read_only),
        bj.tool("conf_trap", "Ends the instance.", trap, read_only),
        bj.tool("conf_loop", "Never ends.", loop, read_only),
        bj.tool("conf_memory", "Takes memory until there is none.", memory, read_only),
        bj.tool("conf_peers", "Answers the other tools that can be called.", peers, read_only),
        bj.tool("conf_call", "Calls another tool and answers what it answers.", callOne, .{}),
        bj.tool("conf_call_many", "Calls other tools at once.", callMany, .{}),
    });
}
