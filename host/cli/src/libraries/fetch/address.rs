//! Parses the typed form of a source. Nothing is opened, resolved or asked here.
//!
//! ```text
//! owner/repo, github:owner/repo/sub/folder@v1, https://host/x.git#REV ──> GitAddress
//! https://host/x.zip, https://host/agent.md                           ──> DownloadAddress
//! npm:@scope/package@1.2.3                                            ──> NpmAddress
//! ```

use std::net::IpAddr;

use belljar_policy::{RequestTarget, ShownText, TargetHost, UrlScheme};
use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::libraries::gather::unfit_reason;
use crate::libraries::repository::is_name;
use crate::setup::exit::Failure;

/// Bytes of a typed address; longer ones are refused.
const MAX_ADDRESS: usize = 1 << 10;

/// Bytes of the name of a package with its scope, as the public registry allows.
const MAX_PACKAGE: usize = 214;

/// Hosts whose pages of a repository have the form `https://HOST/OWNER/REPOSITORY`.
const FORGES: &[&str] =
    &["github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "gitea.com", "git.sr.ht"];

/// Words behind a repository's name in the address of one of its pages that shows a folder.
const FOLDER_WORDS: &[&str] = &["tree", "src"];

/// A source on another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RemoteAddress {
    /// A git repository.
    Git(GitAddress),
    /// One file: an archive or an agent.
    Download(DownloadAddress),
    /// A package of npm's registry.
    Npm(NpmAddress),
}

/// A git repository that is served over HTTPS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GitAddress {
    /// For example `https://github.com/owner/repository.git`. Use [`GitAddress::from_parts`] for one from a
    /// stranger's file.
    pub(crate) url: String,
    /// The branch, tag or commit; absent = the server's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<String>,
    /// The folder below the root, with `/` between its parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) folder: Option<String>,
}

/// A file that is served over HTTPS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DownloadAddress {
    /// For example `https://example.org/agents.zip`.
    pub(crate) url: String,
}

/// A package of npm's registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NpmAddress {
    /// For example `@scope/name`.
    pub(crate) package: String,
    /// A version or a tag; absent = the tag `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The registry's address; absent = the one of npm's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registry: Option<String>,
}

impl RemoteAddress {
    /// Parses what was typed for a source; `None` = a path on this machine.
    ///
    /// # Errors
    ///
    /// The text is an address that belljar does not fetch.
    pub(crate) fn parse_typed(typed: &str) -> Result<Option<Self>, Failure> {
        if typed.len() > MAX_ADDRESS || typed.chars().any(ShownText::is_hidden) {
            return Ok(None);
        }
        if let Some(package) = typed.strip_prefix("npm:") {
            return NpmAddress::from_typed(package).map(|it| Some(Self::Npm(it)));
        }
        if let Some(rest) = typed.strip_prefix("github:") {
            let found = parse_short(rest).ok_or_else(|| {
                let shown = ShownText::clip_line(typed, 200);
                Failure::usage(format!("`{shown}` names no repository of GitHub"))
                    .with_hint("the form is `github:owner/repository[/folder][@branch-or-tag]`")
            })?;
            return found.check_parts().map(|it| Some(Self::Git(it)));
        }
        refuse_other_protocols(typed)?;
        if typed.starts_with("https://") || typed.starts_with("http://") {
            return parse_url(typed).map(Some);
        }
        if is_file_name(typed) {
            return Ok(None);
        }
        parse_short(typed).map(|found| found.check_parts().map(Self::Git)).transpose()
    }

    /// The word for a library from this address, for example `repository`.
    pub(crate) fn last_name(&self) -> Option<String> {
        let last = |path: &str| {
            path.trim_end_matches('/').rsplit('/').next().map(|name| strip_ending(name).to_owned())
        };
        match self {
            Self::Git(GitAddress { url, folder, .. }) => {
                folder.as_deref().and_then(last).or_else(|| last(url))
            }
            Self::Download(DownloadAddress { url }) => last(&parse_plain(url).ok()?.1),
            Self::Npm(NpmAddress { package, .. }) => last(package),
        }
    }
}

impl GitAddress {
    /// The address of a stranger's file, for example a marketplace, by the rules for a typed address.
    ///
    /// # Errors
    ///
    /// The URL, revision or folder is not one that belljar fetches.
    pub(crate) fn from_parts(
        url: &str,
        rev: Option<&str>,
        folder: Option<&str>,
    ) -> Result<Self, Failure> {
        refuse_other_protocols(url)?;
        let (rev, folder) = (rev.map(str::to_owned), folder.map(str::to_owned));
        let (target, _) = parse_plain(url)?;
        let made = Self { url: url.to_owned(), rev, folder };
        check_scheme(&target, url)?;
        made.check_parts()
    }

