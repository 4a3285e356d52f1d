;; Claims that a log line is 4 GiB long.
(import "belljar:tool/log@0.1.0" "log" (func $log (param i32 i32 i32)))
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $log (i32.const 2) (i32.const 8) (i32.const -1)) unreachable)
