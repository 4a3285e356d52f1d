;; Claims to wait for a list of 1,073,741,823 timers.
(import "wasi:io/poll@0.2.0" "poll" (func $poll (param i32 i32 i32)))
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $poll (i32.const 8) (i32.const 0x3fffffff) (i32.const 0x300)) unreachable)