    /// Refuses a revision or folder that git could take for something else.
    fn check_parts(self) -> Result<Self, Failure> {
        if let Some(rev) = &self.rev {
            let shown = ShownText::clip_line(rev, 80);
            // `+name` forces an update, and `-name` is an option.
            if rev.starts_with(['-', '+']) || !is_name(rev) {
                return Err(Failure::usage(format!(
                    "`{shown}` is no name of a branch, tag or commit"
                )));
            }
            let is_short = (7..40).contains(&rev.len())
                && rev.bytes().all(|b| b.is_ascii_hexdigit())
                && rev.bytes().any(|b| b.is_ascii_digit());
            if is_short {
                return Err(Failure::usage(format!(
                    "`{shown}` looks like the beginning of a commit's id, which servers do not know"
                ))
                .with_hint("give all its digits, or a branch or tag"));
            }
        }
        if let Some(folder) = &self.folder
            && let Some(why) = unfit_reason(folder)
        {
            let shown = ShownText::clip_line(folder, 80);
            return Err(Failure::usage(format!("the folder `{shown}` cannot be used: {why}")));
        }
        Ok(self)
    }
}

impl DownloadAddress {
    /// The address of a stranger's file, by the rules for a typed address.
    ///
    /// # Errors
    ///
    /// The URL is not one that belljar fetches.
    pub(crate) fn from_url(url: &str) -> Result<Self, Failure> {
        refuse_other_protocols(url)?;
        check_scheme(&parse_plain(url)?.0, url)?;
        Ok(Self { url: url.to_owned() })
    }
}

impl NpmAddress {
    /// Parses `package`, `@scope/package`, each with an optional `@version`.
    ///
    /// # Errors
    ///
    /// The text names no package.
    pub(crate) fn from_typed(text: &str) -> Result<Self, Failure> {
        let (scope, rest) = match text.strip_prefix('@').and_then(|text| text.split_once('/')) {
            Some((scope, rest)) => (Some(scope), rest),
            None => (None, text),
        };
        let (name, version) = match rest.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (rest, None),
        };
        let part = |part: &str| {
            let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
            !part.is_empty() && !part.starts_with(['.', '_']) && part.bytes().all(fits)
        };
        let is_version = |version: &str| {
            let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.');
            !version.is_empty() && version.len() <= 128 && version.bytes().all(fits)
        };
        let shown = ShownText::clip_line(text, 200);
        if text.len() > MAX_PACKAGE + 129 || !scope.is_none_or(part) || !part(name) {
            return Err(Failure::usage(format!("`{shown}` is no name of a package")).with_hint(
                "the form is `npm:package[@version]` or `npm:@scope/package[@version]`",
            ));
        }
        if !version.is_none_or(is_version) {
            return Err(Failure::usage(format!("`{shown}` names no version of a package")).with_hint(
                "give one version or tag, for example `1.2.3` or `latest`; ranges are not resolved",
            ));
        }
        let package = scope.map_or_else(|| name.to_owned(), |scope| format!("@{scope}/{name}"));
        Ok(Self { package, version: version.map(str::to_owned), registry: None })
    }
}

/// Whether a host is this machine, by its spelling.
pub(in crate::libraries) fn is_loopback(target: &RequestTarget) -> bool {
    match target.host() {
        TargetHost::Ip(IpAddr::V4(ip)) => ip.is_loopback(),
        TargetHost::Ip(IpAddr::V6(ip)) => ip.is_loopback(),
        TargetHost::Name(name) => name == "localhost",
    }
}

/// Refuses the protocols that ask for a key, or that nobody encrypts.
fn refuse_other_protocols(typed: &str) -> Result<(), Failure> {
    let shown = || ShownText::clip_line(typed, 200).to_string();
    let plain = typed.split_once("://");
    // `git@host:owner/repository`, and `host:path` with a user's name.
    let is_scp = plain.is_none()
        && typed.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
    let scheme = plain.map_or("", |(scheme, _)| scheme);
    if is_scp || matches!(scheme, "ssh" | "git+ssh" | "ssh+git") {
        return Err(Failure::usage(format!(
            "`{}` is an address for ssh, which takes a key",
            shown()
        ))
        .with_hint(format!(
            "belljar fetches what everybody may read, over https: `{}`; or clone it with git, and \
                 give the directory",
            https_form(typed)
        )));
    }
    match scheme {
        "" | "https" | "http" => Ok(()),
        _ => Err(Failure::usage(format!("`{}` is no address that belljar fetches", shown()))
            .with_hint("fetched are `https://` addresses; or clone it, and give the directory")),
    }
}

