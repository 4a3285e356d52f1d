;; Wants an interface that the host knows, of a version that it does not.
(import "wasi:cli/exit@0.3.0" "exit" (func $exit (param i32)))
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $exit (i32.const 0)) unreachable)
