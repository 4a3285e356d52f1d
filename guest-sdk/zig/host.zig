//! What the host offers to every tool.

const std = @import("std");

const abi = @import("abi.zig");

const is_wasm = @import("builtin").target.cpu.arch.isWasm();

const imports = struct {
    extern "belljar:tool/log@0.2.0" fn log(level: u32, text: [*]const u8, length: usize) void;
    extern "belljar:tool/progress@0.2.0" fn report(done: u64, has: u32, total: u64, text: [*]const u8, length: usize) void;
    extern "wasi:config/store@0.2.0-rc.1" fn get(key: [*]const u8, length: usize, into: *Config) void;
};

const Config = extern struct { is_error: u8, is_some: u8 align(4), value: abi.Text };

/// Lines for the operator's log. Never shown to the model; the host keeps a bounded number.
pub const log = struct {
    pub const Level = enum(u8) { trace, debug, info, warn, @"error" };

    pub fn trace(message: []const u8) void {
        at(.trace, message);
    }
    pub fn debug(message: []const u8) void {
        at(.debug, message);
    }
    pub fn info(message: []const u8) void {
        at(.info, message);
    }
    pub fn warn(message: []const u8) void {
        at(.warn, message);
    }
    pub fn err(message: []const u8) void {
        at(.@"error", message);
    }
    pub fn at(level: Level, message: []const u8) void {
        if (is_wasm) imports.log(@backingInt(level), abi.at(message), message.len);
    }
};

/// How far a long call has come, both numbers in the same unit; a total of null is not known. Display only.
pub fn progress(done: u64, total: ?u64, message: []const u8) void {
    if (is_wasm) imports.report(done, @intFromBool(total != null), total orelse 0, abi.at(message), message.len);
}

pub fn config(arena: std.mem.Allocator, key: []const u8) !?[]const u8 {
    if (!is_wasm) return null;
    var into: Config = undefined;
    imports.get(abi.at(key), key.len, &into);
    if (into.is_error != 0 or into.is_some == 0) return null;
    return try into.value.taken(arena);
}
