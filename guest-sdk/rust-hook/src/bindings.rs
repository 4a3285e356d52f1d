//! Bindings generated from the contract, `guest-sdk/wit-hook/hook.wit`.

wit_bindgen::generate!({
    world: "hook",
    path: "../wit-hook",
    pub_export_macro: true,
    default_bindings_module: "belljar_hook::bindings",
});
