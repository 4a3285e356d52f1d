//! Checks the images of a request.

use belljar_model::{ChatMessage, ChatModel, ChatRequest, Image};

use crate::limits::{MAX_IMAGES, MAX_IMAGES_BYTES};

/// INV-346: refuses a request with images for a model that reads none, and a request with too many images.
pub(crate) fn check_images(request: &ChatRequest, model: &dyn ChatModel) -> Result<(), String> {
    let images = || request.messages.iter().flat_map(ChatMessage::images);
    let count = images().count();
    if count == 0 {
        return Ok(());
    }
    if !model.takes_images() {
        let id = model.id();
        return Err(format!(
            "the conversation has an image, and the model `{id}` reads text alone; choose another \
             model, or set `images = true` where it is configured if it does read them"
        ));
    }
    let bytes = images().map(Image::byte_count).fold(0, usize::saturating_add);
    if count > MAX_IMAGES || bytes > MAX_IMAGES_BYTES {
        return Err(format!(
            "the conversation has {count} images of {bytes} bytes, and takes {MAX_IMAGES} of \
             {MAX_IMAGES_BYTES} together; begin a new one, or send smaller ones"
        ));
    }
    Ok(())
}
