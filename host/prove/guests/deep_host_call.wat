;; Calls into the host from ever deeper in its own stack.
(import "wasi:random/random@0.2.0" "get-random-bytes" (func $random (param i64 i32)))
(func $deeper (param i64) (result i64)
  (call $random (i64.const 8) (i32.const 0x400))
  (global.set $heap (i32.const 0x20000))
  (i64.add (i64.const 1) (call $deeper (i64.add (local.get 0) (i64.const 1)))))
(func $invoke (param i32 i32 i32 i32) (result i32)
  (drop (call $deeper (i64.const 0))) (i32.const 0x100))