/// The likely HTTPS address of an address for ssh.
fn https_form(typed: &str) -> String {
    let rest = typed.split_once("://").map_or(typed, |(_, rest)| rest);
    let rest = rest.split_once('@').map_or(rest, |(_, rest)| rest);
    let (host, path) = rest.split_once([':', '/']).unwrap_or((rest, ""));
    ShownText::clip_line(&format!("https://{host}/{path}"), 200).to_string()
}

/// The target and path of a URL without a name, password or hidden character.
fn parse_plain(url: &str) -> Result<(RequestTarget, String), Failure> {
    let refused = |why: &str| {
        Failure::usage(format!("`{}` cannot be used: {why}", ShownText::clip_line(url, 200)))
    };
    if url.chars().any(|c| ShownText::is_hidden(c) || c.is_whitespace()) {
        return Err(refused("it holds a blank, or a character that no screen shows"));
    }
    let parsed = Url::parse(url).map_err(|_| refused("it is no address"))?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(refused("it holds a name or a password, which belljar would record")
            .with_hint("clone it with git, and give the directory"));
    }
    let target = RequestTarget::from_url(&parsed).map_err(|_| refused("it is no address"))?;
    Ok((target, parsed.path().to_owned()))
}

/// Refuses what is not encrypted on its way, except on this machine.
fn check_scheme(target: &RequestTarget, url: &str) -> Result<(), Failure> {
    if target.scheme() == UrlScheme::Https || is_loopback(target) {
        return Ok(());
    }
    let shown = ShownText::clip_line(url, 200);
    Err(Failure::usage(format!("`{shown}` is not encrypted: anybody on the way could change it"))
        .with_hint("use `https://`"))
}

fn parse_url(typed: &str) -> Result<RemoteAddress, Failure> {
    let (plain, fragment) = match typed.split_once('#') {
        Some((plain, fragment)) => (plain, Some(fragment.to_owned())),
        None => (typed, None),
    };
    let (target, path) = parse_plain(plain)?;
    check_scheme(&target, plain)?;
    let without_query = plain.split('?').next().unwrap_or(plain);
    let is_forge =
        matches!(target.host(), TargetHost::Name(name) if FORGES.contains(&name.as_str()));
    let origin = target.to_string();
    if let Some((repository, rest)) = split_repository(&path) {
        let (folder, rev) = split_rev(rest.trim_matches('/'));
        let url = format!("{origin}{repository}.git");
        let made = GitAddress { url, rev: fragment.or(rev), folder };
        return made.check_parts().map(RemoteAddress::Git);
    }
    if is_file_name(&path) && !(is_forge && path.contains("/blob/")) {
        return Ok(RemoteAddress::Download(DownloadAddress { url: plain.to_owned() }));
    }
    let shown = ShownText::clip_line(typed, 200);
    if is_forge && without_query == plain {
        let made = parse_forge_page(&origin, &path, fragment);
        return made
            .ok_or_else(|| {
                Failure::usage(format!("`{shown}` is a page, and no repository or folder of one"))
                    .with_hint("give the repository, for example `owner/repository/folder@branch`")
            })?
            .check_parts()
            .map(RemoteAddress::Git);
    }
    Err(Failure::usage(format!("`{shown}` does not say what it is"))
        .with_hint("a git repository's address ends in `.git`, an archive's in `.zip`, `.tar` or `.tar.gz`, an agent's in `.md`"))
}

/// The path up to an ending `.git` of one of its parts, and what is behind it.
fn split_repository(path: &str) -> Option<(&str, &str)> {
    path.match_indices(".git").find_map(|(at, end)| {
        let rest = path.get(at + end.len()..)?;
        let is_end = rest.is_empty() || rest.starts_with(['/', '@']);
        is_end.then_some((path.get(..at)?, rest))
    })
}

