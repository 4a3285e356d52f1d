//! The workspace of a case: made before the call, looked at after it.

use std::fs;
use std::path::Path;

use super::{Case, FileAfter, FileSpec, MadeFile, unhex};

/// Makes the files of the case.
pub(super) fn make(root: &Path, case: &Case) {
    for (path, spec) in &case.files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a file has a parent")).expect("make the parent");
        match spec {
            FileSpec::Text(text) => fs::write(&path, text).expect("write a file"),
            FileSpec::Made(made) => make_one(&path, made),
        }
    }
}

fn make_one(path: &Path, made: &MadeFile) {
    if made.dir {
        return fs::create_dir_all(path).expect("make a directory");
    }
    if let Some(target) = &made.link {
        return std::os::unix::fs::symlink(target, path).expect("make a link");
    }
    let once = match (&made.text, &made.hex) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(hex)) => unhex(hex),
        _ => panic!("`{}` needs either `text` or `hex`", path.display()),
    };
    fs::write(path, once.repeat(made.repeat.unwrap_or(1))).expect("write a file");
}

/// The faults of the files after the call.
pub(super) fn faults(root: &Path, case: &Case) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, after) in &case.expect.files_after {
        let found = fs::read(root.join(path));
        match (after, found) {
            (FileAfter::Content(text), Ok(bytes)) if bytes == text.as_bytes() => {}
            (FileAfter::Exists(exists), found) if *exists == found.is_ok() => {}
            (_, found) => {
                let found = found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                faults.push(format!("`{path}` should be {after:?} and is {found:?}"));
            }
        }
    }
    leftovers(root, &mut faults);
    faults
}

/// Temporary files of a failed write must not stay behind.
fn leftovers(folder: &Path, faults: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("list the workspace").flatten() {
        let path = entry.path();
        if path.to_string_lossy().ends_with(".belljar-new") {
            faults.push(format!("`{}` was left behind", path.display()));
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            leftovers(&path, faults);
        }
    }
}
