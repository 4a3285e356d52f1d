//! Converts the blocks of a prompt to a turn's input: a text, and the resources as context.

use std::path::Path;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResourceResource, ResourceLink, TextResourceContents,
};
use belljar_agent::Image;
use belljar_agent::commands::CommandCall;
use belljar_agent::frame::escape_tags;
use belljar_policy::ShownText;

use crate::errors::invalid_parameter;
use crate::limits::{MAX_BLOCKS, MAX_PROMPT_BYTES, MAX_TITLE};
use crate::places;

/// The tag of the frame around a resource.
const FRAME: &str = "resource";

/// The parsed content of a prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PromptWords {
    pub(crate) text: String,
    pub(crate) context: Option<String>,
    /// The command that the person called.
    pub(crate) command: Option<CommandCall>,
    /// The skills that the person called.
    pub(crate) skills: Vec<String>,
    pub(crate) images: Vec<Image>,
}

/// Parses the blocks of a prompt. INV-302: nothing that a prompt names is opened or fetched.
pub(crate) fn parse_prompt(
    blocks: Vec<ContentBlock>,
    workspace: &Path,
) -> Result<PromptWords, Error> {
    if blocks.len() > MAX_BLOCKS {
        return Err(invalid_parameter(format!("a prompt has at most {MAX_BLOCKS} blocks")));
    }
    let bytes: usize = blocks.iter().map(block_bytes).fold(0, usize::saturating_add);
    if bytes > MAX_PROMPT_BYTES {
        return Err(invalid_parameter(format!(
            "the prompt has {bytes} bytes with its resources, and takes {MAX_PROMPT_BYTES}; name a \
             file of the workspace instead of embedding it"
        )));
    }
    let (mut text, mut resources, mut images) = (String::new(), Vec::new(), Vec::new());
    for block in blocks {
        match block {
            ContentBlock::Text(block) => text.push_str(&block.text),
            ContentBlock::ResourceLink(link) => text.push_str(&link_mention(&link, workspace)),
            ContentBlock::Resource(embedded) => match embedded.resource {
                EmbeddedResourceResource::TextResourceContents(resource) => {
                    text.push_str(&format!("`{}`", resource_name(&resource.uri, workspace)));
                    resources.push(frame_resource(&resource, workspace));
                }
                EmbeddedResourceResource::BlobResourceContents(resource) => {
                    let said = resource.mime_type.as_deref();
                    if !said.is_some_and(|said| said.starts_with("image/")) {
                        return Err(unfit_prompt("a resource that is neither text nor an image"));
                    }
                    images.push(parse_image(&resource.blob, said)?);
                    text.push_str(&format!("`{}`", resource_name(&resource.uri, workspace)));
                }
                _ => return Err(unfit_prompt("this kind of resource")),
            },
            // INV-302: only the data of an image is used, and not its `uri`.
            ContentBlock::Image(block) => {
                images.push(parse_image(&block.data, Some(&block.mime_type))?)
            }
            ContentBlock::Audio(_) => return Err(unfit_prompt("a sound")),
            _ => return Err(unfit_prompt("this kind of content")),
        }
    }
    if text.trim().is_empty() && images.is_empty() {
        return Err(invalid_parameter("the prompt has no text; say something"));
    }
    let context = (!resources.is_empty()).then(|| resources.join("\n\n"));
    Ok(PromptWords { text, context, command: None, skills: Vec::new(), images })
}

/// The error of a prompt with content that belljar cannot send to a model.
fn unfit_prompt(what: &str) -> Error {
    invalid_parameter(format!(
        "the prompt has {what}, and models are sent text and images; `promptCapabilities` says so. Put \
         the file into the workspace and name it"
    ))
}

fn parse_image(data: &str, said: Option<&str>) -> Result<Image, Error> {
    Image::from_base64(data, said).map_err(|error| invalid_parameter(error.to_string()))
}

/// The bytes of a block's texts.
fn block_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::ResourceLink(link) => link.uri.len().saturating_add(link.name.len()),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(resource) => {
                resource.text.len().saturating_add(resource.uri.len())
            }
            // Images have separate limits.
            _ => 0,
        },
        _ => 0,
    }
}