/// `/owner/repository`, `/owner/repository/tree/REV/folder`, and GitLab's form with `/-/` before `tree`.
fn parse_forge_page(origin: &str, path: &str, fragment: Option<String>) -> Option<GitAddress> {
    let path = path.trim_matches('/');
    let (repository, page) = match path.split_once("/-/") {
        Some((repository, page)) => (repository, page),
        None => {
            let end = path.match_indices('/').nth(1).map_or(path.len(), |(at, _)| at);
            (path.get(..end)?, path.get(end..)?.trim_start_matches('/'))
        }
    };
    if !repository.contains('/') || repository.split('/').any(str::is_empty) {
        return None;
    }
    let url = format!("{origin}/{repository}.git");
    if page.is_empty() {
        return Some(GitAddress { url, rev: fragment, folder: None });
    }
    let (word, rest) = page.split_once('/')?;
    if !FOLDER_WORDS.contains(&word) {
        return None;
    }
    // Gitea's form names the kind before the revision.
    let rest = ["branch/", "tag/", "commit/"]
        .iter()
        .find_map(|kind| rest.strip_prefix(kind))
        .unwrap_or(rest);
    let (rev, folder) = match rest.split_once('/') {
        Some((rev, folder)) => (rev, Some(folder.to_owned())),
        None => (rest, None),
    };
    Some(GitAddress { url, rev: Some(rev.to_owned()), folder })
}

/// `owner/repository[/folder][@branch-or-tag|#commit]` of GitHub.
fn parse_short(text: &str) -> Option<GitAddress> {
    // An absolute path that is not there is a mistake about this machine.
    if text.starts_with('/') {
        return None;
    }
    let (path, rev) = split_rev(text.trim_end_matches('/'));
    let path = path?;
    let mut parts = path.splitn(3, '/');
    let (owner, repository, folder) = (parts.next()?, parts.next()?, parts.next());
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let is_owner = (1..=39).contains(&owner.len())
        && owner.bytes().all(fits)
        && owner.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    let repository = repository.strip_suffix(".git").unwrap_or(repository);
    let is_repository = (1..=100).contains(&repository.len())
        && !matches!(repository, "." | "..")
        && repository.bytes().all(|b| fits(b) || matches!(b, b'_' | b'.'));
    (is_owner && is_repository).then(|| GitAddress {
        url: format!("https://github.com/{owner}/{repository}.git"),
        rev,
        folder: folder.map(str::to_owned),
    })
}

/// A path and the revision behind its first `@` or `#`; an empty path is `None`.
fn split_rev(text: &str) -> (Option<String>, Option<String>) {
    let some = |text: &str| (!text.is_empty()).then(|| text.trim_matches('/').to_owned());
    match text.split_once(['@', '#']) {
        Some((path, rev)) => (some(path), Some(rev.to_owned())),
        None => (some(text), None),
    }
}

/// Endings of a file that is a source by itself.
const FILE_ENDINGS: &[&str] = &[".tar.gz", ".tgz", ".tar", ".zip", ".md"];

/// Whether the name is one of a file that is a source by itself.
fn is_file_name(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    FILE_ENDINGS.iter().any(|end| path.ends_with(end))
}

