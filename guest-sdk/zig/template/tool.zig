//! `{{name}}`: counts the words of a text file. Make it yours.

const std = @import("std");
const bj = @import("belljar");

const Args = struct {
    path: []const u8,

    pub const describe = .{ .path = "The file, relative to the workspace." };
};

fn run(call: *bj.Call, args: Args) !bj.Output {
    const text = try call.read(args.path);
    var words = std.mem.tokenizeAny(u8, text, " \t\r\n");
    var count: usize = 0;
    while (words.next()) |_| count += 1;
    return call.print("{s}: {d} words", .{ args.path, count });
}

comptime {
    bj.offer(&.{
        bj.tool("{{name}}", "Counts the words of a text file.", run, .{ .read_only = true, .idempotent = true }),
    });
}
