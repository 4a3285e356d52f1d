;; Wants an answer of the host written past the end of its memory.
(import "wasi:random/random@0.2.0" "get-random-bytes" (func $random (param i64 i32)))
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $random (i64.const 4096) (i32.const -4)) unreachable)
