//! A server that is a program: the broker starts it behind an OS sandbox of its own, and stdin and stdout
//! have one message per line. One reader serves one call at a time; between calls the program can only fill a
//! pipe.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_os_sandbox::{Program, RunningChild};
use belljar_policy::ShownText;
use belljar_sandbox::OutgoingGate;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::exchange::{ExchangeContext, ExchangeFault, handle_message};
use crate::limits::{FAREWELL, MAX_COMPLAINT, MAX_COMPLAINTS, MAX_MESSAGE};
use crate::message::{RequestIds, RpcMessage, is_of_protocol};
use crate::wants;

/// The time that the host waits for a killed program and its child processes to end.
const END_WAIT: Duration = Duration::from_secs(12);

/// The most lines of stderr that are logged for one failure.
const MAX_LINES: usize = 20;

/// A running program, for one session. Dropping it ends the program and its child processes.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    running: RunningChild,
    /// The ids of requests, counted for each process from the beginning.
    pub(crate) ids: RequestIds,
    /// Bytes of the program's stdout that are buffered.
    heard: Vec<u8>,
    /// The number of these bytes that were already returned as lines.
    given: usize,
    /// The number of these bytes in which the end of a line was searched for.
    looked_at: usize,
    /// True after the program has answered a request.
    answers: bool,
    complaints: StderrTail,
    /// The number of logged lines that are no messages.
    stray_lines: usize,
}

/// Collects the end of the program's stderr. All of stderr is read, so a full pipe does not block the
/// program.
#[derive(Debug)]
struct StderrTail {
    /// The server's name, so a reader finds its section in the settings.
    server: String,
    last: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl ServerProcess {
    /// Starts a program that has this digest. INV-320: there is no other way to start a program, and none
    /// without the OS sandbox.
    pub(crate) async fn start_program(
        gate: &OutgoingGate,
        program: &Program,
        digest: &str,
    ) -> Result<Self, ExchangeFault> {
        let broker = gate.broker().ok_or(ExchangeFault::NoSandbox)?;
        let mut running = match broker.start_program(program, digest).await {
            Ok(running) => running,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(ExchangeFault::OtherProgram);
            }
            Err(error) => return Err(not_started(&error)),
        };
        let complaints = StderrTail::from_stderr(&program.name, running.stderr.take());
        Ok(Self {
            running,
            ids: RequestIds::default(),
            heard: Vec::new(),
            given: 0,
            looked_at: 0,
            answers: false,
            complaints,
            stray_lines: 0,
        })
    }

    /// The present digest of a program.
    pub(crate) async fn identify_program(
        gate: &OutgoingGate,
        program: &Program,
    ) -> Result<String, ExchangeFault> {
        let broker = gate.broker().ok_or(ExchangeFault::NoSandbox)?;
        broker.identify_program(program).await.map_err(|error| not_started(&error))
    }

    /// Sends a request, and reads lines until the answer arrives.
    pub(crate) async fn send_request(
        &mut self,
        gate: &OutgoingGate,
        id: u64,
        request: &Value,
        aside: &mut ExchangeContext<'_>,
    ) -> Result<Value, ExchangeFault> {
        let answer = self.read_answer(gate, id, request, aside).await;
        if matches!(answer, Err(ExchangeFault::Ended | ExchangeFault::Broken(_))) {
            self.complaints.log_lines(gate).await;
        }
        answer
    }

    /// Writes the request, and reads lines until its answer arrives; requests and notifications before the
    /// answer are handled.
    async fn read_answer(
        &mut self,
        gate: &OutgoingGate,
        id: u64,
        request: &Value,
        aside: &mut ExchangeContext<'_>,
    ) -> Result<Value, ExchangeFault> {
        if self.answers && self.has_ended().await {
            // The call was not sent, so it can be made in another process.
            return Err(ExchangeFault::EndedBefore);
        }
        self.write_message(gate, request).await?;
        loop {
            let line = self.next_line(gate).await?;
            // Empty lines count too, so a program that writes nothing else is not read for ever.
            aside.count_message()?;
            tokio::task::coop::consume_budget().await;
            if line.is_empty() {
                continue;
            }
            let messages = match RpcMessage::read_all(&line) {
                Ok(messages) => messages,
                Err(why) => {
                    // Logged for the operator, because programs that log on stdout are a common mistake.
                    self.log_stray(gate, &line);
                    match is_of_protocol(&line) {
                        true => return Err(ExchangeFault::Broken(why)),
                        false => continue,
                    }
                }
            };
            for _ in 1..messages.len() {
                aside.count_message()?;
            }
            for message in messages {
                match message {
                    RpcMessage::Answer(Some(own), answer) if own == id => {
                        self.answers = true;
                        return answer.map_err(ExchangeFault::Rpc);
                    }
                    // A late or forged answer is dropped.
                    RpcMessage::Answer(..) => {}
                    RpcMessage::Asked { id, method, params } => {
                        let answer = aside.answer_request(gate, &id, &method, &params).await?;
                        self.write_message(gate, &answer).await?;
                    }
                    RpcMessage::Told { method, params } => {
                        handle_message(&method, &params, id, aside)
                    }
                }
            }
        }
    }

