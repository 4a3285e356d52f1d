//! The memory that the host and a component hand each other.

const std = @import("std");

const memory = if (@import("builtin").target.cpu.arch.isWasm()) std.heap.wasm_allocator else std.heap.page_allocator;

/// What the host is given has this alignment, whatever it asks for: no record of the contract needs more.
const alignment: std.mem.Alignment = .@"8";

/// Where a text lies. An empty one may lie anywhere, and the host looks whether that is in memory.
pub fn at(text: []const u8) [*]const u8 {
    return if (text.len == 0) "" else text.ptr;
}

/// A text or a list, as it lies in memory.
pub const Text = extern struct {
    data: usize,
    length: usize,

    pub fn of(text: []const u8) Text {
        return .{ .data = @intFromPtr(at(text)), .length = text.len };
    }

    pub fn bytes(text: Text) []const u8 {
        if (text.length == 0) return "";
        return @as([*]const u8, @ptrFromInt(text.data))[0..text.length];
    }

    /// A copy of what the host has handed over, which is freed.
    pub fn taken(text: Text, arena: std.mem.Allocator) ![]const u8 {
        defer text.free(u8);
        return arena.dupe(u8, text.bytes());
    }

    /// The items of a list.
    pub fn list(text: Text, comptime T: type) []const T {
        if (text.length == 0) return &.{};
        return @as([*]const T, @ptrFromInt(text.data))[0..text.length];
    }

    /// Frees a list of the host's.
    pub fn free(text: Text, comptime T: type) void {
        if (text.length == 0) return;
        memory.rawFree(@as([*]u8, @ptrFromInt(text.data))[0 .. text.length * @sizeOf(T)], alignment, 0);
    }
};

/// Where the host puts what it hands over; whoever takes it frees it.
pub fn realloc(old: ?[*]u8, old_size: usize, alignment_wanted: usize, size: usize) callconv(.c) [*]u8 {
    if (size == 0) return @ptrFromInt(alignment_wanted);
    const made = memory.rawAlloc(size, alignment, 0) orelse @trap();
    if (old) |before| if (old_size > 0) {
        @memcpy(made[0..old_size], before[0..old_size]);
        memory.rawFree(before[0..old_size], alignment, 0);
    };
    return made;
}
