//! The OS sandbox without the first boundary: in a separate process, the check of rights is replaced by a
//! check that always allows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use belljar_os_sandbox::Wall;
use belljar_policy::{AskedRights, CallPermission, Grants, Mount, Rights, ToolAsk, ToolName};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::imports::files::seam;
use crate::{
    CallResult, Jar, JarSpec, JarTool, OutputPart, Sandbox, SandboxConfig, ToolOutput, Wasm,
};

/// The environment variable with the part that a process plays: `walled`, or `open` to prove that the
/// replaced check matters.
const ROLE: &str = "BELLJAR_OS_SANDBOX_ROLE";

const WORKED: &str = "worked";

#[test]
fn where_every_check_allows_the_os_sandbox_still_refuses() {
    match std::env::var(ROLE).as_deref() {
        Ok(role) => alone(role == "walled"),
        Err(_) => {
            let open = play("open");
            assert!(open.len() >= 10, "{open:?}");
            for (attempt, result) in &open {
                assert_eq!(result, WORKED, "without a wall `{attempt}` shows nothing");
            }
            for (attempt, result) in play("walled") {
                let neighbour = attempt.starts_with("neighbour");
                assert_eq!(result == WORKED, neighbour, "{attempt}: {result}");
                assert!(open.contains_key(&attempt), "{attempt}");
            }
        }
    }
}

/// Runs this test again in a child process. Returns the result of each attempt.
fn play(role: &str) -> BTreeMap<String, String> {
    let name = concat!(module_path!(), "::where_every_check_allows_the_os_sandbox_still_refuses");
    let name = name.split_once("::").unwrap().1;
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{failed}");
    let told = |line: &str| {
        let (attempt, result) = line.split_once("tried ")?.1.rsplit_once(": ")?;
        Some((attempt.to_owned(), result.to_owned()))
    };
    text.lines().filter_map(told).collect()
}

/// Everything that a guest could try without the first boundary, by the host's own functions and by real
/// tools. Each attempt prints whether it had an effect, whatever the call returned.
fn alone(walled: bool) {
    let mut rig = Rig::new();
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let tools = ["file_read", "file_write"].map(|name| (name, stock(name)));
    if walled {
        let mut wall = Wall::default().with_system();
        wall.allow_write(&rig.host("rw"));
        wall.allow_read(&rig.host("ro"));
        let raised = wall.raise_for_thread();
        assert!(raised.landlock.is_some() && raised.seccomp, "{raised:?}");
    }
    seam::allow_all();
    // Everything runs on this thread: other threads of the test harness have no wall.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        host_functions(&mut rig).await;
        real_tools(&rig, &sandbox, &tools).await;
    });
}

async fn host_functions(rig: &mut Rig) {
    let (rw, ro) = (rig.rw, rig.ro);
    tell("read outside", rig.read(rw, "../outside.txt").await.is_ok_and(|t| t == "outside"));
    tell("read an absolute path", rig.read(rw, "/etc/passwd").await.is_ok());
    tell("list outside", rig.open(rw, "..", How::Directory).await.is_ok());
    let _ = rig.write(rw, "../planted.txt", "x").await;
    tell("plant outside", rig.host("planted.txt").exists());
    let _ = rig.view().create_directory_at(fd(rw), "../made".into()).await;
    tell("make a directory outside", rig.host("made").exists());
    let (none, note) = (PathFlags::empty(), "note.txt".to_owned());
    let _ = rig.view().link_at(fd(rw), none, note, fd(rw), "../linked".into()).await;
    tell("link to the outside", rig.host("linked").exists());
    let _ = rig.view().rename_at(fd(rw), "note.txt".into(), fd(rw), "../moved".into()).await;
    tell("move to the outside", rig.host("moved").exists());
    let _ = rig.open(rw, "../outside.txt", How::Truncate).await;
    let emptied = std::fs::metadata(rig.host("outside.txt")).unwrap().len() == 0;
    tell("empty a file outside", emptied);
    let _ = rig.view().unlink_file_at(fd(rw), "../outside.txt".into()).await;
    tell("remove outside", !rig.host("outside.txt").exists());
    let _ = rig.open(ro, "note.txt", How::Truncate).await;
    let emptied = std::fs::metadata(rig.host("ro/note.txt")).unwrap().len() == 0;
    tell("empty a file of a read-only mount", emptied);
    let _ = rig.open(ro, "new.txt", How::Create).await;
    tell("plant in a read-only mount", rig.host("ro/new.txt").exists());
    let wrote = rig.write(rw, "fine.txt", "fine").await.is_ok();
    let read = rig.read(rw, "fine.txt").await.is_ok_and(|text| text == "fine");
    tell("neighbour: another file of a mount", wrote && read);
}

/// Two jars: one whose tool tries to reach outside, and a neighbour.
async fn real_tools(rig: &Rig, sandbox: &Sandbox, tools: &[(&'static str, Wasm)]) {
    let jar = jar(sandbox, rig.host("rw"), tools).await;
    let passwd = call(&jar, "file_read", r#"{"path": "../../../../../../../etc/passwd"}"#).await;
    tell("a tool reads outside", text(&passwd).contains("root:"));
    let neighbour = self::jar(sandbox, rig.host("rw"), tools).await;
    let read = call(&neighbour, "file_read", r#"{"path": "fine.txt"}"#).await;
    tell("neighbour: another jar's tool", text(&read).contains("fine"));
}

fn tell(attempt: &str, worked: bool) {
    println!("tried {attempt}: {}", if worked { WORKED } else { "refused" });
}

fn stock(name: &str) -> Wasm {
    let path = format!("{}/../../tools/prebuilt/{name}.wasm", env!("CARGO_MANIFEST_DIR"));
    Wasm::new(std::fs::read(path).unwrap())
}

async fn jar(
    sandbox: &Sandbox,
    workspace: PathBuf,
    tools: &[(&'static str, Wasm)],
) -> (Jar, Rights) {
    let mount =
        Mount { guest: GuestPath::workspace(), host: workspace, access: MountAccess::ReadWrite };
    let names = tools.iter().map(|(name, _)| (ToolName::new(name).unwrap(), CallPermission::Allow));
    let grants = Grants { tools: names.collect(), mounts: vec![mount], ..Grants::none() };
    let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
    let mut jar_tools = Vec::new();
    for (_, wasm) in tools {
        let infos = sandbox.describe_tools(wasm).await.unwrap();
        jar_tools.push(JarTool {
            tools: infos.iter().map(|info| (info.name.clone(), info.hints)).collect(),
            wasm: wasm.clone(),
            ask: ToolAsk { mounts: Some(MountAccess::ReadWrite), ..ToolAsk::default() },
            config: Arc::default(),
        });
    }
    let spec = JarSpec {
        rights: rights.clone(),
        budget: Budget::new_root(BudgetLevel::Subagent, BudgetCaps::for_agent(&Limits::default())),
        tools: jar_tools,
        secrets: crate::SecretStore::default(),
        overlays: BTreeMap::new(),
        cancel: CancellationToken::new(),
    };
    (sandbox.open_jar(spec).unwrap(), rights)
}

async fn call((jar, rights): &(Jar, Rights), tool: &str, arguments: &str) -> CallResult {
    jar.call_permitted(rights.tool(tool).unwrap(), arguments).await
}

fn text(result: &CallResult) -> String {
    match &result.outcome {
        Ok(ToolOutput { parts }) => parts
            .iter()
            .map(|part| match part {
                OutputPart::Text(text) | OutputPart::Json(text) => text.as_str(),
                OutputPart::Attachment { .. } => "",
            })
            .collect(),
        Err(_) => String::new(),
    }
}
