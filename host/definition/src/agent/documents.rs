//! Tells documents that only look like agents from agents: pages of a site, rules and prompts of editors,
//! templates. For example, a page with `sidebar_position` and without `tools` is a page.
//!
//! Three rules: the path, the fields, and the first heading. A file with a field that only agents have is never
//! a document by its path or heading.

use std::path::Path;

use crate::frontmatter::FrontmatterSplit;

/// Endings of files of other kinds, which have fields like agents.
const OTHER_ENDINGS: &[&str] = &[".prompt.md", ".instructions.md", ".skill.md", ".mdx.md"];

/// Folders of documents.
const FOLDERS: &[&str] = &[
    "docs",
    "doc",
    "documentation",
    "examples",
    "templates",
    "references",
    "reference",
    "_posts",
    "blog",
    "wiki",
];

/// Folders above a file whose names count.
const NEAR: usize = 3;

/// Folders of agents, which count more than a folder of documents around them.
const AGENT_FOLDERS: &[&str] = &["agent", "agents", "subagents", "droids", "chatmodes"];

/// Fields of pages, and of rules for editors.
const OTHER_FIELDS: &[&str] = &[
    "layout",
    "permalink",
    "sidebar_position",
    "sidebar_label",
    "sidebar",
    "pagination_next",
    "pubDate",
    "applyTo",
    "alwaysApply",
    "globs",
];

/// Fields that only agents have.
const AGENT_FIELDS: &[&str] = &[
    "tools",
    "model",
    "mode",
    "permission",
    "permissions",
    "disallowedTools",
    "disallowed-tools",
    "allowedTools",
    "maxTurns",
    "max_turns",
    "permissionMode",
    "color",
    "readonly",
    "sandbox_mode",
    "modelRole",
    "visibility",
    "subagents",
    "limits",
    "skills",
    "handoffs",
];

/// First headings of documents, in lower case.
const HEADINGS: &[&str] = &[
    "table of contents",
    "contents",
    "changelog",
    "contributing",
    "license",
    "readme",
    "installation",
    "getting started",
    "index",
];

/// Whether a file with frontmatter is a document of another kind.
pub(crate) fn is_document(path: &Path, split: &FrontmatterSplit<'_>) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let name = name.unwrap_or_default();
    if OTHER_ENDINGS.iter().any(|end| name.ends_with(end)) {
        return true;
    }
    let fields = top_fields(split);
    let has = |wanted: &[&str]| fields.iter().any(|field| wanted.contains(field));
    if has(AGENT_FIELDS) {
        return false;
    }
    let is_named = fields.contains(&"name");
    has(OTHER_FIELDS) || !is_named && (lies_in_documents(path) || has_heading(split.body))
}

/// The names of the fields at the left margin.
fn top_fields<'a>(split: &FrontmatterSplit<'a>) -> Vec<&'a str> {
    let name = |line: &'a str| {
        let line = line.strip_prefix(split.indent).unwrap_or(line);
        let (name, _) = line.split_once(':')?;
        let name = name.trim_end().trim_matches(['"', '\'']);
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        (!name.is_empty() && name.bytes().all(fits)).then_some(name)
    };
    split.yaml.lines().filter_map(name).collect()
}

/// Whether a path is in a folder of documents, and not in a folder of agents below.
fn lies_in_documents(path: &Path) -> bool {
    let folders = path.parent().into_iter().flat_map(Path::components);
    let folders: Vec<String> = folders
        .filter_map(|folder| folder.as_os_str().to_str().map(str::to_ascii_lowercase))
        .collect();
    let near = folders.len().saturating_sub(NEAR);
    let mut documents = false;
    for folder in folders.iter().skip(near).map(String::as_str) {
        let begins = folder.starts_with('.') || folder == "libraries";
        documents |= FOLDERS.contains(&folder);
        documents &= !begins && !AGENT_FOLDERS.contains(&folder);
    }
    documents
}

fn has_heading(body: &str) -> bool {
    let heading = body.lines().find_map(|line| line.trim().strip_prefix('#'));
    let heading = heading.map(|text| text.trim_start_matches('#').trim().to_lowercase());
    heading.is_some_and(|heading| HEADINGS.contains(&heading.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontmatter::split_frontmatter;

    fn judged(path: &str, fields: &str, body: &str) -> bool {
        let text = format!("---\n{fields}\n---\n{body}\n");
        is_document(Path::new(path), &split_frontmatter(&text).unwrap())
    }

    #[test]
    fn a_document_is_told_by_its_path_fields_or_heading() {
        assert!(judged("docs/setup.md", "description: How to set up", "# Setup"));
        assert!(judged("x/templates/agents.md", "description: A template", "text"));
        assert!(judged("guide.md", "title: x\nsidebar_position: 2\ndescription: y", "text"));
        assert!(judged("rules.md", "description: x\nalwaysApply: true\nglobs: '*.ts'", "text"));
        assert!(judged("a.prompt.md", "description: x\ntools: [read]", "text"));
        assert!(judged("a.instructions.md", "description: x\napplyTo: '**'", "text"));
        assert!(judged("x.md", "description: x", "\n## Table of Contents\n"));
    }

    #[test]
    fn an_agent_stays_one_wherever_it_lies() {
        assert!(!judged("docs/agents/a.md", "description: x", "You are a."));
        assert!(!judged("docs/a.md", "name: a\ndescription: x", "You are a."));
        assert!(!judged("/h/docs/.belljar/libraries/x-0/a.md", "description: x", "You are a."));
        assert!(!judged("/docs/a/b/c/a.md", "description: x", "You are a."));
        assert!(!judged("docs/a.md", "description: x\nmode: subagent", "You are a."));

        assert!(!judged("a.md", "name: a\ndescription: x\nlayout: y\ntools: Read", "You are a."));
        assert!(!judged("a.chatmode.md", "description: x", "You are a."));
    }
}
