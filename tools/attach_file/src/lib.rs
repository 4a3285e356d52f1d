//! `attach_file`: hands a file over as it is.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

use belljar_guest::prelude::*;
use std::fs::File;
use std::io::Read;

/// Bytes of one attachment. It is held in memory in the guest and in the host.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The media type of what is not known by its name.
const UNKNOWN: &str = "application/octet-stream";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the workspace.
    path: String,
    /// The name to show. Default: the file's own.
    name: Option<String>,
    /// The media type, such as `image/png`. Default: guessed from the file's extension.
    media_type: Option<String>,
}

fn attach_file(args: Args) -> ToolResult {
    let path = WorkspacePath::parse(&args.path)?;
    let media_type = match args.media_type {
        Some(given) if is_media_type(&given) => given,
        Some(given) => {
            return Err(ToolError::InvalidArguments(format!(
                "`media_type`: `{}` is not of the form `type/subtype`",
                given.chars().take(100).collect::<String>()
            )));
        }
        None => guess(path.shown()).to_owned(),
    };
    let file = File::open(&path).at(&args.path)?;
    let metadata = file.metadata().at(&args.path)?;
    if metadata.is_dir() {
        return Err(ToolError::Failed(format!("`{}` is a directory; attach its files", args.path)));
    }
    if metadata.len() > MAX_BYTES {
        return Err(too_large(&args.path, metadata.len()));
    }
    let mut data = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut data).at(&args.path)?;
    if data.len() as u64 > MAX_BYTES {
        return Err(too_large(&args.path, data.len() as u64));
    }
    let own = path.shown().rsplit('/').next().unwrap_or(path.shown());
    let name = args.name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| own.to_owned());
    let text = format!("attached {path} as `{name}`: {media_type}, {} bytes", data.len());
    Ok(Output::text(text).and(Output::attachment(name, media_type, data)))
}

fn too_large(path: &str, size: u64) -> ToolError {
    ToolError::TooLarge(format!(
        "`{path}` has at least {size} bytes; the most for an attachment is {MAX_BYTES}"
    ))
}

fn guess(path: &str) -> &'static str {
    mime_guess::from_path(path).first_raw().unwrap_or(UNKNOWN)
}

/// `type/subtype` with optional parameters, in the characters that a header can carry.
fn is_media_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    text.len() <= 200
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && essence.split_once('/').is_some_and(|(kind, sub)| token(kind) && token(sub))
}

belljar_guest::tools! {
    attach_file(Args): "Hands a file of the workspace to the user as an attachment, byte for byte: an \
        image, a PDF, a report, an archive. Use it for results that are files; to look at a text file \
        yourself use `file_read`.",
        hints: read_only | idempotent;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_guessed_from_the_extension() {
        assert_eq!(guess("a/chart.PNG"), "image/png");
        assert_eq!(guess("report.pdf"), "application/pdf");
        assert_eq!(guess("no-extension"), UNKNOWN);
    }

    #[test]
    fn only_a_well_formed_media_type_is_taken() {
        for good in ["image/png", "text/plain; charset=utf-8", "application/vnd.x+json"] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in ["", "png", "/png", "image/", "image/p ng", "a/b\r\nx: y", "a/b/c"] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}
