//! Asks a hook, a command or a component, about an event.

use std::path::Path;

use belljar_definition::HookEvent;
use belljar_sandbox::{HookVerdict, Sandbox, Wasm};
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

use super::input::HookInput;
use super::{EventVerdict, Hook, HookComponent, HookJudgement, HookRunner, command, output};

/// Most bytes of a hook component: one in Rust has 100 KiB, one with a script engine some MiB.
const MAX_COMPONENT: u64 = 64 << 20;

impl Hook {
    /// Runs the hook and returns its answer. An error is the reason, for the person, why there is no answer.
    pub(crate) async fn ask_hook(
        &self,
        sandbox: &Sandbox,
        input: &HookInput,
        workspace: &Path,
        stop: &CancellationToken,
    ) -> Result<HookJudgement, String> {
        match &self.action {
            HookRunner::Command { text, broker } => {
                let input = input.for_command(workspace);
                let child = command::start_command(text, workspace, broker.as_ref()).await?;
                let ran = command::run_command(child, &input, self.timeout, stop).await?;
                output::read_judgement(self.event, &ran)
            }
            HookRunner::Component(component) => {
                let wasm = component.load_wasm().await?;
                let event = input.for_component();
                let verdict = sandbox.judge_event(wasm, &event, self.timeout, stop).await;
                self.judge_verdict(verdict.map_err(|error| error.to_string())?)
            }
        }
    }

    /// Converts a component's verdict. To ask a person or to change arguments is possible only before a call.
    fn judge_verdict(&self, verdict: HookVerdict) -> Result<HookJudgement, String> {
        let before_call = self.event == HookEvent::PreToolUse;
        Ok(match verdict {
            HookVerdict::Pass => HookJudgement::default(),
            HookVerdict::Deny(why) => HookJudgement::from_verdict(EventVerdict::Deny(why)),
            HookVerdict::Ask(_) if before_call => HookJudgement::from_verdict(EventVerdict::Ask),
            HookVerdict::Narrow(arguments) if before_call => {
                HookJudgement { arguments: Some(arguments), ..HookJudgement::default() }
            }
            HookVerdict::Ask(_) | HookVerdict::Narrow(_) => {
                return Err(format!("it answers `{}` as if it were a call", self.event));
            }
        })
    }
}

impl HookComponent {
    /// The component, read when first needed. A failure is not kept, because the file may appear later.
    async fn load_wasm(&self) -> Result<&Wasm, String> {
        self.wasm.get_or_try_init(|| self.read_wasm()).await
    }

    /// Reads the component and compares it with the digest in the settings.
    pub(crate) async fn read_wasm(&self) -> Result<Wasm, String> {
        let failed = |error: std::io::Error| format!("the component cannot be read: {error}");
        let file = tokio::fs::File::open(&self.path).await.map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(MAX_COMPONENT + 1).read_to_end(&mut bytes).await.map_err(failed)?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let wasm = Wasm::new(bytes).with_name(name);
        let digest = format!("sha256:{}", wasm.digest());
        match &self.digest {
            Some(pinned) if *pinned != digest => {
                Err(format!("the component is not the one that is pinned: it is {digest}"))
            }
            Some(_) | None => Ok(wasm),
        }
    }
}
