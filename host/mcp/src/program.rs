//! A server that is a program: its command line, and the digest with which it was accepted.

use belljar_os_sandbox::Program;
use belljar_sandbox::{Digest, OutgoingGate};

use crate::call::CallSpec;
use crate::connection::Connection;
use crate::exchange::ExchangeFault;
use crate::process::ServerProcess;
use crate::transport::Transport;

/// The separator between a command line and the digest of its program, in the address of accepted tools.
const DIGEST: &str = " sha256:";

/// A server's program, with the accepted digest.
#[derive(Debug)]
pub struct ServerProgram {
    program: Program,
    command_line: String,
    digest: Option<String>,
}

impl ServerProgram {
    /// A program without accepted tools. `command_line` is its name in the file of accepted tools.
    pub fn new(program: Program, command_line: String) -> Self {
        Self { program, command_line, digest: None }
    }

    /// The address of accepted tools for a program with the given digest, so a changed program is another
    /// server.
    pub fn digest_address(&self, digest: &str) -> String {
        format!("{}{DIGEST}{digest}", self.command_line)
    }

    /// The digest of the program when its tools were accepted.
    pub fn accepted_digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Takes the digest from `address`, the address at which the program's tools were accepted (see
    /// [`Self::digest_address`]). Returns false, and sets nothing, if it has another command line or no valid
    /// digest.
    pub(crate) fn with_accepted(self, address: &str) -> (Self, bool) {
        let digest = address.rsplit_once(DIGEST).filter(|(line, _)| *line == self.command_line);
        let digest = digest.map(|(_, digest)| digest);
        match digest.filter(|digest| Digest::from_hex(digest).is_some()) {
            Some(digest) => (Self { digest: Some(digest.to_owned()), ..self }, true),
            None => (self, false),
        }
    }
}

impl Connection {
    /// The present digest of the server's program; `None` if the server is no program.
    ///
    /// # Errors
    /// When the digest cannot be computed. The text is for the operator.
    pub async fn identify_program(&self, spec: &CallSpec<'_>) -> Result<Option<String>, String> {
        let Some(program) = self.server().program() else { return Ok(None) };
        let gate = self.open_gate(spec, spec.budget, None);
        let digest = ServerProcess::identify_program(&gate, &program.program).await;
        digest.map(Some).map_err(|fault| fault.to_string())
    }

    /// Starts the program if it has the accepted digest, and begins a session.
    pub(crate) async fn start_program(
        &self,
        gate: &OutgoingGate,
        program: &ServerProgram,
        digest: &str,
    ) -> Result<Transport, ExchangeFault> {
        let process = ServerProcess::start_program(gate, &program.program, digest).await?;
        self.server().secrets.iter().for_each(|name| gate.secret_used(name));
        self.server_opening().initialize_session(gate, Transport::Program(Box::new(process))).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_was_accepted_is_bound_to_a_command_line_and_a_digest() {
        let of = |line: &str| {
            let program = Program {
                name: "s".to_owned(),
                path: "/bin/true".into(),
                args: Vec::new(),
                data: BTreeSet::new(),
                read: BTreeSet::new(),
                write: BTreeSet::new(),
                network: false,
                only_port: None,
                memory: 0,
                processes: 0,
            };
            ServerProgram::new(program, line.to_owned())
        };
        let digest = Digest::hash_bytes(b"x").to_string();
        let address = of("[\"a\"]").digest_address(&digest);
        let (program, same) = of("[\"a\"]").with_accepted(&address);
        assert_eq!((program.accepted_digest(), same), (Some(digest.as_str()), true));
        for (line, address) in [
            ("[\"b\"]", address.as_str()),
            ("[\"a\"]", "[\"a\"]"),
            ("[\"a\"]", "[\"a\"] sha256:00"),
            ("[\"a\"]", "https://a.test"),
        ] {
            let (program, same) = of(line).with_accepted(address);
            assert!(!same && program.accepted_digest().is_none(), "{line} {address}");
        }
    }
}