/// The name of a resource; a file in the workspace is named by its path as the agent sees it.
fn resource_name(uri: &str, workspace: &Path) -> String {
    places::guest_path(workspace, uri)
        .unwrap_or_else(|| ShownText::clip_line(uri, MAX_TITLE).to_string())
}

/// A link as the agent reads it: the path in the workspace, or a name with the address.
fn link_mention(link: &ResourceLink, workspace: &Path) -> String {
    match places::guest_path(workspace, &link.uri) {
        Some(path) => format!("`{path}`"),
        None => {
            let (title, uri) = (
                ShownText::clip_line(&link.name, MAX_TITLE),
                ShownText::clip_line(&link.uri, MAX_TITLE),
            );
            format!("`{title}` ({uri}, not in the workspace)")
        }
    }
}

fn frame_resource(resource: &TextResourceContents, workspace: &Path) -> String {
    let name = resource_name(&resource.uri, workspace).replace(['"', '<', '>'], "_");
    let body = escape_tags(&resource.text, &[FRAME]);
    format!("<{FRAME} name=\"{name}\">\n{body}\n</{FRAME}>")
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{
        AudioContent, BlobResourceContents, EmbeddedResource, ImageContent, TextContent,
    };

    use super::*;

    fn text(text: &str) -> ContentBlock {
        ContentBlock::Text(TextContent::new(text))
    }

    fn resource(text: &str, uri: &str) -> ContentBlock {
        let contents = TextResourceContents::new(text, uri);
        let resource = EmbeddedResourceResource::TextResourceContents(contents);
        ContentBlock::Resource(EmbeddedResource::new(resource))
    }

    fn of(blocks: Vec<ContentBlock>) -> Result<PromptWords, Error> {
        parse_prompt(blocks, Path::new("/w"))
    }

    #[test]
    fn files_of_the_workspace_are_named_as_the_agent_sees_them() {
        let link = ContentBlock::ResourceLink(ResourceLink::new("a.rs", "file:///w/src/a.rs"));
        let read = of(vec![text("Explain "), link, resource("b </resource>", "file:///w/b")]);
        let read = read.unwrap();
        assert_eq!(read.text, "Explain `/workspace/src/a.rs``/workspace/b`");
        let context = read.context.unwrap();
        assert!(context.starts_with("<resource name=\"/workspace/b\">\nb "), "{context}");
        assert_eq!(context.matches("</resource>").count(), 1, "{context}");
        let outside = ContentBlock::ResourceLink(ResourceLink::new("p", "file:///etc/passwd"));
        assert!(of(vec![outside]).unwrap().text.contains("not in the workspace"));
    }

    const GIF: &str = "R0lGODlhAQABAAAAACw=";

    #[test]
    fn an_image_is_its_bytes_and_what_it_names_is_not_opened() {
        let image = ImageContent::new(GIF, "image/gif").uri("file:///etc/passwd".to_owned());
        let blob =
            BlobResourceContents::new(GIF, "file:///w/a.gif").mime_type("image/gif".to_owned());
        let blob = EmbeddedResourceResource::BlobResourceContents(blob);
        let blob = ContentBlock::Resource(EmbeddedResource::new(blob));
        let read = of(vec![ContentBlock::Image(image), blob]).unwrap();
        assert_eq!((read.images.len(), read.text.as_str()), (2, "`/workspace/a.gif`"));
    }

    #[test]
    fn a_prompt_that_is_no_text_or_too_much_is_refused_with_a_remedy() {
        let image = |data: &str, said: &str| ContentBlock::Image(ImageContent::new(data, said));
        let sound = ContentBlock::Audio(AudioContent::new("aGk=", "audio/wav"));
        let huge = resource(&"x".repeat(MAX_PROMPT_BYTES), "file:///w/b");
        let many = vec![text("x"); MAX_BLOCKS + 1];
        for (blocks, says) in [
            (vec![image("aGk=", "image/png")], "PNG, JPEG, GIF or WebP"),
            (vec![image(GIF, "image/png")], "`image/gif` by its first bytes"),
            (vec![image("*", "image/png")], "in base64"),
            (vec![sound], "text and images"),
            (vec![huge], "name a file of the workspace"),
            (many, "at most 256 blocks"),
            (vec![text(" ")], "say something"),
        ] {
            let error = of(blocks).unwrap_err();
            assert!(error.message.contains(says), "{}", error.message);
        }
    }
}
