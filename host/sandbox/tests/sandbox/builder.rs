//! Jars of a program without agents: exactly the stated rights are granted, and mistakes are reported.

use belljar_kit::{TestHost, stock};
use belljar_policy::{DenyCode, Limits, MountAccess};
use belljar_sandbox::{CallError, Jar, JarBuilder, SandboxConfig, SandboxError, Wasm};

const WRITE: &str = r#"{"path": "new.txt", "content": "x"}"#;

async fn code(builder: JarBuilder) -> &'static str {
    let error = builder.build(&TestHost::new().sandbox).await.unwrap_err();
    assert!(!error.hint().is_empty() && !error.to_string().is_empty());
    error.code()
}

#[tokio::test]
async fn a_jar_has_what_its_builder_was_told_and_nothing_else() {
    let host = TestHost::new();
    host.write("a.txt", "here");
    let tools = || Jar::builder().tool(stock("file_read")).tool(stock("file_write"));
    let reading = tools().read_only(host.path()).build(&host.sandbox).await.unwrap();
    let read = reading.call_tool("file_read", r#"{"path": "a.txt"}"#).await.unwrap();
    assert!(read.outcome.unwrap().text().contains("here"));
    let written = reading.call_tool("file_write", WRITE).await.unwrap();
    assert!(written.outcome.is_err());
    assert_eq!(written.receipt.denials[0].code, DenyCode::ReadOnly);
    assert_eq!(host.read("new.txt"), None, "a refused write has no effect");

    let blind = tools().build(&host.sandbox).await.unwrap();
    assert!(blind.call_tool("file_read", r#"{"path": "a.txt"}"#).await.unwrap().outcome.is_err());
    let refused = blind.call_tool("shell", "{}").await.unwrap_err();
    assert_eq!(refused.code, DenyCode::ToolNotAllowed);

    // The neighbour: a jar with the right to write can write.
    let writing = tools().read_write(host.path()).build(&host.sandbox).await.unwrap();
    writing.call_tool("file_write", WRITE).await.unwrap().outcome.unwrap();
    assert_eq!(host.read("new.txt").as_deref(), Some("x"));
}

#[tokio::test]
async fn the_limits_of_a_builder_bound_its_calls() {
    let host = TestHost::new();
    host.write("a.txt", "here");
    let limits = Limits { fuel_per_call: 10_000, ..Limits::default() };
    let jar = Jar::builder().tool(stock("file_read")).read_only(host.path()).limits(limits);
    let jar = jar.build(&host.sandbox).await.unwrap();
    let result = jar.call_tool("file_read", r#"{"path": "a.txt"}"#).await.unwrap();
    assert!(matches!(result.outcome, Err(CallError::Exhausted(_))), "{:?}", result.outcome);
}

#[tokio::test]
async fn what_is_wrong_with_a_jar_has_a_word_and_a_way_on() {
    let file_read = || Jar::builder().tool(stock("file_read"));
    assert_eq!(code(Jar::builder()).await, "no-tool");
    assert_eq!(code(Jar::builder().tool_file("/nowhere/x.wasm")).await, "component-not-read");
    let text = Wasm::new(b"no component".to_vec());
    assert_eq!(code(Jar::builder().tool(text)).await, "component-not-described");
    assert_eq!(code(file_read().mount("data", "/", MountAccess::Read)).await, "bad-guest-path");
    assert_eq!(code(file_read().host("not a host")).await, "bad-host");
    assert_eq!(code(file_read().tool(stock("file_read"))).await, "duplicate-tool");
    assert_eq!(code(file_read().read_only("/nowhere")).await, "directory-not-opened");
    // The first mistake is reported, whatever follows.
    assert_eq!(code(file_read().host("not a host").read_only("/nowhere")).await, "bad-host");
}

#[test]
fn a_program_that_would_start_itself_for_ever_is_told_so() {
    let error = SandboxConfig::compiling_in_child().unwrap_err();
    assert!(matches!(error, SandboxError::NoCompilerChild), "{error}");
    assert!(error.to_string().contains("compiler_child"));
}
