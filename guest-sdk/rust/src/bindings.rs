//! Bindings generated from the contract, `guest-sdk/wit/tool.wit`.

wit_bindgen::generate!({
    world: "tool",
    path: "../wit",
    pub_export_macro: true,
    default_bindings_module: "belljar_guest::bindings",
});
