//! The surroundings of an attack in this process: directories, addresses, a secret and a separate neighbour,
//! in the sandbox that all attacks of the process share.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use belljar_policy::{HostRule, Mount, MountAccess};
use belljar_sandbox::http::Secret;
use belljar_sandbox::{
    Compiler, Overlay, OverlayQuota, PoolConfig, Sandbox, SandboxConfig, SandboxError, Wasm,
};

use crate::attack::Escape;
use crate::canary::ForbiddenListener;
use crate::guests::{FILE_READ, Guest};
use crate::jar::OpenJar;
use crate::lock_recovered;
use crate::memory;
use crate::neighbour::JarNeighbour;
use crate::peer::{LoopbackPeer, Script};
use crate::secret::SecretCanary;
use crate::suite::Suite;
use crate::tree::{self, AttackTree};
use crate::witness::ArenaWitness;

/// The surroundings of one attack. The crate's documentation lists what is checked afterwards.
pub struct Arena {
    pub(crate) suite: Suite,
    tree: AttackTree,
    forbidden: ForbiddenListener,
    witness: Arc<ArenaWitness>,
    picture: Mutex<Option<ArenaPicture>>,
    sealed: Mutex<Vec<(PathBuf, [u8; 32])>>,
    jars: Mutex<Vec<OpenJar>>,
    neighbour: Mutex<Option<Arc<JarNeighbour>>>,
}

/// What is compared after the attack: the digest of the files outside, and the bytes of memory.
struct ArenaPicture {
    outside: [u8; 32],
    resident: Option<u64>,
}

/// The growth of the process, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessGrowth {
    pub(crate) left: u64,
    pub(crate) peak: u64,
}

impl Arena {
    /// Makes the directories, the forbidden address and the secret of an attack, and starts its neighbour.
    pub(crate) async fn new(suite: &Suite) -> Result<Self> {
        let (tree, forbidden) = (AttackTree::new()?, ForbiddenListener::listen().await?);
        let root = tree.root().to_string_lossy().into_owned();
        let witness = ArenaWitness { secret: SecretCanary::new(), root, learnt: Mutex::default() };
        let arena = Self {
            suite: suite.clone(),
            tree,
            forbidden,
            witness: Arc::new(witness),
            picture: Mutex::default(),
            sealed: Mutex::default(),
            jars: Mutex::default(),
            neighbour: Mutex::default(),
        };
        let neighbour = JarNeighbour::start(&arena).await?;
        *lock_recovered(&arena.neighbour) = Some(Arc::new(neighbour));
        Ok(arena)
    }

