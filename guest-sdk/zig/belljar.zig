//! Write tools for belljar in Zig.
//!
//!     const bj = @import("belljar");
//!
//!     const Args = struct {
//!         path: []const u8,
//!         pub const describe = .{ .path = "The file, relative to the workspace." };
//!     };
//!
//!     fn wordCount(call: *bj.Call, args: Args) !bj.Output {
//!         const content = try call.read(args.path);
//!         ...
//!     }
//!
//!     comptime {
//!         bj.offer(&.{bj.tool("word_count", "Counts the words of a text file.", wordCount, .{ .read_only = true })});
//!     }
//!
//! The struct becomes the JSON schema that models read, and every call is checked against it before the
//! function runs. What is allocated in `call.arena` is freed when the call has ended.

const std = @import("std");
const builtin = @import("builtin");

const component = @import("component.zig");
const schema = @import("schema.zig");

pub const Call = @import("call.zig").Call;
pub const http = @import("http.zig");
pub const peers = @import("peers.zig");
pub const log = @import("host.zig").log;
pub const progress = @import("host.zig").progress;

/// A file in an answer. The name is for display; the host keeps its last component only.
pub const File = struct { name: []const u8, media_type: []const u8, data: []const u8 };

/// A part of an answer; `json` is JSON text.
pub const Part = union(enum) { text: []const u8, json: []const u8, file: File };

/// An answer. `Call.text`, `Call.json` and `Call.parts` make one.
pub const Output = struct { parts: []const Part };

/// The contract's errors.
pub const Kind = enum(u8) {
    invalid_arguments,
    not_found,
    denied,
    too_large,
    failed,

    /// The contract's word for it.
    pub fn word(kind: Kind) []const u8 {
        return switch (kind) {
            .invalid_arguments => "invalid-arguments",
            .not_found => "not-found",
            .denied => "denied",
            .too_large => "too-large",
            .failed => "failed",
        };
    }
};

/// Promises about a tool's effects. They let the host overlap calls, and never widen a right.
pub const Hints = packed struct(u8) {
    /// It changes nothing outside its own store.
    read_only: bool = false,
    /// Calling it again changes nothing more.
    idempotent: bool = false,
    /// It talks to the network.
    open_world: bool = false,
    _: u5 = 0,
};

/// A tool, as `tool` makes it.
pub const Tool = struct {
    name: []const u8,
    description: []const u8,
    schema: []const u8,
    hints: Hints,
    run: *const fn (*Call, []const u8) anyerror!Output,
};

/// A tool: its name, its description for models, and its function, `fn (*Call, Args) !Output`. `Args` is a
/// struct of texts (`[]const u8`), numbers, `bool`, enums, slices, structs and optionals, which may be absent.
/// A declaration `describe` in it holds the descriptions, by field.
pub fn tool(comptime name: []const u8, comptime description: []const u8, comptime function: anytype, comptime hints: Hints) Tool {
    const Args = @typeInfo(@TypeOf(function)).@"fn".param_types[1].?;
    const run = struct {
        fn run(call: *Call, arguments: []const u8) anyerror!Output {
            return function(call, try schema.read(Args, call, arguments));
        }
    }.run;
    return .{ .name = name, .description = description, .schema = comptime schema.of(Args), .hints = hints, .run = run };
}

/// Offers the tools of this component; once, in a `comptime` block.
pub fn offer(comptime tools: []const Tool) void {
    if (builtin.target.cpu.arch.isWasm()) component.exports(tools);
}
