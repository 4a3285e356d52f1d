//! The surroundings of an editor's attack: a home, a workspace, and files outside of both.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};
use walkdir::WalkDir;

use super::peer::EditorPeer;

/// The answer that the neighbour expects from its agent.
const ANSWER: &str = "One note.";

const SETTINGS: &str = "[models.local]\nkind = \"scripted\"\nmodel = \"script.yaml\"\n\
    [roles]\nmain = \"local\"\n[grants.asker]\ntools = { file_write = 'ask' }\n";

/// The surroundings of one attack: directories, the attacked process, and the neighbour's session.
pub(super) struct AcpStage {
    _dir: TempDir,
    root: PathBuf,
    peer: Mutex<EditorPeer>,
    neighbour: String,
    program: PathBuf,
    cache: PathBuf,
}

impl AcpStage {
    /// Makes the directories, settings and agents, starts the process, and opens the neighbour's session.
    pub(super) async fn start(program: &Path, cache: Option<&Path>) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("belljar-acp").tempdir()?;
        let root = dir.path().canonicalize()?;
        let (home, workspace) = (root.join("home"), root.join("workspace"));
        for made in ["home/agents", "workspace", "outside"] {
            fs::create_dir_all(root.join(made))?;
        }
        fs::write(root.join("outside/secret.txt"), "somebody else's")?;
        fs::write(workspace.join("note.txt"), "one note\n")?;
        fs::write(home.join("belljar.toml"), SETTINGS)?;
        for name in ["clerk", "asker"] {
            let tools = if name == "asker" { "file_write" } else { "" };
            let text =
                format!("---\nname: {name}\ndescription: x\ntools: [{tools}]\n---\nDo it.\n");
            fs::write(home.join(format!("agents/{name}.md")), text)?;
        }
        fs::write(home.join("script.yaml"), model_script())?;
        let cache = cache.map_or_else(|| home.join("cache"), Path::to_path_buf);
        let mut peer = EditorPeer::start(program, &home, &cache, &workspace).await?;
        let neighbour = new_session(&mut peer, &workspace).await?;
        let program = program.to_path_buf();
        Ok(Self { _dir: dir, root, peer: Mutex::new(peer), neighbour, program, cache })
    }

    /// Starts another editor with a separate process, for an attack after which the process can no longer be
    /// used.
    pub(super) async fn start_another(&self) -> Result<EditorPeer> {
        let home = self.root.join("home");
        EditorPeer::start(&self.program, &home, &self.cache, &self.workspace()).await
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    pub(super) async fn lock_peer(&self) -> MutexGuard<'_, EditorPeer> {
        self.peer.lock().await
    }

    /// All files outside the home, with their contents, to compare before and after an attack.
    pub(super) fn list_files(&self) -> Result<Vec<(PathBuf, Vec<u8>)>> {
        let mut files = Vec::new();
        for place in ["workspace", "outside"] {
            for entry in WalkDir::new(self.root.join(place)).sort_by_file_name() {
                let path = entry?.into_path();
                let bytes = if path.is_file() { fs::read(&path)? } else { Vec::new() };
                files.push((path, bytes));
            }
        }
        Ok(files)
    }

    /// Sends the neighbour's prompt, and checks the answer.
    pub(super) async fn ask_neighbour(&self) -> Result<()> {
        let mut peer = self.lock_peer().await;
        let prompt = json!([{"type": "text", "text": "what is here?"}]);
        let prompt = json!({"sessionId": self.neighbour, "prompt": prompt});
        let answer = peer.call_method("session/prompt", prompt).await?;
        ensure!(answer["result"]["stopReason"] == "end_turn", "it was answered {answer}");
        let words = peer.session_text(&self.neighbour);
        ensure!(words == ANSWER, "it was told `{words}`");
        Ok(())
    }
}

/// Opens a session whose working directory is `workspace`; returns its id.
pub(super) async fn new_session(peer: &mut EditorPeer, workspace: &Path) -> Result<String> {
    let place = json!({"cwd": workspace, "mcpServers": []});
    let new = peer.call_method("session/new", place).await?;
    let id = new["result"]["sessionId"].as_str().map(str::to_owned);
    id.with_context(|| format!("there is no session: {new}"))
}

/// The error message in an answer that refuses; an error if the answer does not refuse.
pub(super) fn refusal_message(answer: &Value) -> Result<String> {
    let message = answer["error"]["message"].as_str();
    let message = message.with_context(|| format!("it was not refused: {answer}"))?;
    Ok(format!("{} {message}", answer["error"]["code"]))
}

/// The model's transcript: `clerk` always answers [`ANSWER`], `asker` writes a file twice.
fn model_script() -> String {
    let write = "      - calls: [{name: file_write, arguments: {path: taken.txt, content: x}}]\n";
    format!(
        "transcript: 1\nagents:\n  - agent: clerk\n    turns:\n{}  - agent: asker\n    turns:\n{}      - say: Done.\n",
        format!("      - say: {ANSWER}\n").repeat(40),
        write.repeat(2),
    )
}
