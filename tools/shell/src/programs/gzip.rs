//! `gzip`, `gunzip` and `zcat`.

use super::options::{Options, unknown};
use super::paths::{absolute, reason};
use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};
use flate2::Compression;
use flate2::read::{GzEncoder, MultiGzDecoder};
use std::io::Read;

/// Bytes that one file may unpack to: a bomb has to fail before the memory does.
const MAX_UNPACKED: u64 = 32 << 20;

const ENDING: &str = ".gz";

/// One program under three names.
pub(super) enum Gzip {
    Pack,
    Unpack,
    Show,
}

#[derive(Default)]
struct Mode {
    unpack: bool,
    stdout: bool,
    test: bool,
    keep: bool,
    force: bool,
    level: u32,
}

impl Mode {
    fn read(
        program: &Gzip,
        given: &[(String, Option<String>)],
    ) -> std::result::Result<Mode, String> {
        let unpack = !matches!(program, Gzip::Pack);
        let stdout = matches!(program, Gzip::Show);
        let mut mode = Mode { unpack, stdout, level: 6, ..Mode::default() };
        for (option, _) in given {
            match option.as_str() {
                "d" | "decompress" | "uncompress" => mode.unpack = true,
                "c" | "stdout" | "to-stdout" => mode.stdout = true,
                "t" | "test" => (mode.test, mode.unpack) = (true, true),
                "k" | "keep" => mode.keep = true,
                "f" | "force" => mode.force = true,
                "fast" => mode.level = 1,
                "best" => mode.level = 9,
                "n" | "N" | "q" | "v" | "no-name" | "name" | "quiet" | "verbose" => {}
                digit => match digit.parse() {
                    Ok(level @ 1..=9) => mode.level = level,
                    _ => return Err(unknown("gzip", digit)),
                },
            }
        }
        Ok(mode)
    }

    fn convert(&self, bytes: &[u8]) -> std::result::Result<Vec<u8>, String> {
        let mut made = Vec::new();
        let read = if self.unpack {
            MultiGzDecoder::new(bytes).take(MAX_UNPACKED + 1).read_to_end(&mut made)
        } else {
            GzEncoder::new(bytes, Compression::new(self.level)).read_to_end(&mut made)
        };
        match read {
            Ok(_) if self.unpack && made.len() as u64 > MAX_UNPACKED => {
                Err(format!("unpacks to more than {MAX_UNPACKED} bytes"))
            }
            Ok(_) => Ok(made),
            Err(_) => Err("not in gzip format".to_owned()),
        }
    }
}

#[async_trait]
impl Builtin for Gzip {
    async fn execute(&self, context: BuiltinContext<'_>) -> Result<ExecResult> {
        let Options { given, mut operands } = Options::read(context.args, &[]);
        let mode = match Mode::read(self, &given) {
            Ok(mode) => mode,
            Err(text) => return Ok(ExecResult::err(text, 1)),
        };
        if operands.is_empty() {
            operands.push("-".to_owned());
        }
        let (mut stdout, mut stderr) = (Vec::new(), String::new());
        for given in &operands {
            if let Err(why) = one(&context, &mode, given, &mut stdout).await {
                stderr.push_str(&format!("gzip: {given}: {why}\n"));
            }
        }
        let code = i32::from(!stderr.is_empty());
        Ok(ExecResult { stdout: stdout.into(), ..ExecResult::err(stderr, code) })
    }
}

async fn one(
    context: &BuiltinContext<'_>,
    mode: &Mode,
    given: &str,
    stdout: &mut Vec<u8>,
) -> std::result::Result<(), String> {
    if given == "-" {
        let bytes = context.stdin.map(|data| data.as_bytes()).unwrap_or_default();
        let made = mode.convert(bytes)?;
        if !mode.test {
            stdout.extend(made);
        }
        return Ok(());
    }
    let from = absolute(context.cwd, given);
    if context.fs.stat(&from).await.is_ok_and(|found| found.file_type.is_dir()) {
        return Err("is a directory -- ignored".to_owned());
    }
    let bytes = context.fs.read_file(&from).await.map_err(|error| reason(&error))?;
    let in_place = !(mode.stdout || mode.test);
    let target = match (mode.unpack, given.strip_suffix(ENDING)) {
        _ if !in_place => None,
        (true, None) => match given.strip_suffix(".tgz") {
            Some(stem) => Some(format!("{stem}.tar")),
            None => return Err("unknown suffix -- ignored".to_owned()),
        },
        (true, Some(stem)) => Some(stem.to_owned()),
        (false, Some(_)) if !mode.force => {
            return Err(format!("already has {ENDING} suffix -- unchanged"));
        }
        (false, _) => Some(format!("{given}{ENDING}")),
    };
    let made = mode.convert(&bytes)?;
    let Some(target) = target else {
        if mode.stdout {
            stdout.extend(made);
        }
        return Ok(());
    };
    let to = absolute(context.cwd, &target);
    if !mode.force && context.fs.lstat(&to).await.is_ok() {
        return Err(format!("{target} already exists; not overwritten"));
    }
    context.fs.write_file(&to, &made).await.map_err(|error| reason(&error))?;
    if !mode.keep {
        context.fs.remove(&from, false).await.map_err(|error| reason(&error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_unpacks_and_a_bomb_does_not() {
        let (pack, unpack) =
            (Mode { level: 9, ..Mode::default() }, Mode { unpack: true, ..Mode::default() });
        assert_eq!(unpack.convert(&pack.convert(b"text").unwrap()).unwrap(), b"text");
        let bomb = pack.convert(&vec![0; usize::try_from(MAX_UNPACKED).unwrap() + 1]).unwrap();
        assert!(unpack.convert(&bomb).unwrap_err().contains("unpacks to more"));
        assert!(unpack.convert(b"no").is_err());
    }
}
