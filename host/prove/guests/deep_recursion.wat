;; Calls itself without an end.
(func $deeper (param i64 i64) (result i64)
  (i64.add (local.get 0) (call $deeper (local.get 1) (i64.add (local.get 0) (i64.const 1)))))
(func $invoke (param i32 i32 i32 i32) (result i32)
  (drop (call $deeper (i64.const 1) (i64.const 2))) (i32.const 0x100))
