;; Wants a function of the host with another signature than it has.
(import "wasi:cli/exit@0.2.0" "exit" (func $exit (param i64)))
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $exit (i64.const -1)) unreachable)
