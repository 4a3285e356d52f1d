//! The contract's functions, as a component exports them.

const std = @import("std");

const abi = @import("abi.zig");
const bj = @import("belljar.zig");
const call_of = @import("call.zig");

const tools_of = "belljar:tool/tools@0.2.0#";

/// A tool as the contract has it.
pub const Definition = extern struct { name: abi.Text, description: abi.Text, schema: abi.Text, hints: u8 };

/// A part: a tag, and up to three texts.
pub const Part = extern struct { tag: u8, texts: [3]abi.Text };

/// A result. Of an answer: address and number of its parts; of an error: kind, address and length of the text.
pub const Result = extern struct { is_error: u8, first: u32, second: usize, third: usize };

/// What a call has allocated, its answer too.
var memory: ?std.heap.ArenaAllocator = null;

fn arena() std.mem.Allocator {
    if (memory == null) memory = .init(std.heap.wasm_allocator);
    return memory.?.allocator();
}

pub fn exports(comptime tools: []const bj.Tool) void {
    const all = struct {
        fn describe() callconv(.c) *const abi.Text {
            const list = arena().alloc(Definition, tools.len) catch @trap();
            for (list, tools) |*definition, one| definition.* = .{
                .name = .of(one.name),
                .description = .of(one.description),
                .schema = .of(one.schema),
                .hints = @bitCast(one.hints),
            };
            const result = arena().create(abi.Text) catch @trap();
            result.* = .{ .data = @intFromPtr(list.ptr), .length = list.len };
            return result;
        }

        fn invoke(name: abi.Text, arguments: abi.Text) *const Result {
            var call: bj.Call = .{
                .arena = arena(),
                .io = std.Io.Threaded.global_single_threaded.io(),
                .dir = call_of.workspaceDir(),
            };
            const result = call.arena.create(Result) catch @trap();
            const output = run(&call, name, arguments) catch |err| {
                const told = call.told(err);
                result.* = .{ .is_error = 1, .first = @backingInt(told.kind), .second = @intFromPtr(abi.at(told.message)), .third = told.message.len };
                return result;
            };
            const parts = call.arena.alloc(Part, output.parts.len) catch @trap();
            for (parts, output.parts) |*part, one| part.* = lowered(one);
            result.* = .{ .is_error = 0, .first = if (parts.len == 0) 8 else @intFromPtr(parts.ptr), .second = parts.len, .third = 0 };
            return result;
        }

        fn run(call: *bj.Call, name: abi.Text, arguments: abi.Text) anyerror!bj.Output {
            const wanted = try name.taken(call.arena);
            const given = try arguments.taken(call.arena);
            for (tools) |one| {
                if (std.mem.eql(u8, one.name, wanted)) return one.run(call, given);
            }
            return call.fail(.not_found, "this component has no tool `{s}`", .{wanted});
        }

        fn invokeFlat(name: usize, name_length: usize, arguments: usize, length: usize) callconv(.c) *const Result {
            return invoke(.{ .data = name, .length = name_length }, .{ .data = arguments, .length = length });
        }
    };
    @export(&all.describe, .{ .name = tools_of ++ "describe" });
    @export(&all.invokeFlat, .{ .name = tools_of ++ "invoke" });
    @export(&free, .{ .name = "cabi_post_" ++ tools_of ++ "describe" });
    @export(&free, .{ .name = "cabi_post_" ++ tools_of ++ "invoke" });
    @export(&abi.realloc, .{ .name = "cabi_realloc" });
}

fn free(_: *const anyopaque) callconv(.c) void {
    if (memory) |*held| _ = held.reset(.{ .retain_with_limit = 64 << 10 });
}

fn lowered(part: bj.Part) Part {
    const none: abi.Text = .{ .data = 0, .length = 0 };
    return switch (part) {
        .text => |text| .{ .tag = 0, .texts = .{ .of(text), none, none } },
        .json => |text| .{ .tag = 1, .texts = .{ .of(text), none, none } },
        .file => |file| .{ .tag = 2, .texts = .{ .of(file.name), .of(file.media_type), .of(file.data) } },
    };
}
