//! One line of `ls -l`.

use super::time;
use bashkit::{FileType, Metadata};
use std::time::SystemTime;

/// Who owns everything, since WASI has no owners.
const OWNER: &str = "agent agent";

/// `-rw-r--r-- 1 agent agent  5 Jan  1  2020`, its size right-aligned in `width`.
pub(super) fn line(
    found: &Metadata,
    size: &str,
    width: usize,
    now: SystemTime,
    full: bool,
) -> String {
    let time = if full { time::long(found.modified) } else { time::short(found.modified, now) };
    format!("{} 1 {OWNER} {size:>width$} {time}", mode(found))
}

fn mode(found: &Metadata) -> String {
    let kind = match found.file_type {
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        FileType::File => '-',
    };
    // A link's own bits say nothing; Linux shows all of them set.
    let bits = if found.file_type.is_symlink() { 0o777 } else { found.mode };
    let letters = "rwxrwxrwx".chars().enumerate();
    let bits = letters.map(|(at, letter)| if bits & (0o400 >> at) == 0 { '-' } else { letter });
    std::iter::once(kind).chain(bits).collect()
}

/// Bytes, or the shortest form of them.
pub(super) fn size(bytes: u64, human: bool) -> String {
    if !human || bytes < 1024 {
        return bytes.to_string();
    }
    // Integers only: tenths, rounded up as GNU does.
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = "";
    for next in ["K", "M", "G", "T"] {
        if tenths < 10_240 {
            break;
        }
        tenths = tenths.div_ceil(1024);
        unit = next;
    }
    if tenths < 100 {
        format!("{}.{}{unit}", tenths / 10, tenths % 10)
    } else {
        format!("{}{unit}", tenths.div_ceil(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up() {
        for (bytes, expected) in
            [(5, "5"), (1024, "1.0K"), (1500, "1.5K"), (10_240, "10K"), (3 << 20, "3.0M")]
        {
            assert_eq!(size(bytes, true), expected);
        }
        assert_eq!(size(1500, false), "1500");
    }

    #[test]
    fn a_line_has_its_mode_size_and_time() {
        let found = Metadata {
            file_type: FileType::Directory,
            size: 0,
            mode: 0o755,
            modified: SystemTime::UNIX_EPOCH,
            created: SystemTime::UNIX_EPOCH,
        };
        let now = SystemTime::now();
        assert_eq!(line(&found, "7", 3, now, false), "drwxr-xr-x 1 agent agent   7 Jan  1  1970");
    }
}