/// A name without the ending of a source.
pub(in crate::libraries) fn strip_ending(name: &str) -> &str {
    let lower = name.to_ascii_lowercase();
    let ending = FILE_ENDINGS.iter().chain(&[".git"]).find(|end| lower.ends_with(**end));
    ending.and_then(|end| name.get(..name.len() - end.len())).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(text: &str) -> (String, Option<String>, Option<String>) {
        match RemoteAddress::parse_typed(text).unwrap() {
            Some(RemoteAddress::Git(GitAddress { url, rev, folder })) => (url, rev, folder),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_repository_is_typed_in_many_ways() {
        let url = "https://github.com/o/r.git";
        for (text, rev, folder) in [
            ("o/r", None, None),
            ("o/r/", None, None),
            ("o/r.git", None, None),
            ("github:o/r", None, None),
            ("github:o/r/a/b@v1.0", Some("v1.0"), Some("a/b")),
            ("o/r@feature/x", Some("feature/x"), None),
            (
                "o/r/a#0123456789012345678901234567890123456789",
                Some("0123456789012345678901234567890123456789"),
                Some("a"),
            ),
            ("https://github.com/o/r", None, None),
            ("https://github.com/o/r/", None, None),
            ("https://github.com/o/r.git", None, None),
            ("https://github.com/o/r.git#main", Some("main"), None),
            ("https://github.com/o/r.git/a/b@main", Some("main"), Some("a/b")),
            ("https://github.com/o/r/tree/main/a/b", Some("main"), Some("a/b")),
            ("https://github.com/o/r/tree/main", Some("main"), None),
            ("https://GitHub.com/o/r", None, None),
        ] {
            let expected = (url.to_owned(), rev.map(str::to_owned), folder.map(str::to_owned));
            assert_eq!(git(text), expected, "{text}");
        }
        assert_eq!(
            git("https://gitlab.com/g/sub/r/-/tree/v1/x").0,
            "https://gitlab.com/g/sub/r.git"
        );
        assert_eq!(git("https://codeberg.org/o/r/src/branch/main/x").2.as_deref(), Some("x"));
        assert_eq!(
            git("https://git.example.org/deep/er/x.git").0,
            "https://git.example.org/deep/er/x.git"
        );
        assert_eq!(git("https://x.github.io/a.b/y.git/c").0, "https://x.github.io/a.b/y.git");
        assert_eq!(git("http://127.0.0.1:8080/x.git").0, "http://127.0.0.1:8080/x.git");
    }

    #[test]
    fn packages_and_files_are_told_by_their_form() {
        let npm = |text: &str| match RemoteAddress::parse_typed(text).unwrap() {
            Some(RemoteAddress::Npm(npm)) => (npm.package, npm.version),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(npm("npm:x"), ("x".into(), None));
        assert_eq!(npm("npm:@s/x@1.2.3-rc.1"), ("@s/x".into(), Some("1.2.3-rc.1".into())));
        for text in [
            "https://example.org/a.zip",
            "https://example.org/x/a.tar.gz?raw=1",
            "https://e.org/a.MD",
        ] {
            let found = RemoteAddress::parse_typed(text).unwrap();
            let Some(RemoteAddress::Download(found)) = found else { panic!("{text}: {found:?}") };
            assert_eq!(found.url, text);
            assert_eq!(RemoteAddress::Download(found).last_name().unwrap(), "a");
        }
        for (text, name) in [("o/r/a/deep@v1", "deep"), ("o/r", "r"), ("npm:@s/x@1", "x")] {
            assert_eq!(
                RemoteAddress::parse_typed(text).unwrap().unwrap().last_name().unwrap(),
                name
            );
        }
    }

    #[test]
    fn a_path_of_this_machine_is_no_address() {
        for text in [
            "x",
            "./a/b",
            "../a/b",
            "/srv/a/b",
            "~/a",
            "a/b.zip",
            "agents/x.md",
            "",
            "@s/x",
            "ext::sh -c x",
            "a\u{202e}/b",
        ] {
            assert_eq!(RemoteAddress::parse_typed(text).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn addresses_that_are_not_fetched_say_why() {
        for (text, why, hint) in [
            ("git@github.com:o/r.git", "ssh", "https://github.com/o/r.git"),
            ("ssh://git@example.org/o/r.git", "ssh", "https://example.org/o/r.git"),
            ("git://example.org/x", "no address that belljar fetches", "https://"),
            ("file:///etc/passwd", "no address that belljar fetches", ""),
            ("http://example.org/x.git", "not encrypted", "https://"),
            ("https://u:p@example.org/x.git", "password", ""),
            ("https://example.org/", "does not say what it is", ".git"),
            ("https://github.com/o/r/blob/main/a.md", "is a page", ""),
            ("https://github.com/o", "is a page", ""),
            ("o/r@-x", "no name of a branch", ""),
            ("o/r@+main", "no name of a branch", ""),
            ("o/r@a:b", "no name of a branch", ""),
            ("o/r#0123abc4", "all its digits", ""),
            ("o/r/../x", "cannot be used", ""),
            ("o/r//x", "cannot be used", ""),
            ("github:o", "names no repository", ""),
            ("npm:../x", "no name of a package", ""),
            ("npm:x@^1", "names no version", ""),
            ("npm:@s", "no name of a package", ""),
        ] {
            let Err(failure) = RemoteAddress::parse_typed(text) else { panic!("{text}") };
            let hints = failure.hints.join(" ");
            let all = format!("{} {hints}", failure.message);
            assert!(all.contains(why) && hints.contains(hint), "{text}: {all}");
        }
        assert!(GitAddress::from_parts("https://e.org/x.git", Some("a b"), None).is_err());
        assert!(GitAddress::from_parts("https://e.org/x", None, Some("../x")).is_err());
        assert!(GitAddress::from_parts("https://e.org/x", Some("v1"), Some("a")).is_ok());
        assert!(DownloadAddress::from_url("http://10.0.0.1/x.zip").is_err());
    }
}
