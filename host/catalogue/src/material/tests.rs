//! Tests of the skill folders that agents read, and of folders left out.

use std::os::unix::fs::symlink;

use belljar_definition::Slug;
use tempfile::TempDir;

use super::*;

const SKILL: &str = "---\nname: NAME\ndescription: d\n---\nDo it.\n";

fn write(dir: &TempDir, path: &str, text: &str) {
    let path = dir.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn skill(name: &str) -> String {
    SKILL.replace("NAME", name)
}

/// The guest paths of the folders, and the number of messages.
fn found(library: &SkillLibrary, called: &[AgentId]) -> (Vec<String>, usize) {
    let found = library.find_folders(called, &StopSignal::never_raised());
    let paths = found.folders.iter().map(|folder| folder.guest.to_string()).collect();
    (paths, found.problems.len())
}

fn of_home(dir: &TempDir) -> SkillLibrary {
    let root = LibraryRoot::in_home::<SkillDefinition>(dir.path());
    SkillLibrary::from_roots(vec![root], Vec::new(), (), false)
}

#[test]
fn a_skill_with_other_files_has_a_folder_and_its_neighbours_none() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "skills/a/SKILL.md", &skill("a"));
    write(&dir, "skills/a/scripts/x.py", "1");
    write(&dir, "skills/alone/SKILL.md", &skill("alone"));
    write(&dir, "skills/alone/.git/config", "not the skill's");
    write(&dir, "skills/plain.md", &skill("plain"));
    let library = of_home(&dir);
    assert_eq!(found(&library, &[]), (vec!["/skills/a".to_owned()], 0));
    let folders = library.find_folders(&[], &StopSignal::never_raised()).folders;
    assert_eq!((folders[0].files.clone(), folders[0].count), (vec!["scripts/x.py".to_owned()], 1));
    assert_eq!(folders[0].to_mount().access, MountAccess::Read);
}

#[test]
fn a_folder_beyond_the_bounds_is_left_out_and_its_neighbour_is_read() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        write(&dir, &format!("skills/{name}/SKILL.md"), &skill(name));
        write(&dir, &format!("skills/{name}/x"), "1");
    }
    for n in 0..=MAX_MATERIAL_FILES {
        fs::write(dir.path().join(format!("skills/a/{n}")), "").unwrap();
    }
    write(&dir, &format!("skills/b/{}x", "d/".repeat(MAX_MATERIAL_DEPTH + 1)), "1");
    assert_eq!(found(&of_home(&dir), &[]), (vec!["/skills/c".to_owned()], 2));
    let large = fs::File::create(dir.path().join("skills/c/large")).unwrap();
    large.set_len(MAX_MATERIAL_BYTES + 1).unwrap();
    assert_eq!(found(&of_home(&dir), &[]), (Vec::new(), 3));
}

#[test]
fn a_skill_for_persons_has_a_folder_where_a_person_called_it_and_none_inside_another() {
    let dir = tempfile::tempdir().unwrap();
    let kept = skill("kept").replace("description", "disable-model-invocation: true\ndescription");
    write(&dir, "skills/kept/SKILL.md", &kept);
    write(&dir, "skills/kept/x", "1");
    write(&dir, "skills/a/SKILL.md", &skill("a"));
    write(&dir, "skills/a/inner/SKILL.md", &kept.replace("kept", "inner"));
    let library = of_home(&dir);
    assert_eq!(found(&library, &[]), (Vec::new(), 1));
    let kept = library.catalog().find_by_name("kept").unwrap().id.clone();
    assert_eq!(found(&library, &[kept]), (vec!["/skills/kept".to_owned()], 1));
}

