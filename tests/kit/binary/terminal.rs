//! A terminal with the binary in it, and a person who types there.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::pty::{Winsize, openpty};

use super::World;

/// The terminal. Its program is killed with it.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    shown: Receiver<Vec<u8>>,
    /// All that was shown.
    bytes: Vec<u8>,
    /// Where the part begins that nobody has waited for.
    from: usize,
}

impl Terminal {
    pub(crate) fn start(world: &World, args: &[&str]) -> Self {
        let size = Winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        let ends = openpty(Some(&size), None).unwrap();
        let end = || Stdio::from(ends.slave.try_clone().unwrap());
        let mut command = world.command(args);
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(ends.slave);
        let keys = File::from(ends.master);
        let mut screen = keys.try_clone().unwrap();
        let (sender, shown) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It fails once the program has ended.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keys, shown, bytes: Vec::new(), from: 0 }
    }

    /// Types this, `\n` for the key of a line's end.
    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown, behind what was waited for before.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) {
        loop {
            let shown = plain(&self.bytes);
            if let Some(at) = shown.get(self.from..).and_then(|rest| rest.find(text)) {
                self.from += at + text.len();
                return;
            }
            match self.shown.recv_timeout(Duration::from_secs(60)) {
                Ok(bytes) => self.bytes.extend(bytes),
                Err(_) => panic!("`{text}` never comes:\n{shown}"),
            }
        }
    }

    /// All that was shown until the program ended, and its exit code.
    pub(crate) fn ends(mut self) -> (i32, String) {
        while let Ok(bytes) = self.shown.recv_timeout(Duration::from_secs(60)) {
            self.bytes.extend(bytes);
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (code, plain(&self.bytes))
    }
}

/// The text without escape sequences and returns of the cursor.
fn plain(bytes: &[u8]) -> String {
    let shown = String::from_utf8_lossy(bytes);
    let mut text = String::new();
    let mut rest = shown.chars();
    while let Some(char) = rest.next() {
        match char {
            // `ESC [ ... LETTER`
            '\u{1b}' => drop(rest.find(char::is_ascii_alphabetic)),
            '\r' => {}
            char => text.push(char),
        }
    }
    text
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
