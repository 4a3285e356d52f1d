//! A real `belljar serve` among callers who all misbehave at once, and one neighbour who does not.
//!
//! `red` leaves bodies unfinished, reads slowly, says nothing, guesses keys, comes back to streams
//! again and again, begins turns that fail and sends numbers that are none. `blue` goes on asking.
//! What decides: the server's memory, and that `blue` was answered. Times are printed only.

use std::fmt;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

/// Memory beyond the start while all go on, in MiB: what one tenant may have in flight (128), the
/// buffers of all connections, and the turns that run.
pub(crate) const PEAK_MIB: u64 = 448;

/// Memory beyond the start a while after they have gone, in MiB: the server gives back what is free
/// every ten seconds. Of eight seconds nothing was seen to be left, of one minute 41, of ten 45: pages
/// of which a part is in use, and what each connection to the database keeps of it.
pub(crate) const LEFT_MIB: u64 = 64;

/// How long it may take to come back.
const COMES_BACK: Duration = Duration::from_secs(60);

/// No answer to the neighbour takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A caller's pause before it begins again.
const PAUSE: Duration = Duration::from_millis(20);

/// Callers of each kind.
const EACH: usize = 40;

/// Where the callers are: the neighbour and the guesser have addresses of their own.
const RED: [u8; 4] = [127, 0, 0, 1];
const BLUE: [u8; 4] = [127, 0, 0, 2];
const GUESSER: [u8; 4] = [127, 0, 0, 3];

const SETTINGS: &str = "
[models.main]
kind = 'scripted'
model = 'transcript.yaml'
[server]
requests_per_second = 100000
tenant_storage_mib = 256
";

/// `fails` has nothing more to say after its first turn, `tells` always has.
const TRANSCRIPT: &str = "
transcript: 1
each_run: true
agents:
  - agent: tells
    turns: [{say: once upon a time}]
  - agent: fails
    turns: [{say: x, expect: {last_user_contains: never}}]
";

/// The observations of a soak. Memory in MiB, times in microseconds.
#[derive(Debug)]
pub(crate) struct Soak {
    pub(crate) start: u64,
    pub(crate) peak: u64,
    pub(crate) end: u64,
    /// Requests of those who misbehave, and those of the neighbour.
    pub(crate) calls: u64,
    pub(crate) answers: usize,
    /// The neighbour's 99th percentile alone, and among the others.
    pub(crate) alone: u64,
    pub(crate) among: u64,
    /// Bytes of the database in the end, in MiB.
    pub(crate) stored: u64,
}

/// The server, killed with this.
struct Server {
    child: Child,
    address: std::net::SocketAddr,
    home: tempfile::TempDir,
}

/// Who calls.
#[derive(Clone)]
struct Caller {
    address: std::net::SocketAddr,
    from: [u8; 4],
    key: Arc<str>,
    /// `red`'s session with much in it.
    session: Arc<str>,
    calls: Arc<AtomicU64>,
}

/// Lets all misbehave for a time.
pub(crate) async fn run(binary: &Path, time: Duration) -> anyhow::Result<Soak> {
    let home = tempfile::tempdir()?;
    let keys = prepare(binary, home.path())?;
    let server = Server::start(binary, home)?;
    let [red, blue] = keys.map(|key| Arc::from(key.as_str()));
    let caller = |from, key: &Arc<str>, session: &str| Caller {
        address: server.address,
        from,
        key: Arc::clone(key),
        session: session.into(),
        calls: Arc::default(),
    };
    let blue = caller(BLUE, &blue, "");
    let session = fill(&caller(RED, &red, "")).await?;
    let red = caller(RED, &red, &session);
    let mut alone = neighbour(&blue, Duration::from_secs(2)).await?;
    let start = server.resident()?;
    let stop = CancellationToken::new();
    let tasks = misbehave(&red, &stop);
    let watched = tokio::spawn(peak(server.child.id(), stop.clone()));
    let among = neighbour(&blue, time).await;
    stop.cancel();
    for task in tasks {
        // Cut off where they are.
        task.abort();
        let _ = task.await;
    }
    let peak = watched.await??;
    let mut among = among.context("the neighbour was not answered")?;
    let end = settled(&server, start).await?;
    neighbour(&blue, Duration::from_millis(200)).await.context("and not after it")?;
    let bytes = std::fs::metadata(server.home.path().join("sessions/store/belljar.db"))?.len();
    Ok(Soak {
        start,
        peak,
        end,
        calls: red.calls.load(Ordering::Relaxed),
        answers: among.len(),
        alone: p99(&mut alone),
        among: p99(&mut among),
        stored: bytes >> 20,
    })
}

impl Soak {
    /// Whether the memory stayed within its bounds.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let Self { start, peak, end, .. } = self;
        ensure!(*peak <= start + PEAK_MIB, "more than {PEAK_MIB} MiB beyond the start: {self}");
        ensure!(*end <= start + LEFT_MIB, "more than {LEFT_MIB} MiB were left: {self}");
        Ok(())
    }
}

