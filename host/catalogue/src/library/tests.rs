//! Tests of scans that a signal ends, and of callers that wait for a scan.

use belljar_definition::{KnownTools, ScannedContent};
use tempfile::TempDir;

use super::*;

/// Writes an agent file into the home.
fn write(home: &TempDir, name: &str) {
    let dir = home.path().join("agents");
    std::fs::create_dir_all(&dir).unwrap();
    let text = format!("---\nname: {name}\ndescription: d\ntools: []\n---\nLook.\n");
    std::fs::write(dir.join(format!("{name}.md")), text).unwrap();
}

fn library(home: &TempDir) -> Library {
    let context: AgentContext = KnownTools::new([]).into();
    Library::open(vec![LibraryRoot::for_home(home.path())], context, false)
}

fn count(library: &Library) -> usize {
    library.catalog().agents().len()
}

/// INV-530.
#[test]
fn a_look_at_the_files_ends_with_its_signal_and_the_next_one_has_them() {
    let home = TempDir::new().unwrap();
    write(&home, "a");
    let library = library(&home);
    let raised = StopSignal::never_raised();
    raised.raise();
    write(&home, "b");
    assert_eq!(library.refresh_until(&raised), Err(WorkStopped));
    assert_eq!(count(&library), 1, "the catalogue stays as it was");
    assert_eq!(library.refresh().len(), 1);
    assert_eq!(count(&library), 2);
    // Texts without a file stay too.
    let kept = SourceFile {
        scope: AgentScope::Library(belljar_definition::API_LIBRARY.to_owned()),
        root: PathBuf::new(),
        path: PathBuf::from("c.md"),
        content: ScannedContent::Bytes(b"---\nname: c\ndescription: d\n---\nLook.\n".to_vec()),
    };
    assert_eq!(library.besides_until(vec![kept], &raised), Err(WorkStopped));
    assert_eq!((library.refresh().len(), count(&library)), (1, 3));
}

/// INV-530: files read before the signal stopped a scan are not read again by the next scan.
#[test]
fn what_was_read_before_the_signal_is_not_read_again() {
    let home = TempDir::new().unwrap();
    let library = library(&home);
    write(&home, "a");
    let mut looking = library.borrow_files(&StopSignal::never_raised()).unwrap();
    library.rescan_files(&mut looking.known, &StopSignal::never_raised()).unwrap();
    // As when the signal is raised before the catalogue is made.
    let raised = StopSignal::never_raised();
    raised.raise();
    assert_eq!(library.build_catalog(&looking.known, &[], &raised).err(), Some(WorkStopped));
    drop(looking);
    assert_eq!(count(&library), 0);
    assert_eq!(library.refresh().len(), 1, "nothing is new on disk, and the catalogue lacked it");
}

/// INV-530.
#[test]
fn the_catalogue_is_there_while_somebody_looks_at_the_files_and_who_waits_hears_their_signal() {
    let home = TempDir::new().unwrap();
    write(&home, "a");
    let library = library(&home);
    let looking = library.borrow_files(&StopSignal::never_raised()).unwrap();
    write(&home, "b");
    assert_eq!((count(&library), library.problems()), (1, vec![]));
    let soon = StopSignal::with_timeout(Duration::from_millis(1));
    assert_eq!(library.refresh_until(&soon), Err(WorkStopped));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| library.refresh().len());
        drop(looking);
        assert_eq!(waits.join().unwrap(), 1);
    });
}
