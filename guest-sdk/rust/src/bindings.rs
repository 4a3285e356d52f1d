//! Bindings generated from the contract: `guest-sdk/wit/tool.wit` for a tool that calls other tools,
//! and otherwise the version before it, which every host serves.

#[cfg(feature = "peers")]
wit_bindgen::generate!({
    world: "caller",
    path: "../wit",
    pub_export_macro: true,
    default_bindings_module: "belljar_guest::bindings",
});

#[cfg(not(feature = "peers"))]
wit_bindgen::generate!({
    world: "tool",
    path: "../wit-0.1",
    pub_export_macro: true,
    default_bindings_module: "belljar_guest::bindings",
});
