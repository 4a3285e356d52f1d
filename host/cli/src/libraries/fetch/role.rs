//! The body of a helper process: its wall, then its one job.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use belljar_os_sandbox::Wall;
use tokio::io::AsyncReadExt as _;

use super::client::FileClient;
use super::gate::HostGate;
use super::news::{FILE, HelperJob, HelperNews, send_news};
use super::npm;
use super::scope::FetchScope;

/// How long a helper lives at most.
const MAX_LIFE: Duration = Duration::from_secs(600);

/// The body of a helper process, whose arguments are its job and its directory.
pub(crate) fn serve_helper(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let job = words.next().and_then(|job| job.into_string().ok());
    let job = job.and_then(|job| serde_json::from_str::<HelperJob>(&job).ok());
    let (Some(job), Some(directory)) = (job, words.next()) else { return ExitCode::FAILURE };
    match do_job(job, Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            send_news(&HelperNews::Fault(why));
            ExitCode::FAILURE
        }
    }
}

fn do_job(job: HelperJob, directory: &Path) -> Result<(), String> {
    let listener = match &job {
        // Behind the wall no port can be bound.
        HelperJob::Gate { .. } => Some(open_listener().map_err(|error| error.to_string())?),
        HelperJob::Download { .. } | HelperJob::Package { .. } => None,
    };
    if job.is_walled() {
        raise_wall(directory)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let work = async {
            tokio::select! {
                done = run_job(job, listener, directory) => done,
                () = parent_ended() => Err("nobody waits for it any more".to_owned()),
            }
        };
        tokio::time::timeout(MAX_LIFE, work)
            .await
            .unwrap_or_else(|_| Err(format!("it took more than {} s", MAX_LIFE.as_secs())))
    })
}

/// INV-615: nothing but this directory is written, and no program is started.
fn raise_wall(directory: &Path) -> Result<(), String> {
    let mut wall = Wall::default().with_system();
    wall.allow_write(directory);
    let raised = wall.raise_wall();
    if raised.landlock.is_none() || !raised.seccomp {
        return Err(format!(
            "the OS sandbox does not stand: {}; `--no-os-sandbox` fetches without it",
            raised.missing.join("; ")
        ));
    }
    Ok(())
}

fn open_listener() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn run_job(
    job: HelperJob,
    listener: Option<TcpListener>,
    directory: &Path,
) -> Result<(), String> {
    let file = directory.join(FILE);
    match job {
        HelperJob::Gate { url, most, .. } => {
            let listener = listener.ok_or("it has no port")?;
            HostGate::new(FetchScope::for_url(&url)?, most).serve(listener).await
        }
        HelperJob::Download { url, most, .. } => {
            let client = FileClient::new(FetchScope::for_url(&url)?, most)?;
            let sha256 = client.store_file(&url, &file, None).await?;
            send_news(&HelperNews::File { sha256, version: None });
            Ok(())
        }
        HelperJob::Package { registry, package, version, most, .. } => {
            let client = FileClient::new(FetchScope::for_url(&registry)?, most)?;
            let found = npm::find_release(&client, &registry, &package, version.as_deref()).await?;
            let sha256 = client.store_file(&found.tarball, &file, Some(&found.sha512)).await?;
            send_news(&HelperNews::File { sha256, version: Some(found.version) });
            Ok(())
        }
    }
}

/// Waits until the parent closes this process's stdin, which it does at the latest when it ends.
async fn parent_ended() {
    use std::os::fd::AsFd as _;
    let own = io::stdin().as_fd().try_clone_to_owned();
    let pipe = own.and_then(tokio::net::unix::pipe::Receiver::from_owned_fd);
    let Ok(mut pipe) = pipe else { return };
    let mut byte = [0; 1];
    while pipe.read(&mut byte).await.is_ok_and(|read| read > 0) {}
}
