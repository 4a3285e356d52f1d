//! Limits of written and read bytes, open files, new files and listed entries.

use super::*;
use crate::imports::files::{MAX_LISTED, MAX_MADE};
use belljar_policy::Meter;
use types::HostDirectoryEntryStream;
use wasmtime_wasi::p2::StreamError;

fn limits() -> Limits {
    Limits { write_bytes: 100, read_bytes: 100, open_files: 4, ..Limits::default() }
}

fn is_no_space<T: std::fmt::Debug>(result: Result<T, StreamError>) -> bool {
    match result {
        Err(StreamError::LastOperationFailed(error)) => error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.raw_os_error() == Some(28)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn bytes_past_the_write_budget_are_refused_by_every_route() {
    let mut rig = Rig::with(&limits());
    let file = rig.open(rig.rw, "a.txt", How::Replace).await.unwrap().rep();
    let mut view = rig.view();
    assert_eq!(view.write(fd(file), vec![b'x'; 90], 0).await.unwrap(), 90);
    let full = ErrorCode::InsufficientSpace;
    assert_eq!(code(view.write(fd(file), vec![b'x'; 11], 90).await), full);
    assert_eq!(code(view.write(fd(file), vec![b'x'; 11], 0).await), full, "overwriting counts");
    assert_eq!(code(view.write(fd(file), vec![b'x'], 100).await), full, "a hole counts");
    assert_eq!(code(view.set_size(fd(file), 101).await), full);
    let stream = view.write_via_stream(fd(file), 90).unwrap();
    let writer = rig.table.get_mut(&stream).unwrap();
    assert!(is_no_space(writer.write(vec![b'x'; 11].into())));
    assert!(is_no_space(writer.blocking_write_and_flush(vec![b'x'; 11].into()).await));
    assert!(is_no_space(writer.write_zeroes(11)));
    let stream = rig.view().append_via_stream(fd(file)).unwrap();
    let writer = rig.table.get_mut(&stream).unwrap();
    assert!(is_no_space(writer.write(vec![b'x'; 11].into())));
    assert_eq!(rig.denials(), vec![DenyCode::LimitReached; 8]);
    assert_eq!(rig.text("rw/a.txt").len(), 90);
    assert_eq!(rig.budget.spent_amount(Meter::Write), 90, "what was refused is not billed");
    assert_eq!(rig.view().write(fd(file), vec![b'x'; 10], 90).await.unwrap(), 10);
}

#[tokio::test]
async fn a_large_write_is_taken_in_parts() {
    let mut rig = Rig::new();
    let file = rig.open(rig.rw, "a.txt", How::Replace).await.unwrap().rep();
    let written = rig.view().write(fd(file), vec![b'x'; 3 << 20], 0).await.unwrap();
    assert_eq!(written, 1 << 20);
    assert_eq!(rig.text("rw/a.txt").len(), 1 << 20);
    assert_eq!(rig.budget.spent_amount(Meter::Write), 1 << 20);
}

#[tokio::test]
async fn growth_by_truncation_is_billed_and_shrinking_is_free() {
    let mut rig = Rig::with(&limits());
    let file = rig.open(rig.rw, "a.txt", How::Replace).await.unwrap().rep();
    let mut view = rig.view();
    view.set_size(fd(file), 60).await.unwrap();
    view.set_size(fd(file), 10).await.unwrap();
    view.set_size(fd(file), 50).await.unwrap();
    assert_eq!(rig.budget.spent_amount(Meter::Write), 100);
    assert_eq!(code(rig.view().set_size(fd(file), 51).await), ErrorCode::InsufficientSpace);
}

#[tokio::test]
async fn offsets_that_overflow_are_refused() {
    let mut rig = Rig::new();
    let file = rig.open(rig.rw, "a.txt", How::Replace).await.unwrap().rep();
    let mut view = rig.view();
    for offset in [u64::MAX, u64::MAX - 1, i64::MAX as u64] {
        let error = code(view.write(fd(file), b"xy".to_vec(), offset).await);
        assert_eq!(error, ErrorCode::FileTooLarge, "{offset}");
    }
    assert_eq!(code(view.set_size(fd(file), u64::MAX).await), ErrorCode::FileTooLarge);
    assert_eq!(rig.text("rw/a.txt"), "");
    assert_eq!(rig.budget.spent_amount(Meter::Write), 0);
    rig.assert_works().await;
}

#[tokio::test]
async fn bytes_past_the_read_budget_are_not_handed_out() {
    let mut rig = Rig::with(&limits());
    rig.put("rw/big.txt", &"x".repeat(90));
    assert_eq!(rig.read(rig.rw, "big.txt").await.unwrap().len(), 90);
    assert_eq!(code(rig.read(rig.rw, "big.txt").await), ErrorCode::InsufficientSpace);
    let file = rig.open(rig.rw, "big.txt", How::Read).await.unwrap().rep();
    let stream = rig.view().read_via_stream(fd(file), 0).unwrap();
    let reader = rig.table.get_mut(&stream).unwrap();
    assert!(is_no_space(reader.read(90)));
    assert!(is_no_space(reader.blocking_read(90).await));
    assert_eq!(reader.read(10).unwrap().len(), 10, "what fits is read");
    assert_eq!(rig.denials(), vec![DenyCode::LimitReached; 3]);
    assert_eq!(rig.budget.spent_amount(Meter::Read), 100);
}

#[tokio::test]
async fn a_stream_reads_to_the_end_and_closes() {
    let mut rig = Rig::new();
    let file = rig.open(rig.rw, "note.txt", How::Read).await.unwrap().rep();
    let stream = rig.view().read_via_stream(fd(file), 2).unwrap();
    let reader = rig.table.get_mut(&stream).unwrap();
    assert_eq!(reader.blocking_read(3).await.unwrap(), "not");
    assert_eq!(reader.read(0).unwrap(), "");
    assert_eq!(reader.read(100).unwrap(), "e\n");
    assert!(matches!(reader.read(100), Err(StreamError::Closed)));
}

#[tokio::test]
async fn open_files_are_limited_and_given_back() {
    // Two of the open files are the mounts.
    let mut rig = Rig::with(&limits());
    let one = rig.open(rig.rw, "note.txt", How::Read).await.unwrap().rep();
    let two = rig.open(rig.rw, "note.txt", How::Read).await.unwrap().rep();
    let full = ErrorCode::InsufficientMemory;
    assert_eq!(code(rig.open(rig.rw, "note.txt", How::Read).await), full);
    assert_eq!(code(rig.open(rig.rw, "new.txt", How::Create).await), full);
    assert!(!rig.host("rw/new.txt").exists());
    assert_eq!(preopens::Host::get_directories(&mut rig.view()).unwrap().len(), 0);
    assert_eq!(rig.denials(), vec![DenyCode::LimitReached; 3]);

    let stream = rig.view().read_via_stream(fd(one), 0).unwrap();
    HostDescriptor::drop(&mut rig.view(), own(one)).unwrap();
    let error = code(rig.open(rig.rw, "note.txt", How::Read).await);
    assert_eq!(error, full, "a stream keeps the file open");
    rig.table.delete(stream).unwrap();
    rig.open(rig.rw, "note.txt", How::Read).await.unwrap();
    HostDescriptor::drop(&mut rig.view(), own(two)).unwrap();
    rig.assert_works().await;
}

#[tokio::test]
async fn the_number_of_files_made_is_limited() {
    let mut rig = Rig::new();
    let rw = rig.rw;
    rig.ctx.made = MAX_MADE - 1;
    rig.open(rw, "last.txt", How::Create).await.unwrap();
    let full = ErrorCode::InsufficientSpace;
    assert_eq!(code(rig.open(rw, "more.txt", How::Create).await), full);
    assert_eq!(code(rig.view().create_directory_at(fd(rw), "more".into()).await), full);
    let none = PathFlags::empty();
    let link = rig.view().link_at(fd(rw), none, "note.txt".into(), fd(rw), "more".into()).await;
    assert_eq!(code(link), full);
    assert_eq!(rig.denials(), vec![DenyCode::LimitReached; 3]);
    assert!(!rig.host("rw/more.txt").exists() && !rig.host("rw/more").exists());
    rig.write(rw, "last.txt", "an existing file is written").await.unwrap();
}

#[tokio::test]
async fn the_entries_held_for_listings_are_limited_and_given_back() {
    let mut rig = Rig::new();
    for n in 0..3 {
        rig.put(&format!("rw/{n}"), "");
    }
    let rw = rig.rw;
    rig.ctx.listed = MAX_LISTED - 4;
    let listing = rig.view().read_directory(fd(rw)).await.unwrap();
    assert_eq!(code(rig.view().read_directory(fd(rw)).await), ErrorCode::InsufficientSpace);
    assert_eq!(rig.denials(), [DenyCode::LimitReached]);
    types::HostDirectoryEntryStream::drop(&mut rig.view(), listing).unwrap();
    rig.view().read_directory(fd(rw)).await.unwrap();
}

#[tokio::test]
async fn a_long_directory_is_listed_in_full() {
    let mut rig = Rig::new();
    for n in 0..600 {
        rig.put(&format!("rw/many/{n}"), "");
    }
    let dir = rig.open(rig.rw, "many", How::Directory).await.unwrap().rep();
    let listing = rig.view().read_directory(fd(dir)).await.unwrap().rep();
    let mut names = std::collections::BTreeSet::new();
    let mut view = rig.view();
    while let Some(entry) = view.read_directory_entry(Resource::new_borrow(listing)).await.unwrap()
    {
        names.insert(entry.name);
    }
    assert_eq!(names.len(), 600);
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_is_told_to_the_operator_and_a_limit_is_not_called_one() {
    use crate::imports::files::streams::write_billed;
    let budget = || Budget::new_root(BudgetLevel::Call, BudgetCaps::for_agent(&limits()));
    let record = CallRecord::new(budget(), 10);
    let device = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let device = crate::imports::files::FileContent { file: Arc::new(device), over: None };
    let error = write_billed(&device, &record, "/workspace/a.txt", b"x", Some(0)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(28));
    let (lists, bytes, _) = record.drain_lists();
    assert!(lists.denials[0].facts.starts_with("the disk that holds `/workspace/a.txt` is full"));
    assert_eq!(bytes.written, 0, "what was not written is not billed");
    // Above the guest's own limit, the guest gets the same error, and the receipt does not blame the disk.
    let error = write_billed(&device, &record, "/workspace/a.txt", &[0; 101], None).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(28));
    assert!(!record.drain_lists().0.denials[0].facts.contains("disk"));
}
