//! The JSON schema of a struct, and the check of arguments against it.

const std = @import("std");

const Call = @import("call.zig").Call;

/// The schema of a type, as JSON text, made when the tool is compiled.
pub fn of(comptime T: type) []const u8 {
    return "{" ++ members(T, "") ++ "}";
}

fn members(comptime T: type, comptime description: []const u8) []const u8 {
    const words = if (description.len == 0) "" else ",\"description\":" ++ quoted(description);
    return switch (@typeInfo(T)) {
        .bool => "\"type\":\"boolean\"" ++ words,
        .int => |int| "\"type\":\"integer\"" ++ (if (int.signedness == .unsigned) ",\"minimum\":0" else "") ++ words,
        .float => "\"type\":\"number\"" ++ words,
        .optional => |optional| members(optional.child, description),
        .pointer => |pointer| if (pointer.child == u8)
            "\"type\":\"string\"" ++ words
        else
            "\"type\":\"array\",\"items\":" ++ of(pointer.child) ++ words,
        .@"enum" => |choices| "\"type\":\"string\",\"enum\":[" ++ names(choices.field_names) ++ "]" ++ words,
        .@"struct" => object(T) ++ words,
        else => @compileError("`" ++ @typeName(T) ++ "` has no JSON schema"),
    };
}

fn object(comptime T: type) []const u8 {
    const info = @typeInfo(T).@"struct";
    var properties: []const u8 = "";
    var required: []const []const u8 = &.{};
    for (info.field_names, info.field_types) |name, Field| {
        const described = if (@hasDecl(T, "describe") and @hasField(@TypeOf(T.describe), name)) @field(T.describe, name) else "";
        properties = properties ++ (if (properties.len == 0) "" else ",") ++ quoted(name) ++ ":{" ++ members(Field, described) ++ "}";
        if (@typeInfo(Field) != .optional) required = required ++ .{name};
    }
    return "\"type\":\"object\",\"properties\":{" ++ properties ++ "}" ++
        (if (required.len == 0) "" else ",\"required\":[" ++ names(required) ++ "]") ++
        ",\"additionalProperties\":false";
}

fn names(comptime list: anytype) []const u8 {
    var text: []const u8 = "";
    for (list) |name| text = text ++ (if (text.len == 0) "" else ",") ++ quoted(name);
    return text;
}

fn quoted(comptime text: []const u8) []const u8 {
    @setEvalBranchQuota(100_000);
    var out: []const u8 = "\"";
    for (text) |byte| out = out ++ switch (byte) {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\n' => "\\n",
        0...9, 11...31 => @compileError("a description holds no control characters"),
        else => &[_]u8{byte},
    };
    return out ++ "\"";
}

/// The arguments of a call; what does not fit is refused, and named.
pub fn read(comptime T: type, call: *Call, text: []const u8) anyerror!T {
    const value = std.json.parseFromSliceLeaky(std.json.Value, call.arena, text, .{}) catch |err| switch (err) {
        error.OutOfMemory => return err,
        else => return call.fail(.invalid_arguments, "the arguments are not JSON", .{}),
    };
    return readValue(T, call, "arguments", value);
}

fn readValue(comptime T: type, call: *Call, name: []const u8, value: std.json.Value) anyerror!T {
    switch (@typeInfo(T)) {
        .bool => if (value == .bool) return value.bool,
        .int => switch (value) {
            .integer => |whole| if (std.math.cast(T, whole)) |fits| return fits,
            .float => |number| if (@trunc(number) == number and @abs(number) < 9e15) {
                if (std.math.cast(T, @as(i64, @intFromFloat(number)))) |fits| return fits;
            },
            else => {},
        },
        .float => switch (value) {
            .integer => |whole| return @floatFromInt(whole),
            .float => |number| return @floatCast(number),
            .number_string => |number| if (std.fmt.parseFloat(T, number)) |read_number| return read_number else |_| {},
            else => {},
        },
        .optional => |optional| return if (value == .null) null else try readValue(optional.child, call, name, value),
        .pointer => |pointer| if (pointer.child == u8) {
            if (value == .string) return value.string;
        } else if (value == .array) {
            const items = try call.arena.alloc(pointer.child, value.array.items.len);
            for (items, value.array.items) |*item, given| item.* = try readValue(pointer.child, call, name, given);
            return items;
        },
        .@"enum" => if (value == .string) {
            if (std.meta.stringToEnum(T, value.string)) |choice| return choice;
            return call.fail(.invalid_arguments, "`{s}`: `{s}` is no choice", .{ name, value.string });
        },
        .@"struct" => if (value == .object) return readObject(T, call, value.object),
        else => {},
    }
    return call.fail(.invalid_arguments, "`{s}`: expected {s}, got {s}", .{ name, comptime expected(T), try got(call, value) });
}

/// A type, as an error names it.
fn expected(comptime T: type) []const u8 {
    return switch (@typeInfo(T)) {
        .bool => "true or false",
        .int => |int| std.fmt.comptimePrint("a whole number of {d} bits{s}", .{ int.bits, if (int.signedness == .unsigned) ", not below 0" else "" }),
        .float => "a number",
        .optional => |optional| expected(optional.child) ++ " or null",
        .pointer => |pointer| if (pointer.child == u8) "a string" else "a list",
        .@"enum" => "a string",
        else => "an object",
    };
}

/// What was given instead: its kind, and a number itself.
fn got(call: *Call, value: std.json.Value) ![]const u8 {
    return switch (value) {
        .null => "null",
        .bool => |yes| if (yes) "true" else "false",
        .integer => |number| try std.fmt.allocPrint(call.arena, "the number {d}", .{number}),
        .float => |number| try std.fmt.allocPrint(call.arena, "the number {d}", .{number}),
        .number_string => |number| try std.fmt.allocPrint(call.arena, "the number {s}", .{number}),
        .string => "a string",
        .array => "a list",
        .object => "an object",
    };
}

fn readObject(comptime T: type, call: *Call, given: std.json.ObjectMap) anyerror!T {
    const info = @typeInfo(T).@"struct";
    for (given.keys()) |key| {
        const known = inline for (info.field_names) |name| {
            if (std.mem.eql(u8, name, key)) break true;
        } else false;
        if (!known) return call.fail(.invalid_arguments, "unknown field `{s}`", .{key});
    }
    var made: T = undefined;
    inline for (info.field_names, info.field_types) |name, Field| {
        if (given.get(name)) |value| {
            @field(made, name) = try readValue(Field, call, name, value);
        } else if (@typeInfo(Field) == .optional) {
            @field(made, name) = null;
        } else {
            return call.fail(.invalid_arguments, "missing field `{s}`", .{name});
        }
    }
    return made;
}
