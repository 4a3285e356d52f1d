//! One call of a tool: its memory, its files, its answer.

const std = @import("std");
const wasi = std.os.wasi;

const bj = @import("belljar.zig");
const host = @import("host.zig");

const workspace = "/workspace";
const most_mounts = 64;

pub const Call = struct {
    /// Memory until the call has ended.
    arena: std.mem.Allocator,
    /// For the functions of `std.Io`.
    io: std.Io,
    /// The workspace, for the functions of `std.Io.Dir`; `path` makes a path relative to it.
    dir: std.Io.Dir,
    kind: bj.Kind = .failed,
    message: ?[]const u8 = null,

    /// An error of the contract: `return call.fail(.not_found, "...", .{})`. The text goes to the model: it
    /// says what to do differently.
    pub fn fail(call: *Call, kind: bj.Kind, comptime format: []const u8, values: anytype) error{ OutOfMemory, Tool } {
        call.message = try std.fmt.allocPrint(call.arena, format, values);
        call.kind = kind;
        return error.Tool;
    }

    /// An answer that is a text.
    pub fn text(call: *Call, value: []const u8) !bj.Output {
        return call.parts(&.{.{ .text = value }});
    }

    /// An answer that is a text, as `std.fmt` makes it.
    pub fn print(call: *Call, comptime format: []const u8, values: anytype) !bj.Output {
        return call.text(try std.fmt.allocPrint(call.arena, format, values));
    }

    /// An answer that is what `std.json` makes of a value.
    pub fn json(call: *Call, value: anytype) !bj.Output {
        return call.parts(&.{.{ .json = try std.json.Stringify.valueAlloc(call.arena, value, .{}) }});
    }

    /// An answer of several parts.
    pub fn parts(call: *Call, all: []const bj.Part) !bj.Output {
        return .{ .parts = try call.arena.dupe(bj.Part, all) };
    }

    /// What the operator set for this tool, or null. `tool.toml` names the keys.
    pub fn config(call: *Call, key: []const u8) !?[]const u8 {
        return host.config(call.arena, key);
    }

    /// Whether the operator granted this tool a secret of this name. Its value is never seen here.
    pub fn secretExists(call: *Call, name: []const u8) !bool {
        return try call.config(try std.fmt.allocPrint(call.arena, "secret.{s}", .{name})) != null;
    }

    /// A path of the model's, relative to the workspace.
    pub fn path(call: *Call, given: []const u8) []const u8 {
        _ = call;
        if (std.mem.eql(u8, given, workspace)) return ".";
        if (std.mem.startsWith(u8, given, workspace ++ "/")) return given[workspace.len + 1 ..];
        return given;
    }

    /// A file's content.
    pub fn read(call: *Call, given: []const u8) ![]u8 {
        const file = try call.open(given, .{ .FD_READ = true, .FD_SEEK = true, .FD_TELL = true }, .{}, .{});
        defer file.close(call.io);
        var buffer: [4096]u8 = undefined;
        var reader = file.reader(call.io, &buffer);
        return reader.interface.allocRemaining(call.arena, .unlimited) catch |err| return call.refused(reader.err orelse err, given);
    }

    /// Makes or replaces a file.
    pub fn write(call: *Call, given: []const u8, data: []const u8) !void {
        return call.put(given, data, .{ .CREAT = true, .TRUNC = true }, .{});
    }

    /// Writes at a file's end.
    pub fn append(call: *Call, given: []const u8, data: []const u8) !void {
        return call.put(given, data, .{ .CREAT = true }, .{ .APPEND = true });
    }

    fn put(call: *Call, given: []const u8, data: []const u8, how: wasi.oflags_t, flags: wasi.fdflags_t) !void {
        const file = try call.open(given, .{ .FD_WRITE = true, .FD_SEEK = true, .FD_TELL = true }, how, flags);
        defer file.close(call.io);
        file.writeStreamingAll(call.io, data) catch |err| return call.refused(err, given);
    }

    // `std.Io.Dir` follows no links here, and has no word for a file system that is read-only.
    fn open(call: *Call, given: []const u8, rights: wasi.rights_t, how: wasi.oflags_t, flags: wasi.fdflags_t) !std.Io.File {
        const below = call.path(given);
        var fd: wasi.fd_t = undefined;
        switch (wasi.path_open(call.dir.handle, .{ .SYMLINK_FOLLOW = true }, below.ptr, below.len, how, rights, .{}, flags, &fd)) {
            .SUCCESS => return .{ .handle = fd, .flags = .{ .nonblocking = false } },
            .NOENT => return call.refused(error.FileNotFound, given),
            .ROFS, .ACCES, .PERM, .NOTCAPABLE, .BADF => return call.refused(error.AccessDenied, given),
            .DQUOT, .FBIG, .NOSPC => return call.refused(error.NoSpaceLeft, given),
            else => |code| return call.fail(.failed, "`{s}`: {s}", .{ given, @tagName(code) }),
        }
    }

    /// The contract's error for an error of the standard library, on a path as the model gave it.
    pub fn refused(call: *Call, err: anyerror, given: []const u8) error{ OutOfMemory, Tool } {
        return switch (kindOf(err)) {
            .not_found => call.fail(.not_found, "`{s}` does not exist", .{given}),
            .denied => call.fail(.denied, "access to `{s}` was refused", .{given}),
            .too_large => call.fail(.too_large, "`{s}`: a limit is reached", .{given}),
            else => call.fail(.failed, "`{s}`: {s}", .{ given, @errorName(err) }),
        };
    }

    /// What is told of an error that a tool's function gave.
    pub fn told(call: *Call, err: anyerror) struct { kind: bj.Kind, message: []const u8 } {
        if (err == error.Tool) return .{ .kind = call.kind, .message = call.message orelse "" };
        return .{ .kind = kindOf(err), .message = @errorName(err) };
    }
};

fn kindOf(err: anyerror) bj.Kind {
    return switch (err) {
        error.FileNotFound => .not_found,
        error.AccessDenied, error.PermissionDenied, error.ReadOnlyFileSystem => .denied,
        error.NoSpaceLeft, error.DiskQuota, error.FileTooBig, error.OutOfMemory => .too_large,
        else => .failed,
    };
}

/// The workspace among the directories that the component was given. Without one no file is found.
pub fn workspaceDir() std.Io.Dir {
    var fd: wasi.fd_t = 3;
    while (fd < 3 + most_mounts) : (fd += 1) {
        var stat: wasi.prestat_t = undefined;
        if (wasi.fd_prestat_get(fd, &stat) != .SUCCESS) break;
        var name: [workspace.len]u8 = undefined;
        if (stat.u.dir.pr_name_len != name.len) continue;
        if (wasi.fd_prestat_dir_name(fd, &name, name.len) != .SUCCESS) continue;
        if (std.mem.eql(u8, &name, workspace)) return .{ .handle = fd };
    }
    return .{ .handle = 3 };
}