impl fmt::Display for Soak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, peak, end, calls, answers, alone, among, stored } = self;
        write!(
            f,
            "{start} MiB at the start, {peak} at the peak, {end} in the end; {calls} calls, \
             {answers} answers to the neighbour, p99 {among} us, {alone} us alone; {stored} MiB \
             stored"
        )
    }
}

/// A home with two tenants; a key of each.
fn prepare(binary: &Path, home: &Path) -> anyhow::Result<[String; 2]> {
    std::fs::write(home.join("belljar.toml"), SETTINGS)?;
    std::fs::write(home.join("transcript.yaml"), TRANSCRIPT)?;
    std::fs::create_dir_all(home.join("work"))?;
    let mut keys = Vec::new();
    for tenant in ["red", "blue"] {
        belljar(binary, home, &["tenants", "add", tenant])?;
        let agents =
            home.join("sessions/tenants").join(id(binary, home, tenant)?).join("home/agents");
        std::fs::create_dir_all(&agents)?;
        for name in ["tells", "fails"] {
            let text = format!("---\nname: {name}\ndescription: d\ntools: []\n---\nBe brief.\n");
            std::fs::write(agents.join(format!("{name}.md")), text)?;
        }
        let create = ["keys", "create", "--tenant", tenant, "--scope", "member", "--name", "soak"];
        keys.push(belljar(binary, home, &create)?.trim().to_owned());
    }
    keys.try_into().ok().context("two keys")
}

/// The name of a tenant's directory.
fn id(binary: &Path, home: &Path, tenant: &str) -> anyhow::Result<String> {
    let listed = belljar(binary, home, &["tenants", "list", "--json"])?;
    let tenants: Vec<serde_json::Value> = serde_json::from_str(&listed)?;
    let own = tenants.iter().find(|one| one["name"] == tenant);
    let id = own.and_then(|own| own["id"].as_str()).context("it is not listed")?;
    Ok(id.to_owned())
}

fn command(binary: &Path, home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(args).env("BELLJAR_HOME", home).current_dir(home.join("work"));
    command
}