    /// Logs a line that is no message; only the first lines, because they are enough to find the fault.
    fn log_stray(&mut self, gate: &OutgoingGate, line: &[u8]) {
        if self.stray_lines < MAX_LINES {
            self.stray_lines += 1;
            let wrote = String::from_utf8_lossy(line);
            let wrote = ShownText::clip_line(&wrote, 200);
            gate.log_line("stdout", &format!("not a message, so it is passed over: `{wrote}`"));
        }
    }

    /// Writes one message as a line.
    pub(crate) async fn write_message(
        &mut self,
        gate: &OutgoingGate,
        message: &Value,
    ) -> Result<(), ExchangeFault> {
        let line = format!("{message}\n");
        gate.bill_sent(line.len())?;
        let stdin = self.running.stdin.as_mut().ok_or(ExchangeFault::Ended)?;
        stdin.write_all(line.as_bytes()).await.map_err(|_| ExchangeFault::Ended)
    }

    /// Ends the program with its child processes; unless `at_once` is true, closes its input first and waits
    /// a moment.
    pub(crate) async fn end_process(mut self, at_once: bool) {
        drop(self.running.stdin.take());
        if !at_once {
            let _ = timeout(FAREWELL, self.running.wait()).await;
        }
        self.running.kill();
        let _ = timeout(END_WAIT, self.running.wait()).await;
    }

    /// True if the program has ended; does not wait.
    async fn has_ended(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.running.wait() => true,
            () = std::future::ready(()) => false,
        }
    }

    /// The next line, without blanks at its end.
    async fn next_line(&mut self, gate: &OutgoingGate) -> Result<Vec<u8>, ExchangeFault> {
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
            // Returned bytes are removed once before each read. If they were moved for each line, many short
            // lines before a long one would cost minutes.
            self.heard.drain(..self.given);
            self.given = 0;
            self.looked_at = self.heard.len();
            if self.heard.len() > MAX_MESSAGE {
                return Err(ExchangeFault::Broken("a message is too long"));
            }
            let stdout = self.running.stdout.as_mut().ok_or(ExchangeFault::Ended)?;
            match stdout.read_buf(&mut self.heard).await {
                Ok(0) | Err(_) => return Err(ExchangeFault::Ended),
                Ok(count) => gate.bill_received(count)?,
            }
        }
    }
}

fn not_started(error: &std::io::Error) -> ExchangeFault {
    ExchangeFault::NotStarted(ShownText::clip_line(&error.to_string(), 1_000).to_string())
}

impl StderrTail {
    /// Starts a task that reads stderr and keeps its last bytes.
    fn from_stderr(server: &str, stderr: Option<impl AsyncRead + Unpin + Send + 'static>) -> Self {
        let last = Arc::<Mutex<Vec<u8>>>::default();
        let kept = Arc::clone(&last);
        let reader = tokio::spawn(async move {
            let Some(mut stderr) = stderr else { return };
            let (mut piece, mut all) = (vec![0; 8 << 10], 0_usize);
            // Beyond the limit the stream is closed, so a program that only writes to stderr is not read for
            // ever.
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

    /// Adds the last lines of stderr to the call's log, which is part of its receipt.
    async fn log_lines(&mut self, gate: &OutgoingGate) {
        // If the program has ended, its stderr closes at once; otherwise it may write more later.
        let _ = timeout(FAREWELL, &mut self.reader).await;
        let bytes = std::mem::take(&mut *self.last.lock().unwrap_or_else(PoisonError::into_inner));
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let skipped = lines.len().saturating_sub(MAX_LINES);
        for line in lines.iter().skip(skipped) {
            gate.log_line("stderr", &ShownText::clip_line(line, 1_000).to_string());
        }
        for key in wants::suggest_keys(&text) {
            let section = format!("under `[mcp.{}]` in `belljar.toml`", self.server);
            gate.log_line("hint", &format!("{} {section}", key.describe_fix()));
        }
    }
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
