;; Waits for a timer that goes off in some centuries.
(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $timer (param i64) (result i32)))
(import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $block (call $timer (i64.const -1))) unreachable)