fn belljar(binary: &Path, home: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = command(binary, home, args).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

impl Server {
    fn start(binary: &Path, home: tempfile::TempDir) -> anyhow::Result<Self> {
        let mut child =
            command(binary, home.path(), &["--quiet", "serve", "--listen", "127.0.0.1:0"])
                .stdout(Stdio::piped())
                .stderr(std::fs::File::create(home.path().join("log"))?)
                .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("it has a stdout")?).read_line(&mut line)?;
        let Some(address) = line.trim().strip_prefix("listening on http://") else {
            child.wait()?;
            bail!("it did not start: {}", std::fs::read_to_string(home.path().join("log"))?);
        };
        Ok(Self { address: address.parse()?, child, home })
    }

    fn resident(&self) -> anyhow::Result<u64> {
        resident(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Memory of a process that is resident, in MiB.
fn resident(process: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.split_whitespace().next().context("no number")?.parse()?;
    Ok(kib >> 10)
}

/// The most memory until `stop`.
async fn peak(process: u32, stop: CancellationToken) -> anyhow::Result<u64> {
    let mut most = 0;
    while !stop.is_cancelled() {
        most = most.max(resident(process)?);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(most)
}

/// The memory once it is near its start, or after a while.
async fn settled(server: &Server, start: u64) -> anyhow::Result<u64> {
    let begun = Instant::now();
    loop {
        let now = server.resident()?;
        if now <= start + LEFT_MIB || begun.elapsed() > COMES_BACK {
            return Ok(now);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// A session with some megabytes in it, for those who read slowly.
async fn fill(red: &Caller) -> anyhow::Result<String> {
    let body = chat("tells", &"long ".repeat(200_000));
    let (status, text) = red.ask("POST", "/v1/chat", &body).await?;
    ensure!(status == 200, "{status}: {text}");
    let rest = text.split_once("\"session\":\"").context("no session")?.1;
    Ok(rest.split('"').next().unwrap_or_default().to_owned())
}

fn chat(agent: &str, text: &str) -> String {
    format!("{{\"agent\": \"{agent}\", \"text\": \"{text}\"}}")
}

/// Asks until the time is over; how long each answer took. Each has to be one.
async fn neighbour(blue: &Caller, time: Duration) -> anyhow::Result<Vec<u64>> {
    let begun = Instant::now();
    let (mut took, mut count) = (Vec::new(), 0_u64);
    while begun.elapsed() < time {
        let (method, path, body) = match count % 20 {
            0 => ("POST", "/v1/chat", chat("tells", "tell")),
            1 => ("GET", "/healthz", String::new()),
            _ => ("GET", "/v1/sessions", String::new()),
        };
        let asked = Instant::now();
        let answer = tokio::time::timeout(PATIENCE, blue.ask(method, path, &body)).await;
        let (status, text) = answer.with_context(|| format!("{path} was not answered"))??;
        ensure!(status == 200, "{path}: {status} {text}");
        took.push(u64::try_from(asked.elapsed().as_micros())?);
        count += 1;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(took)
}

fn p99(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times.get(times.len().saturating_mul(99) / 100).or(times.last()).copied().unwrap_or(0)
}

type Task = tokio::task::JoinHandle<()>;

/// How somebody misbehaves.
#[derive(Debug, Clone, Copy)]
enum Way {
    UnfinishedBody,
    SlowReader,
    Silent,
    Stream,
    UnfinishedMessage,
    GuessAKey,
    FailingTurn,
    HugeNumbers,
}

const MANY: [Way; 5] =
    [Way::UnfinishedBody, Way::SlowReader, Way::Silent, Way::Stream, Way::UnfinishedMessage];

/// Those whose every call makes much work: fewer at a time.
const FEW: [Way; 3] = [Way::GuessAKey, Way::FailingTurn, Way::HugeNumbers];

/// Starts everybody.
fn misbehave(red: &Caller, stop: &CancellationToken) -> Vec<Task> {
    let many = MANY.into_iter().flat_map(|way| std::iter::repeat_n(way, EACH));
    let few = FEW.into_iter().flat_map(|way| std::iter::repeat_n(way, EACH / 10));
    many.chain(few).map(|way| again(red, stop, way)).collect()
}

/// Misbehaves again and again; what comes of it is not looked at.
fn again(red: &Caller, stop: &CancellationToken, way: Way) -> Task {
    let (red, stop) = (red.clone(), stop.clone());
    tokio::spawn(async move {
        while !stop.is_cancelled() {
            red.calls.fetch_add(1, Ordering::Relaxed);
            let _ = red.misbehave(way).await;
            tokio::time::sleep(PAUSE).await;
        }
    })
}

impl Caller {
    async fn misbehave(&self, way: Way) -> anyhow::Result<()> {
        match way {
            Way::UnfinishedBody => {
                let mut stream = self.begin("POST", "/v1/chat", "", 4 << 20).await?;
                let _ = stream.write_all(&vec![b'x'; 3 << 20]).await;
                linger(&mut stream).await;
            }
            Way::SlowReader => {
                let path = format!("/v1/sessions/{}/messages?full=true", self.session);
                let mut stream = self.begin("GET", &path, "", 0).await?;
                linger(&mut stream).await;
            }
            Way::Silent => linger(&mut self.connect().await?).await,
            Way::Stream => {
                let path = format!("/v1/sessions/{}/events", self.session);
                let mut stream = self.begin("GET", &path, "last-event-id: 1\r\n", 0).await?;
                let _some = stream.read(&mut [0; 1_000]).await?;
            }
            Way::UnfinishedMessage => {
                let lines = "upgrade: websocket\r\nconnection: upgrade\r\n\
                    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
                let mut stream = self.begin("GET", "/v1/ws", lines, 0).await?;
                let _some = stream.read(&mut [0; 1_000]).await?;
                // A text of a mebibyte, of which all but its end comes.
                let mut frame = vec![0x81, 0x80 | 127];
                frame.extend((1_u64 << 20).to_be_bytes());
                frame.extend([0; 4]);
                frame.resize(1_000_000, b'x');
                let _ = stream.write_all(&frame).await;
                linger(&mut stream).await;
            }
            Way::GuessAKey => {
                let guesser = Self { from: GUESSER, key: "bj_0".into(), ..self.clone() };
                guesser.ask("GET", "/v1/audit", "").await?;
            }
            Way::FailingTurn => {
                self.ask("POST", "/v1/chat", &chat("fails", &"fail ".repeat(200_000))).await?;
            }
            Way::HugeNumbers => {
                let session = &self.session;
                for path in [
                    format!("/v1/sessions/{session}/messages?before={}", i64::MIN),
                    format!("/v1/sessions/{session}/events?follow=false&after={}", i64::MAX),
                    format!("/v1/sessions/{session}/receipts?limit={}", u64::MAX),
                ] {
                    self.ask("GET", &path, "").await?;
                }
            }
        }
        Ok(())
    }

    async fn connect(&self) -> anyhow::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.from, 0).into())?;
        Ok(socket.connect(self.address).await?)
    }

    /// A connection with the head of a request.
    async fn begin(
        &self,
        method: &str,
        path: &str,
        lines: &str,
        length: usize,
    ) -> anyhow::Result<TcpStream> {
        let mut stream = self.connect().await?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n{lines}\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n",
            self.address, self.key
        );
        stream.write_all(head.as_bytes()).await?;
        Ok(stream)
    }

    /// A whole request; status and body of its answer.
    async fn ask(&self, method: &str, path: &str, body: &str) -> anyhow::Result<(u16, String)> {
        let mut stream = self.begin(method, path, "connection: close\r\n", body.len()).await?;
        // Who refuses a body may close before all of it is there.
        let _ = stream.write_all(body.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).context("no answer")?.parse()?;
        Ok((status, answer.split_once("\r\n\r\n").unwrap_or_default().1.to_owned()))
    }
}

/// Takes a little of what comes, now and then, until the server closes or a few seconds are over.
async fn linger(stream: &mut TcpStream) {
    let mut some = [0; 512];
    for _ in 0..20 {
        match stream.try_read(&mut some) {
            Ok(0) => return,
            _ => tokio::time::sleep(Duration::from_millis(150)).await,
        }
    }
}
