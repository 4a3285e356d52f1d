//! A server that is a program: started by the broker behind a separate wall, with one message on each line of
//! stdin and stdout. One reader serves one call at a time; between calls the program can only fill a pipe.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_os_sandbox::{Program, Running};
use belljar_policy::Shown;
use belljar_sandbox::Outgoing;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::exchange::{Aside, Fault, told};
use crate::limits::{FAREWELL, MAX_COMPLAINT, MAX_COMPLAINTS, MAX_MESSAGE};
use crate::message::{Ids, Message, is_of_protocol};
use crate::wants;

/// How long the host waits for the end of a killed program and its descendants.
const END_WAIT: Duration = Duration::from_secs(12);

/// Lines of stderr that are logged for one failure.
const MAX_LINES: usize = 20;

/// A running program, for one session. Dropping `Process` ends the program and its descendants.
#[derive(Debug)]
pub(crate) struct Process {
    running: Running,
    /// Counted anew for each process.
    pub(crate) ids: Ids,
    /// Bytes of the program's stdout, in whole lines or not.
    heard: Vec<u8>,
    /// The number of bytes returned as lines.
    given: usize,
    /// The number of bytes searched for the end of a line.
    looked_at: usize,
    /// The program has answered a request.
    answers: bool,
    complaints: Complaints,
    /// The number of logged lines without a message.
    stray_lines: usize,
}

/// The end of the program's stderr. All of stderr is read, so that a full pipe does not block the program.
#[derive(Debug)]
struct Complaints {
    /// The server's name, by which a reader finds its section in the settings.
    server: String,
    last: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Process {
    /// Starts a program with this digest. INV-320: there is no other way to start a program, and none without
    /// the OS sandbox.
    pub(crate) async fn start(
        gate: &Outgoing,
        program: &Program,
        digest: &str,
    ) -> Result<Self, Fault> {
        let broker = gate.broker().ok_or(Fault::NoSandbox)?;
        let mut running = match broker.program(program, digest).await {
            Ok(running) => running,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(Fault::OtherProgram);
            }
            Err(error) => return Err(not_started(&error)),
        };
        let complaints = Complaints::of(&program.name, running.stderr.take());
        Ok(Self {
            running,
            ids: Ids::default(),
            heard: Vec::new(),
            given: 0,
            looked_at: 0,
            answers: false,
            complaints,
            stray_lines: 0,
        })
    }

    /// The digest that a program has now.
    pub(crate) async fn identify(gate: &Outgoing, program: &Program) -> Result<String, Fault> {
        let broker = gate.broker().ok_or(Fault::NoSandbox)?;
        broker.identify(program).await.map_err(|error| not_started(&error))
    }

    /// Sends a request, and reads lines until the answer arrives.
    pub(crate) async fn ask(
        &mut self,
        gate: &Outgoing,
        id: u64,
        request: &Value,
        aside: &mut Aside<'_>,
    ) -> Result<Value, Fault> {
        let answer = self.answered(gate, id, request, aside).await;
        if matches!(answer, Err(Fault::Ended | Fault::Broken(_))) {
            self.complaints.log(gate).await;
        }
        answer
    }

    async fn answered(
        &mut self,
        gate: &Outgoing,
        id: u64,
        request: &Value,
        aside: &mut Aside<'_>,
    ) -> Result<Value, Fault> {
        if self.answers && self.has_ended().await {
            // The call was not made: another process takes its place.
            return Err(Fault::EndedBefore);
        }
        self.tell(gate, request).await?;
        loop {
            let line = self.line(gate).await?;
            // Empty lines too: a program that writes nothing else is not read for ever.
            aside.count()?;
            tokio::task::coop::consume_budget().await;
            if line.is_empty() {
                continue;
            }
            let messages = match Message::read_all(&line) {
                Ok(messages) => messages,
                Err(why) => {
                    // For the operator: a program that logs on stdout is a common mistake.
                    self.log_stray(gate, &line);
                    match is_of_protocol(&line) {
                        true => return Err(Fault::Broken(why)),
                        false => continue,
                    }
                }
            };
            for _ in 1..messages.len() {
                aside.count()?;
            }
            for message in messages {
                match message {
                    Message::Answer(Some(own), answer) if own == id => {
                        self.answers = true;
                        return answer.map_err(Fault::Rpc);
                    }
                    // A late or forged answer is dropped.
                    Message::Answer(..) => {}
                    Message::Asked { id, method, params } => {
                        let answer = aside.answer(gate, &id, &method, &params).await?;
                        self.tell(gate, &answer).await?;
                    }
                    Message::Told { method, params } => told(&method, &params, id, aside),
                }
            }
        }
    }

