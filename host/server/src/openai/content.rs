//! The content of a message: a text, or a list of parts.

use belljar_agent::Image;
use serde_json::Value;

use crate::http::problem::Problem;
use crate::openai::left_out::IgnoredParts;
use crate::openai::params::{invalid_value, unsupported_parameter};

/// The types of parts that contain text.
const TEXT: [&str; 5] = ["text", "input_text", "output_text", "refusal", "summary_text"];

/// The texts and the images of a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MessageContent {
    /// The texts of all parts, joined by line feeds.
    pub(crate) text: String,
    pub(crate) images: Vec<Image>,
}

/// Parses the content of a message that may contain images. `at` is the content's place in the request, for
/// error texts.
pub(crate) fn parse_content(content: Option<&Value>, at: &str) -> Result<MessageContent, Problem> {
    let mut images = Vec::new();
    let mut texts = Vec::new();
    match content {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => texts.push(text.clone()),
        Some(Value::Array(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                let at = format!("{at}[{index}]");
                match image_url(part) {
                    Some(url) => images.push(parse_image(url, &at)?),
                    None => texts.push(part_text(part, &at)?),
                }
            }
        }
        Some(_) => {
            return Err(invalid_value(at, format!("`{at}` is neither a text nor a list of parts")));
        }
    }
    Ok(MessageContent { text: texts.join("\n"), images })
}

/// Parses the content of a message that may contain no images.
pub(crate) fn parse_text(content: Option<&Value>, at: &str) -> Result<String, Problem> {
    let content = parse_content(content, at)?;
    if !content.images.is_empty() {
        let detail = format!("`{at}` has an image, and images can only be the user's");
        return Err(
            unsupported_parameter(at, detail).with_hint("send it in a message of the role `user`")
        );
    }
    Ok(content.text)
}

/// The text of an agent's message, or of the result of a caller's tool. Parts of other kinds, such as an
/// agent's reasoning, are recorded in `left` and replaced by the text `instead`.
pub(crate) fn parse_agent_text(
    content: Option<&Value>,
    at: &str,
    instead: Option<&str>,
    left: &mut IgnoredParts,
) -> Result<String, Problem> {
    let Some(Value::Array(parts)) = content else { return parse_text(content, at) };
    let mut texts = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}[{index}]");
        match part.get("type").and_then(Value::as_str) {
            Some(kind) if !TEXT.contains(&kind) => {
                left.add_kind(&at, kind);
                texts.extend(instead.map(str::to_owned));
            }
            Some(_) | None => texts.push(part_text(part, &at)?),
        }
    }
    Ok(texts.join("\n"))
}

/// The text in place of an image or file in a tool's result, so the agent knows that there was one.
pub(crate) const LEFT_OUT: &str = "[a part of this result is no text, and was left out]";

/// Replaces the bytes of images in items by the name of the file in which the image is stored.
pub(crate) fn without_bytes(items: &mut [Value]) {
    let lists = items.iter_mut().filter_map(|item| item.get_mut("content")?.as_array_mut());
    for part in lists.flatten() {
        let Some(url) = image_url(part) else { continue };
        let Ok(image) = parse_image(url, "") else { continue };
        part["image_url"] = Value::String(format!("attachment:{}", image.file_name()));
    }
}

/// The value of an image part's address; `None` if it is missing.
fn image_url(part: &Value) -> Option<&Value> {
    let url = part.get("image_url").unwrap_or(&Value::Null);
    match part.get("type").and_then(Value::as_str)? {
        "image_url" => Some(url.get("url").unwrap_or(&Value::Null)),
        "input_image" => Some(url),
        _ => None,
    }
}

/// INV-287: parses an image whose bytes are inside the request. The server fetches no address for a caller.
fn parse_image(url: &Value, at: &str) -> Result<Image, Problem> {
    let data = "send its bytes as `data:image/png;base64,...`";
    let Some(url) = url.as_str() else {
        let detail = format!("`{at}` has no `image_url`, and no files are kept for a caller");
        return Err(unsupported_parameter(at, detail).with_hint(data));
    };
    let Some((head, body)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
        let detail = format!("the image of `{at}` is not a `data:` URL, and nothing is fetched");
        return Err(unsupported_parameter(at, detail).with_hint(data));
    };
    let Some(media_type) = head.strip_suffix(";base64") else {
        return Err(
            invalid_value(at, format!("the image of `{at}` is not in base64")).with_hint(data)
        );
    };
    let said = Some(media_type).filter(|said| !said.is_empty());
    Image::from_base64(body, said).map_err(|error| invalid_value(at, format!("`{at}`: {error}")))
}

