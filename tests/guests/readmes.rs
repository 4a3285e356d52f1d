//! The READMEs of tool projects: what they show is what happens, with a toolchain.

use std::path::Path;

use crate::page::Page;
use crate::story::Story;

/// Those whose commands build a guest.
const PROJECTS: &[&str] = &["guest-sdk/template/README.md", "guest-sdk/examples/rust/README.md"];

#[test]
fn every_command_of_a_projects_readme_does_what_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut found = Vec::new();
    for path in PROJECTS {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        let page = Page::parse(path, &text.replace("{{name}}", "word_count")).unwrap();
        assert!(page.builds, "{path}");
        let (problems, ran) = Story::beside(&root, &page).with_toolchain().tell(&page);
        found.extend(problems);
        if ran == 0 {
            found.push(format!("{path}: no command of it was run"));
        }
    }
    assert!(found.is_empty(), "{} problems\n\n{}\n", found.len(), found.join("\n\n"));
}
