;; Wants a function that an interface of the host does not have.
(import "wasi:random/random@0.2.0" "get-host-memory" (func $get (param i64 i32)))
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $get (i64.const 0) (i32.const 0x400)) unreachable)