    /// The path of a directory of this attack: `workspace`, `second`, `home`, `outside` (with `canary.txt`
    /// and `folder/inner.txt`), or `neighbour`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.tree.path(name)
    }

    /// The directory that the attacker's jar mounts at `/workspace`.
    pub fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// A directory next to the mount that an attack must neither read nor change.
    pub fn outside_path(&self) -> PathBuf {
        self.path("outside")
    }

    /// Writes a file in the workspace.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_file(&self, name: &str, text: impl AsRef<[u8]>) -> Result<(), Escape> {
        let path = self.workspace().join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(std::fs::write(path, text)?)
    }

    /// Opens an overlay of the workspace; its layer is in the attack's directory `layer`.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open_overlay(&self, quota: OverlayQuota) -> Result<Overlay, Escape> {
        let overlay = Overlay::open(self.workspace(), self.path("layer"), quota);
        Ok(overlay.context("no overlay")?)
    }

    /// A loopback address with a listener that no attack may reach.
    pub fn forbidden_address(&self) -> SocketAddr {
        self.forbidden.address()
    }

    /// Starts a server on a loopback address that answers as scripted.
    ///
    /// # Errors
    /// When it cannot listen.
    pub async fn start_peer(&self, script: Script) -> Result<LoopbackPeer, Escape> {
        Ok(LoopbackPeer::start(script).await?)
    }

    /// Sets the addresses that a name resolves to: each list is one answer in turn, and the last one is
    /// repeated. Attacks share one list of names, so each uses a separate name, for example `rebind.test`.
    pub fn set_name_answers(&self, name: &str, answers: impl IntoIterator<Item = Vec<IpAddr>>) {
        self.suite.name_table().set_answers(name, answers);
    }

    /// The value of the attack's secret, for scripted servers that repeat it.
    pub fn secret_value(&self) -> &str {
        self.witness.secret.value()
    }

    /// The sandbox of the process, for attacks on loading and describing components.
    pub fn sandbox(&self) -> &Sandbox {
        self.suite.sandbox()
    }

    /// Creates a sandbox for this attack alone, with nothing in memory: for attacks on the cache and on the
    /// compiler. It has no pool of stores, and default limits.
    ///
    /// # Errors
    /// When the cache directory cannot be used.
    pub fn own_sandbox(
        &self,
        cache_dir: Option<PathBuf>,
        compiler: Compiler,
    ) -> Result<Sandbox, SandboxError> {
        let pool = PoolConfig { slots: 0 };
        Sandbox::new(SandboxConfig { cache_dir, compiler, pool, ..SandboxConfig::default() })
    }

    /// The compiler of this suite's guests: this process or a child.
    pub fn compiler(&self) -> Compiler {
        self.suite.compiler().clone()
    }

    /// The component of a guest, for loading.
    pub fn guest_wasm(&self, guest: Guest) -> Wasm {
        self.suite.guest_wasm(&guest)
    }

    pub(crate) fn witness(&self) -> &Arc<ArenaWitness> {
        &self.witness
    }

    pub(crate) fn neighbour(&self) -> Option<Arc<JarNeighbour>> {
        lock_recovered(&self.neighbour).clone()
    }

    /// Opens the neighbour's own jar: the stock tool `file_read` over a separate directory.
    pub(crate) async fn neighbours_jar(&self) -> Result<OpenJar, Escape> {
        let most = u64::MAX / 4;
        self.jar_builder(&[FILE_READ])
            .no_mounts()
            .mount_host("workspace", self.path("neighbour"), MountAccess::Read)
            .without_seal()
            .with_limits(|limits| {
                (limits.fuel, limits.read_bytes, limits.output_total_bytes) = (most, most, most);
            })
            .open_unremembered()
            .await
    }

    pub(crate) async fn keep_loaded(&self, wasm: &Wasm) -> Result<(), Escape> {
        Ok(self.suite.keep_loaded(wasm).await?)
    }

    pub(crate) fn bound_secret(&self, hosts: Vec<HostRule>) -> Result<Secret> {
        let value = self.secret_value().to_owned().into();
        Ok(Secret::new(&value, hosts, "authorization", "Bearer ")?)
    }

    /// Adds a jar to those that are closed after the attack.
    pub(crate) fn remember_jar(&self, jar: &OpenJar) {
        lock_recovered(&self.jars).push(jar.clone());
    }

    /// Stores the digest of each directory that the mounts give only for reading or through an overlay,
    /// unless another mount makes the directory writable. After the attack the digests must be the same.
    pub(crate) fn seal_mounts(&self, mounts: &[Mount]) -> Result<()> {
        let mut sealed = lock_recovered(&self.sealed);
        for mount in mounts.iter().filter(|mount| mount.access != MountAccess::ReadWrite) {
            let writable = mounts.iter().any(|other| {
                other.access == MountAccess::ReadWrite && other.host.starts_with(&mount.host)
            });
            let ours = mount.host.starts_with(self.tree.root());
            if ours && !writable && !sealed.iter().any(|(path, _)| *path == mount.host) {
                sealed.push((mount.host.clone(), tree::digest_directory(&mount.host)?));
            }
        }
        Ok(())
    }

    /// Stores what is compared after the attack: files outside, and memory. Only the first call has an
    /// effect.
    pub(crate) fn take_picture(&self) -> Result<()> {
        // While the neighbour's own jar is opened, there is nothing to compare yet.
        let Some(neighbour) = self.neighbour() else { return Ok(()) };
        let mut picture = lock_recovered(&self.picture);
        if picture.is_none() {
            neighbour.forget_peak();
            belljar_work::give_back_memory();
            *picture = Some(ArenaPicture {
                outside: tree::digest_directory(&self.outside_path())?,
                resident: memory::resident_bytes(),
            });
        }
        Ok(())
    }

    /// Closes the attack's jars; returns a text for each jar that does not close properly.
    pub(crate) async fn close_jars(&self) -> Vec<String> {
        let jars = std::mem::take(&mut *lock_recovered(&self.jars));
        let mut faults = Vec::new();
        for jar in jars {
            if let Err(escape) = jar.close().await {
                faults.push(escape.0);
            }
        }
        faults
    }

    /// The forbidden effects of the attack, one sentence for each: changed files, connections to the
    /// forbidden address, and places where the secret or a path was seen. The neighbour is checked
    /// separately.
    pub(crate) async fn list_effects(&self) -> Vec<String> {
        let mut effects = Vec::new();
        let mut note = |what: Result<Option<String>>| match what {
            Ok(None) => {}
            Ok(Some(effect)) => effects.push(effect),
            Err(error) => effects.push(format!("the effects could not be looked at: {error:#}")),
        };
        note(self.outside_changed());
        note(self.sealed_changed());
        let reached = self.forbidden.count_connections().await;
        note(reached.map(|n| (n > 0).then(|| format!("{n} connections to a forbidden address"))));
        note(Ok(self.witness.secret.seen_place().map(|at| format!("the secret stands in {at}"))));
        note(Ok(self.witness.first_finding()));
        effects
    }

    /// A fault if the files outside the mounts differ from the picture that was taken before the attack.
    fn outside_changed(&self) -> Result<Option<String>> {
        let picture = lock_recovered(&self.picture);
        let Some(picture) = &*picture else { return Ok(None) };
        let same = tree::digest_directory(&self.outside_path())? == picture.outside;
        Ok((!same).then(|| "something outside the mounts has changed".to_owned()))
    }

    /// The first directory of a read-only mount that has changed since it was sealed, as a sentence.
    fn sealed_changed(&self) -> Result<Option<String>> {
        for (path, digest) in lock_recovered(&self.sealed).iter() {
            if tree::digest_directory(path)? != *digest {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                return Ok(Some(format!("the read-only `{name}` has changed")));
            }
        }
        Ok(None)
    }

    /// Measures by how many bytes the process has grown since [`Self::take_picture`], without memory that is
    /// free.
    pub(crate) fn measure_growth(&self) -> ProcessGrowth {
        belljar_work::give_back_memory();
        let (now, picture) = (memory::resident_bytes(), lock_recovered(&self.picture));
        let before = picture.as_ref().and_then(|picture| picture.resident);
        let (Some(now), Some(before)) = (now, before) else { return ProcessGrowth::default() };
        let peak = self.neighbour().map_or(0, |neighbour| neighbour.peak_bytes());
        ProcessGrowth {
            left: now.saturating_sub(before),
            peak: peak.max(now).saturating_sub(before),
        }
    }

    /// Removes the attack's directories.
    pub(crate) fn remove_tree(self) -> Result<()> {
        self.tree.remove()
    }
}
