//! The content of an entry: a text, or a list of parts.

use serde_json::Value;

use crate::http::problem::Problem;
use crate::openai::params::{invalid, unsupported};

/// The types of parts that are text.
const TEXT: [&str; 5] = ["text", "input_text", "output_text", "refusal", "summary_text"];

/// The text of a content; its parts are joined by line feeds. `at`: where it stands.
pub(crate) fn text(content: Option<&Value>, at: &str) -> Result<String, Problem> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let parts = parts.iter().enumerate();
            let texts = parts.map(|(index, part)| part_text(part, &format!("{at}[{index}]")));
            Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
        Some(_) => Err(invalid(at, format!("`{at}` is neither a text nor a list of parts"))),
    }
}

fn part_text(part: &Value, at: &str) -> Result<String, Problem> {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    if TEXT.contains(&kind) {
        let text = part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str);
        let no_text = || invalid(at, format!("`{at}` has no text"));
        return text.map(str::to_owned).ok_or_else(no_text);
    }
    let what = match kind {
        "image_url" | "input_image" => "images",
        "file" | "input_file" => "files",
        "input_audio" => "audio",
        _ => return Err(invalid(at, format!("`{at}` has a type that is not known"))),
    };
    // INV-287: nothing is fetched for a caller, and nothing is left out without a word.
    Err(unsupported(at, format!("{what} are not supported: agents read text"))
        .hint("put the file into the workspace, and name it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_content_is_its_texts_and_what_is_no_text_is_refused() {
        let of = |content: Value| text(Some(&content), "c");
        assert_eq!(of(json!("a")).unwrap(), "a");
        let parts = json!([{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]);
        assert_eq!(of(parts).unwrap(), "a\nb");
        assert_eq!(text(None, "c").unwrap(), "");
        let image = json!([{"type": "input_image", "image_url": "http://127.0.0.1/x"}]);
        assert!(of(image).unwrap_err().body().detail().contains("images"));
        for bad in [json!(1), json!([1]), json!([{"type": "text"}]), json!([{"type": "x"}])] {
            assert!(of(bad.clone()).is_err(), "{bad}");
        }
    }
}
