//! Gives a component the form of a command, if its manifest states one.

use belljar_definition::ToolManifest;
use belljar_sandbox::{CommandForm, Wasm};

/// The component, as a command with the form of its manifest, if that has one. The tool has the component's
/// name.
///
/// # Errors
///
/// The words, the variables or the schema of `[command]` are invalid; the text has the reason.
pub fn wrap_command(wasm: Wasm, manifest: &ToolManifest) -> Result<Wasm, String> {
    let form = CommandForm::default().with_description(&manifest.description);
    let Some(spec) = &manifest.command else { return Ok(wasm.with_form(form)) };
    let form = match &spec.workspace_at {
        Some(at) => form.with_workspace_at(at)?,
        None => form,
    };
    let form = match (&spec.args, &spec.schema) {
        (Some(args), schema) => form.with_line(args, schema.as_deref())?,
        (None, Some(schema)) => form.with_schema(schema)?,
        (None, None) => form,
    };
    Ok(wasm.with_form(form.with_environment(&spec.env)?))
}
