//! The HTTP peer: one request a connection, and whatever reply the test scripts.

use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use crate::{Connection, HttpRequest, Reply};

/// The time after which a test that waits for a peer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An act on a request: writes to the connection, and returns whether the client stayed.
pub(crate) type Act = dyn Fn(&HttpRequest, &mut dyn Connection) -> bool + Send + Sync;

type Wrap = dyn Fn(TcpStream) -> Option<Box<dyn Connection>> + Send + Sync;

/// An HTTP server on this machine that keeps the requests. Its threads end with the test's process.
pub struct HttpPeer {
    /// The address on which the peer listens.
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    act: Mutex<Arc<Act>>,
    requests: Mutex<Vec<HttpRequest>>,
    arrived: Condvar,
    connections: AtomicUsize,
    left: AtomicUsize,
}

/// A plan of a peer that listens elsewhere, or not in clear text.
pub struct HttpPeerBuilder {
    address: String,
    wrap: Box<Wrap>,
    /// Whether each write is a packet of its own; a flood is faster without.
    pub(crate) is_prompt: bool,
}

impl HttpPeerBuilder {
    /// Listens on this address, for example `127.0.0.2:0`.
    #[must_use]
    pub fn at(mut self, address: &str) -> Self {
        address.clone_into(&mut self.address);
        self
    }

    /// Wraps each connection, for example into TLS; `None` refuses a connection.
    #[must_use]
    pub fn over(
        mut self,
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Connection>> + Send + Sync + 'static,
    ) -> Self {
        self.wrap = Box::new(wrap);
        self
    }

    /// Starts the peer with one reply for every request.
    pub fn reply(self, reply: Reply) -> HttpPeer {
        self.act(Arc::new(move |_, connection| reply.write_to(connection)))
    }

    pub(crate) fn act(self, act: Arc<Act>) -> HttpPeer {
        let listener = TcpListener::bind(&*self.address).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            act: Mutex::new(act),
            requests: Mutex::default(),
            arrived: Condvar::new(),
            connections: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
        });
        let (serving, wrap) = (Arc::clone(&state), Arc::new(self.wrap));
        let is_prompt = self.is_prompt;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let (serving, wrap) = (Arc::clone(&serving), Arc::clone(&wrap));
                thread::spawn(move || {
                    let _ = stream.set_nodelay(is_prompt);
                    wrap(stream).map(|mut connection| serving.serve_request(&mut *connection))
                });
            }
        });
        HttpPeer { address, state }
    }
}

impl State {
    fn serve_request(&self, connection: &mut dyn Connection) {
        let Some(request) = HttpRequest::read(connection) else { return };
        self.requests.lock().unwrap().push(request.clone());
        self.arrived.notify_all();
        let act = Arc::clone(&self.act.lock().unwrap());
        if !act(&request, connection) {
            self.left.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl HttpPeer {
    /// A plan of a peer on a free port, in clear text.
    pub fn builder() -> HttpPeerBuilder {
        let wrap: Box<Wrap> = Box::new(|stream| Some(Box::new(stream)));
        HttpPeerBuilder { address: "127.0.0.1:0".to_owned(), wrap, is_prompt: true }
    }

    /// Starts a peer that answers each request with this function.
    pub fn start(answer: impl Fn(&HttpRequest) -> Reply + Send + Sync + 'static) -> Self {
        let act = move |request: &HttpRequest, connection: &mut dyn Connection| {
            answer(request).write_to(connection)
        };
        Self::builder().act(Arc::new(act))
    }

    /// Starts a peer with one reply for every request.
    pub fn with_reply(reply: Reply) -> Self {
        Self::builder().reply(reply)
    }

    /// Starts a peer with one reply after the other, and none after the last.
    pub fn with_replies(replies: Vec<Reply>) -> Self {
        let replies = Mutex::new(replies.into_iter());
        Self::start(move |_| replies.lock().unwrap().next().unwrap_or_default())
    }

    /// An address of HTTP at this peer, for example `url("/v1")`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests so far, but for the taken ones.
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.state.requests.lock().unwrap().clone()
    }

    /// The heads of the requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.head).collect()
    }

    /// Takes the requests so far.
    pub fn take_requests(&self) -> Vec<HttpRequest> {
        std::mem::take(&mut *self.state.requests.lock().unwrap())
    }

    /// Waits for a request, and takes it.
    pub fn next_request(&self) -> HttpRequest {
        let requests = self.state.requests.lock().unwrap();
        let waited = self
            .state
            .arrived
            .wait_timeout_while(requests, PATIENCE, |requests| requests.is_empty());
        let (mut requests, waited) = waited.unwrap();
        assert!(!waited.timed_out(), "no request arrives");
        requests.remove(0)
    }

    /// How many connections clients have opened.
    pub fn connection_count(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Waits until a client has closed its connection before the end of the reply.
    pub async fn client_left(&self) {
        let begun = Instant::now();
        poll_fn(|context| {
            if self.state.left.load(Ordering::SeqCst) > 0 {
                return Poll::Ready(());
            }
            assert!(begun.elapsed() < PATIENCE, "no client has left");
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    pub(crate) fn set_act(&self, act: Arc<Act>) {
        *self.state.act.lock().unwrap() = act;
    }
}

impl fmt::Debug for HttpPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpPeer").field("address", &self.address).finish_non_exhaustive()
    }
}
