//! The images of a session. INV-347: the bytes of an image are stored once, as a file that a person brought;
//! rows of messages have only the digest.

use std::collections::{HashMap, HashSet};

use belljar_agent::{CallerInput, Image};
use belljar_store::{NewAttachment, Store, StoreError};
use bytes::Bytes;

/// The files of images that a turn brings, without images that the session has already.
pub(crate) async fn new_image_files(
    store: &Store,
    session: &str,
    brought: &CallerInput,
    now: i64,
    new_id: impl Fn() -> String,
) -> Result<Vec<NewAttachment>, StoreError> {
    let mut names = HashSet::new();
    let mut files = Vec::new();
    for image in brought.all_images().filter(|image| !image.data().is_empty()) {
        let name = image.file_name();
        if !names.insert(name.clone()) || store.brought_file(session, &name).await?.is_some() {
            continue;
        }
        files.push(NewAttachment {
            id: new_id(),
            call_id: None,
            name,
            media_type: image.media_type().to_owned(),
            data: image.data().to_vec(),
            created: now,
        });
    }
    Ok(files)
}

/// Reads the bytes of images from the store. An image whose file was deleted stays empty.
pub(crate) async fn restore_images<'a>(
    store: &Store,
    session: &str,
    images: impl Iterator<Item = &'a mut Image>,
) -> Result<(), StoreError> {
    let mut known: HashMap<String, Bytes> = HashMap::new();
    for image in images.filter(|image| image.data().is_empty()) {
        let name = image.file_name();
        let data = match known.get(&name) {
            Some(data) => data.clone(),
            None => {
                let found = store.brought_file(session, &name).await?;
                let data = Bytes::from(found.unwrap_or_default());
                known.entry(name).or_insert(data).clone()
            }
        };
        image.restore_bytes(data);
    }
    Ok(())
}
