;; Wants a shell of the host.
(import "evil:host/shell@1.0.0" "run" (func $run (param i32 i32)))
(data (i32.const 0x300) "sh")
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $run (i32.const 0x300) (i32.const 2)) (i32.const 0x100))
