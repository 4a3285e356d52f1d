//! pi's tools.

use super::ArgumentKind::{Flag, Items, Number, Text};
use super::{Argument, Becomes, ForeignTool, Given, SHELL, argument};

const FILE: Argument =
    argument("path", Text, "path", "The file, absolute under `/workspace` or relative to it.")
        .required();

const DIRECTORY: Argument = argument("path", Text, "path", "The directory. Default: `/workspace`.");

const EDITS: &[Argument] = &[
    argument("oldText", Text, "old_text", "The text to replace, exactly as it stands in the file.")
        .required(),
    argument("newText", Text, "new_text", "What takes its place.").required(),
];

pub(super) const TOOLS: &[ForeignTool] = &[
    ForeignTool {
        name: "read",
        tool: "file_read",
        description: "Reads a text file.",
        arguments: &[
            FILE,
            argument("offset", Number, "offset", "First line to return, from 1."),
            argument("limit", Number, "limit", "Most lines to return. Default: 2000."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "write",
        tool: "file_write",
        description: "Writes a file, in place of what it held; missing directories are made.",
        arguments: &[FILE, argument("content", Text, "content", "The whole content.").required()],
        given: &[("create_dirs", Given::Flag(true))],
    },
    ForeignTool {
        name: "edit",
        tool: "file_edit",
        description: "Replaces texts in a file: `oldText` by `newText`, or several with `edits`. \
            Each old text must occur once: include a line or two around the change to make it \
            unique.",
        arguments: &[
            FILE,
            argument("oldText", Text, "old_text", "For one replacement: the text to replace."),
            argument("newText", Text, "new_text", "For one replacement: what takes its place."),
            argument("edits", Items(EDITS), "edits", "Several replacements, all or none."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "bash",
        tool: "shell",
        description: SHELL,
        arguments: &[
            argument("command", Text, "command", "The command.").required(),
            argument("timeout", Number, "", "Seconds it may take.")
                .becomes(Becomes::Nothing("the grant's own time limit holds")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "grep",
        tool: "file_search",
        description: "Searches the content of files with a regular expression.",
        arguments: &[
            argument("pattern", Text, "pattern", "The regular expression.").required(),
            DIRECTORY,
            argument("glob", Text, "glob", "Only files that match this glob."),
            argument("ignoreCase", Flag, "case_insensitive", "Ignore upper and lower case."),
            argument("literal", Flag, "", "Whether the pattern is meant as it is.")
                .becomes(Becomes::Never("write a regular expression, with `\\` before its signs")),
            argument("context", Number, "context", "Lines around each match."),
            argument("limit", Number, "limit", "Most lines to return. Default: 100."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "find",
        tool: "file_find",
        description: "Finds files by a glob such as `src/**/*.ts`.",
        arguments: &[
            argument("pattern", Text, "pattern", "The glob.").required(),
            DIRECTORY,
            argument("limit", Number, "limit", "Most paths to return. Default: 200."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "ls",
        tool: "file_list",
        description: "Lists a directory.",
        arguments: &[
            DIRECTORY,
            argument("limit", Number, "limit", "Most entries to show. Default: 500."),
        ],
        given: &[],
    },
];
