//! Counts the processes and threads of a program before each is made.
//!
//! The kernel limits the processes of a user, not of a program. Counting them afterwards is too slow: a
//! process that forks and ends again and again is gone before it is seen. So a seccomp filter makes the
//! kernel ask a thread of the keeper before any descendant makes a process, and wait for the answer.

use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use libc::{seccomp_notif, seccomp_notif_resp, sock_filter, sock_fprog};
use tokio::sync::Notify;

use super::descendants;
use crate::program::MAX_THREADS;

/// The system calls that make a process or a thread.
const ASKED: &[i64] = &[libc::SYS_clone, libc::SYS_clone3];
#[cfg(target_arch = "x86_64")]
const ASKED_HERE: &[i64] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const ASKED_HERE: &[i64] = &[];

/// The limit of a program's processes and threads, for its keeper. [`BirthCounter`] enforces it in a thread.
pub(super) struct BirthLimit {
    closed: Arc<AtomicBool>,
    too_many: Arc<Notify>,
}

/// Answers the kernel's questions whether a process or thread may be made.
struct BirthCounter {
    listener: OwnedFd,
    closed: Arc<AtomicBool>,
    too_many: Arc<Notify>,
    /// The most processes at a time.
    most: usize,
    /// At least the number of living processes. Corrected by counting them when it reaches the limit.
    processes: usize,
    /// At least the number of living threads, of which each process has one or more.
    threads: usize,
}

impl BirthLimit {
    /// Limits the descendants of the current thread from now on: to `most` processes and [`MAX_THREADS`]
    /// threads. Call this before the program is started.
    ///
    /// # Errors
    ///
    /// The kernel refuses the filter.
    pub(super) fn count_births(most: usize) -> io::Result<Self> {
        let (closed, too_many) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (give, take) = channel();
        let (own_closed, own_too_many) = (Arc::clone(&closed), Arc::clone(&too_many));
        // The thread is made before the filter, because the kernel would ask about it too.
        #[expect(
            clippy::disallowed_methods,
            reason = "it lives as long as the keeper, which has no runtime"
        )]
        std::thread::Builder::new().spawn(move || {
            let listener: Receiver<OwnedFd> = take;
            let Ok(listener) = listener.recv() else { return };
            let (closed, too_many) = (own_closed, own_too_many);
            BirthCounter { listener, closed, too_many, most, processes: 0, threads: 0 }
                .answer_kernel();
        })?;
        let listener = install_filter()?;
        give.send(listener).map_err(|_| io::Error::other("nobody counts"))?;
        Ok(Self { closed, too_many })
    }

    /// Waits until a process or thread was refused because of the limit.
    pub(super) async fn too_many(&self) {
        self.too_many.notified().await;
    }

    /// Refuses all processes from now on, so that ending the existing ones comes to an end.
    pub(super) fn close_births(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

impl BirthCounter {
    /// Answers the kernel's questions one after another, as long as the keeper lives.
    fn answer_kernel(mut self) {
        while let Ok(asked) = self.next_question() {
            let Some((id, thread)) = asked else { continue };
            let may = !self.closed.load(Ordering::SeqCst) && self.reserve_birth(thread);
            if !may && !self.closed.swap(true, Ordering::SeqCst) {
                let bounds = format!("{} processes and {MAX_THREADS} threads", self.most);
                let _ = writeln!(io::stderr(), "belljar: ended: it has more than {bounds}");
                self.too_many.notify_one();
            }
            self.send_answer(id, may);
        }
    }

    /// Counts one more process or thread; `false`: the limit is reached.
    fn reserve_birth(&mut self, thread: bool) -> bool {
        if !self.has_room(thread) {
            (self.processes, self.threads) = descendants::count_descendants();
        }
        let may = self.has_room(thread);
        if may {
            self.threads = self.threads.saturating_add(1);
            self.processes = self.processes.saturating_add(usize::from(!thread));
        }
        may
    }

    fn has_room(&self, thread: bool) -> bool {
        self.threads < MAX_THREADS && (thread || self.processes < self.most)
    }

    /// Waits for the kernel's next question. Returns its id, and whether a thread, not a process, shall be
    /// made. `None`: the asking process has ended, or a signal interrupted the wait.
    #[expect(unsafe_code, reason = "no safe interface reads what a filter asks")]
    fn next_question(&self) -> io::Result<Option<(u64, bool)>> {
        // SAFETY: all zeros is a valid value of this struct, and the kernel requires it.
        let mut asked: seccomp_notif = unsafe { std::mem::zeroed() };
        let listener = self.listener.as_raw_fd();
        // SAFETY: the descriptor is a listener of a filter, to which the kernel writes one such struct.
        let read = unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) };
        match read {
            0 => {
                // The arguments of `clone3` are in memory the program could change after the check, so each
                // `clone3` counts as a process.
                let flags =
                    (i64::from(asked.data.nr) == libc::SYS_clone).then_some(asked.data.args[0]);
                let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
                Ok(Some((asked.id, flags.is_some_and(|flags| flags & thread != 0))))
            }
            _ => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
                error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
                error => Err(error),
            },
        }
    }

    #[expect(unsafe_code, reason = "no safe interface answers what a filter asks")]
    fn send_answer(&self, id: u64, may: bool) {
        let (error, flags) = match may {
            true => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE),
            false => (-libc::EAGAIN, 0),
        };
        let flags = u32::try_from(flags).unwrap_or_default();
        let mut answer = seccomp_notif_resp { id, val: 0, error, flags };
        let listener = self.listener.as_raw_fd();
        // SAFETY: the descriptor is a listener of a filter, and the kernel reads one such struct. The call
        // fails only if the asking process is gone.
        let _ = unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }
}

/// Installs the filter in the current thread; returns the descriptor on which the kernel asks. Other filters
/// check the processor's architecture and all other calls.
#[expect(unsafe_code, reason = "the crate for filters has none that asks")]
fn install_filter() -> io::Result<OwnedFd> {
    let mut filter = filter_program()?;
    let length = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = sock_fprog { len: length, filter: filter.as_mut_ptr() };
    // SAFETY: the arguments are numbers. The kernel accepts a filter only from a process that cannot gain
    // rights.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the program and its instructions exist until the call returns, and the kernel copies both.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    let listener = i32::try_from(listener).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor, and for this caller only.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

/// Makes the filter: the kernel asks about the calls that make a process or thread, and allows all others.
fn filter_program() -> io::Result<Vec<sock_filter>> {
    let asked: Vec<i64> = ASKED.iter().chain(ASKED_HERE).copied().collect();
    let instruction = |code: u32, jt: u8, value: u32| {
        let code = u16::try_from(code).map_err(io::Error::other)?;
        Ok::<_, io::Error>(sock_filter { code, jt, jf: 0, k: value })
    };
    let mut filter = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)?];
    for (at, call) in asked.iter().enumerate() {
        // The number of instructions to skip, to the last one, which asks: the other comparisons, and the
        // one that allows.
        let ahead = u8::try_from(asked.len().saturating_sub(at)).map_err(io::Error::other)?;
        let call = u32::try_from(*call).map_err(io::Error::other)?;
        filter.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, ahead, call)?);
    }
    let answer = libc::BPF_RET | libc::BPF_K;
    filter.push(instruction(answer, 0, libc::SECCOMP_RET_ALLOW)?);
    filter.push(instruction(answer, 0, libc::SECCOMP_RET_USER_NOTIF)?);
    Ok(filter)
}