/// The text of one part; a problem for a file, for audio, and for an unknown type.
fn part_text(part: &Value, at: &str) -> Result<String, Problem> {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    if TEXT.contains(&kind) {
        let text = part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str);
        let no_text = || invalid_value(at, format!("`{at}` has no text"));
        return text.map(str::to_owned).ok_or_else(no_text);
    }
    let what = match kind {
        "file" | "input_file" => "files",
        "input_audio" => "audio",
        _ => return Err(invalid_value(at, format!("`{at}` has a type that is not known"))),
    };
    // INV-287: a part is used, noted as ignored, or refused, but never dropped silently.
    Err(unsupported_parameter(at, format!("{what} are not supported: agents read text and images"))
        .with_hint("put the file into the workspace, and name it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GIF: &str = "data:image/gif;base64,R0lGODlhAQABAAAAACw=";

    #[test]
    fn a_content_is_its_texts_and_what_is_neither_text_nor_image_is_refused() {
        let of = |content: Value| parse_text(Some(&content), "c");
        assert_eq!(of(json!("a")).unwrap(), "a");
        let parts = json!([{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]);
        assert_eq!(of(parts).unwrap(), "a\nb");
        assert_eq!(parse_text(None, "c").unwrap(), "");
        let image = json!([{"type": "input_image", "image_url": GIF}]);
        assert!(of(image).unwrap_err().to_body().detail().contains("user's"));
        for bad in [json!(1), json!([1]), json!([{"type": "text"}]), json!([{"type": "x"}])] {
            assert!(of(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_a_tool_gave_besides_text_is_left_out_with_a_word_to_the_agent() {
        let parts = json!([
            {"type": "input_text", "text": "seen"},
            {"type": "input_image", "image_url": GIF},
            {"type": "thinking", "thinking": "x"},
        ]);
        let mut left = IgnoredParts::default();
        let given = parse_agent_text(Some(&parts), "output", Some(LEFT_OUT), &mut left).unwrap();
        assert_eq!(given, format!("seen\n{LEFT_OUT}\n{LEFT_OUT}"));
        assert!(format!("{left:?}").contains("output[1] (input_image)"), "{left:?}");
        assert_eq!(parse_agent_text(Some(&parts), "content", None, &mut left).unwrap(), "seen");
        assert!(parse_agent_text(Some(&json!([{"type": "text"}])), "c", None, &mut left).is_err());
        assert!(parse_agent_text(Some(&json!([1])), "c", None, &mut left).is_err());
    }

    #[test]
    fn an_image_is_the_bytes_of_its_request_and_nothing_else() {
        let of = |url: Value| {
            parse_content(Some(&json!([{"type": "input_image", "image_url": url}])), "c")
        };
        assert_eq!(of(json!(GIF)).unwrap().images[0].media_type(), "image/gif");
        let chat = json!([{"type": "image_url", "image_url": {"url": GIF, "detail": "low"}}]);
        assert_eq!(parse_content(Some(&chat), "c").unwrap().images.len(), 1);
        for bad in [
            json!(null),
            json!("http://127.0.0.1/x.png"),
            json!("file:///etc/passwd"),
            json!("data:image/gif,GIF89a"),
            json!("data:image/png;base64,R0lGODlhAQABAAAAACw="),
            json!("data:image/svg+xml;base64,PHN2Zz4="),
            json!("data:image/gif;base64,*"),
        ] {
            assert!(of(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_repeated_of_an_input_has_the_name_of_an_image_and_not_its_bytes() {
        let part = json!({"type": "input_image", "image_url": GIF});
        let mut items = vec![json!({"role": "user", "content": [part]}), json!({"content": "x"})];
        without_bytes(&mut items);
        let told = serde_json::to_string(&items).unwrap();
        assert!(told.contains("attachment:image-") && !told.contains("R0lGOD"), "{told}");
    }
}
