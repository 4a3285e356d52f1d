//! Bindings wasmtime generates from the contracts' WIT files and from the text of `wasi:config`.

wasmtime::component::bindgen!({
    path: "../../guest-sdk/wit-0.1",
    world: "tool",
    imports: { default: trappable },
    exports: { default: async },
    require_store_data_send: true,
});

/// The bindings of the hook contract, a WIT package of its own.
pub(crate) mod hook {
    wasmtime::component::bindgen!({
        path: "../../guest-sdk/wit-hook",
        world: "hook",
        exports: { default: async },
        require_store_data_send: true,
    });
}

/// The bindings of `wasi:config/store`. Generated here, because no dependency of belljar has them.
pub(crate) mod config {
    wasmtime::component::bindgen!({
        inline: "
            package wasi:config@0.2.0-rc.1;
            interface store {
                variant error { upstream(string), io(string) }
                get: func(key: string) -> result<option<string>, error>;
                get-all: func() -> result<list<tuple<string, string>>, error>;
            }
            world imports { import store; }
        ",
        imports: { default: trappable },
    });
}