    /// Logs a line that is no message. Only the first lines, because these are enough to find the fault.
    fn log_stray(&mut self, gate: &Outgoing, line: &[u8]) {
        if self.stray_lines < MAX_LINES {
            self.stray_lines += 1;
            let wrote = String::from_utf8_lossy(line);
            let wrote = Shown::clipped(&wrote, 200);
            gate.log("stdout", &format!("not a message, so it is passed over: `{wrote}`"));
        }
    }

    /// Writes one line.
    pub(crate) async fn tell(&mut self, gate: &Outgoing, message: &Value) -> Result<(), Fault> {
        let line = format!("{message}\n");
        gate.sent(line.len())?;
        let stdin = self.running.stdin.as_mut().ok_or(Fault::Ended)?;
        stdin.write_all(line.as_bytes()).await.map_err(|_| Fault::Ended)
    }

    /// Ends the program with its descendants: first by closing its input, if there is time.
    pub(crate) async fn end(mut self, at_once: bool) {
        drop(self.running.stdin.take());
        if !at_once {
            let _ = timeout(FAREWELL, self.running.wait()).await;
        }
        self.running.kill();
        let _ = timeout(END_WAIT, self.running.wait()).await;
    }

    async fn has_ended(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.running.wait() => true,
            () = std::future::ready(()) => false,
        }
    }

    /// The next line, without the spaces at its end.
    async fn line(&mut self, gate: &Outgoing) -> Result<Vec<u8>, Fault> {
        loop {
            let fresh = self.heard.get(self.looked_at..).unwrap_or_default();
            if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
                let end = self.looked_at.saturating_add(end);
                let line = self.heard.get(self.given..end).unwrap_or_default().trim_ascii_end();
                let line = line.to_vec();
                self.given = end.saturating_add(1);
                self.looked_at = self.given;
                return Ok(line);
            }
            // Returned bytes are removed once before each reading, because a move for each line would make
            // many short lines before a long one cost minutes.
            self.heard.drain(..self.given);
            self.given = 0;
            self.looked_at = self.heard.len();
            if self.heard.len() > MAX_MESSAGE {
                return Err(Fault::Broken("a message is too long"));
            }
            let stdout = self.running.stdout.as_mut().ok_or(Fault::Ended)?;
            match stdout.read_buf(&mut self.heard).await {
                Ok(0) | Err(_) => return Err(Fault::Ended),
                Ok(count) => gate.received(count)?,
            }
        }
    }
}

fn not_started(error: &std::io::Error) -> Fault {
    Fault::NotStarted(Shown::clipped(&error.to_string(), 1_000).to_string())
}

impl Complaints {
    fn of(server: &str, stderr: Option<impl AsyncRead + Unpin + Send + 'static>) -> Self {
        let last = Arc::<Mutex<Vec<u8>>>::default();
        let kept = Arc::clone(&last);
        let reader = tokio::spawn(async move {
            let Some(mut stderr) = stderr else { return };
            let (mut piece, mut all) = (vec![0; 8 << 10], 0_usize);
            // Past the bound the stream is closed: a program that does nothing else is not read for ever.
            while let Ok(count @ 1..) = stderr.read(&mut piece).await
                && all < MAX_COMPLAINTS
            {
                all = all.saturating_add(count);
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(piece.get(..count).unwrap_or_default());
                let past = kept.len().saturating_sub(MAX_COMPLAINT);
                kept.drain(..past);
            }
        });
        Self { server: server.to_owned(), last, reader }
    }

    /// Adds the last lines of stderr to the call's log, which is in its receipt.
    async fn log(&mut self, gate: &Outgoing) {
        // An ended program's stderr closes at once; a living program may write more later.
        let _ = timeout(FAREWELL, &mut self.reader).await;
        let bytes = std::mem::take(&mut *self.last.lock().unwrap_or_else(PoisonError::into_inner));
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let skipped = lines.len().saturating_sub(MAX_LINES);
        for line in lines.iter().skip(skipped) {
            gate.log("stderr", &Shown::clipped(line, 1_000).to_string());
        }
        for key in wants::keys(&text) {
            let section = format!("under `[mcp.{}]` in `belljar.toml`", self.server);
            gate.log("hint", &format!("{} {section}", key.hint()));
        }
    }
}

impl Drop for Complaints {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
