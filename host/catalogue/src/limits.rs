//! The limits of finding and reading files, with reasons.

/// Most agent files of one scope; the largest public library has some 600.
pub const MAX_AGENT_FILES: usize = 5_000;

/// Most bytes of all files of a kind in one scope, equal to the maximum of an installed library. Bounded
/// because each file is kept in memory with the parsed form, and git packs five thousand equal files of a
/// megabyte into one.
pub const MAX_AGENT_BYTES: u64 = 32 << 20;

/// The deepest folder below `agents/` that is searched.
pub const MAX_AGENT_DEPTH: usize = 8;

/// Most directory entries visited in one scope, so that a scan of a wrong directory ends.
pub const MAX_SCAN_ENTRIES: usize = 50_000;

/// Most bytes of a `tool.toml`, which usually has a dozen lines.
pub const MAX_MANIFEST_BYTES: u64 = 256 << 10;

/// Most bytes of a component in `tools/NAME/`; a Python tool has 18 MB.
pub const MAX_COMPONENT_BYTES: u64 = 64 << 20;

/// Most tool directories below `tools/`; further ones are not read.
pub const MAX_TOOL_DIRS: usize = 256;

/// Most skills whose other files agents read, in the catalogue's order: each is a mount of every store, and
/// 41 % of public skills have other files.
pub const MAX_SKILL_FOLDERS: usize = 128;

/// Most other files of one skill; the largest public one has some 400.
pub const MAX_MATERIAL_FILES: usize = 2_000;

/// Most bytes of the other files of one skill. Digests of an installed skill's files are taken before each run.
pub const MAX_MATERIAL_BYTES: u64 = 64 << 20;

/// Most other files of all skills together, because every run looks at them.
pub const MAX_ALL_MATERIAL_FILES: usize = 50_000;

/// Most bytes of the other files of all skills together.
pub const MAX_ALL_MATERIAL_BYTES: u64 = 512 << 20;

/// The deepest folder of a skill that counts.
pub const MAX_MATERIAL_DEPTH: usize = 8;

/// Most files of a skill that a model reads by name, because names cost tokens.
pub const MAX_MATERIAL_NAMES: usize = 30;