#[test]
fn an_installed_folder_is_read_while_each_file_is_as_a_person_agreed_to() {
    let dir = tempfile::tempdir().unwrap();
    for (name, file) in [("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")] {
        write(&dir, &format!("{name}/SKILL.md"), &skill(name));
        write(&dir, &format!("{name}/{file}"), "1");
    }
    let agreed = |name: &str| {
        [("SKILL.md", skill(name)), ("x", "1".to_owned())].map(|(file, text)| {
            (PathBuf::from(format!("{name}/{file}")), Digest::hash_bytes(text.as_bytes()))
        })
    };
    let files: AgreedFiles = ["a", "b", "c", "d"].into_iter().flat_map(agreed).collect();
    let name = Slug::from_name("tools").unwrap();
    let root = || LibraryRoot::for_installed(&name, dir.path().to_path_buf(), files.clone());
    let library = || SkillLibrary::from_roots(vec![root()], Vec::new(), (), false);
    let path = |name: &str| format!("/skills/tools:{name}");
    let all: Vec<String> = ["a", "b", "c", "d"].map(path).to_vec();
    assert_eq!(found(&library(), &[]), (all, 0));
    assert!(library().problems().is_empty(), "{:?}", library().problems());
    write(&dir, "a/x", "2");
    write(&dir, "b/more", "not agreed to");
    symlink("/etc/passwd", dir.path().join("c/link")).unwrap();
    assert_eq!(found(&library(), &[]), (vec![path("d")], 3));
}

#[test]
fn a_workspaces_folder_behind_a_link_is_left_out_and_its_neighbour_is_read() {
    let (home, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(&home, "skills/a/SKILL.md", &skill("a"));
    write(&home, "skills/a/x", "1");
    write(&dir, "hidden/linked/SKILL.md", &skill("linked"));
    write(&dir, "hidden/linked/secret", "1");
    fs::create_dir(dir.path().join(".belljar")).unwrap();
    symlink("../hidden", dir.path().join(".belljar/skills")).unwrap();
    let roots = vec![
        LibraryRoot::in_home::<SkillDefinition>(home.path()),
        LibraryRoot::in_workspace::<SkillDefinition>(&dir.path().canonicalize().unwrap()),
    ];
    let library = SkillLibrary::from_roots(roots, Vec::new(), (), false);
    assert!(library.catalog().find_by_name("linked").is_ok());
    assert_eq!(found(&library, &[]), (vec!["/skills/a".to_owned()], 1));
}

/// The bounds on all folders: the first are kept, and one message is about the rest.
#[test]
fn the_first_folders_are_kept_where_their_number_their_bytes_or_the_time_is_used_up() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..MAX_SKILL_FOLDERS + 2 {
        write(&dir, &format!("skills/s{n}/SKILL.md"), &skill(&format!("s{n}")));
        write(&dir, &format!("skills/s{n}/x"), "1");
    }
    let library = of_home(&dir);
    let (folders, problems) = found(&library, &[]);
    assert_eq!((folders.len(), problems), (MAX_SKILL_FOLDERS, 1));
    let stop = StopSignal::never_raised();
    stop.raise();
    let stopped = library.find_folders(&[], &stop);
    assert_eq!((stopped.folders.len(), stopped.problems.len()), (0, 1));

    let (home, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(&home, "skills/z/SKILL.md", &skill("z"));
    write(&home, "skills/z/x", "1");
    for n in 0..10 {
        write(&dir, &format!(".belljar/skills/a{n}/SKILL.md"), &skill(&format!("a{n}")));
        let large = fs::File::create(dir.path().join(format!(".belljar/skills/a{n}/large")));
        large.unwrap().set_len(MAX_MATERIAL_BYTES - 1_000).unwrap();
    }
    let roots = vec![
        LibraryRoot::in_home::<SkillDefinition>(home.path()),
        LibraryRoot::in_workspace::<SkillDefinition>(&dir.path().canonicalize().unwrap()),
    ];
    let library = SkillLibrary::from_roots(roots, Vec::new(), (), false);
    let (folders, problems) = found(&library, &[]);
    assert_eq!((folders.first().map(String::as_str), folders.len()), (Some("/skills/z"), 9));
    assert_eq!(problems, 1);
}
