;; Says that it offers a thousand tools.
(func $before_describe (local $n i32)
  (loop $again
    (memory.copy
      (i32.add (i32.const 0x20000) (i32.mul (local.get $n) (i32.const 28)))
      (i32.const 0x10008) (i32.const 28))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 1000))))
  (global.set $heap (i32.const 0x30000))
  (i32.store (i32.const 0x10000) (i32.const 0x20000))
  (i32.store (i32.const 0x10004) (i32.const 1000)))
(func $invoke (param i32 i32 i32 i32) (result i32) unreachable)
