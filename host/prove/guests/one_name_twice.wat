;; Says that it offers two tools of one name.
(func $before_describe
  (memory.copy (i32.const 0x400) (i32.const 0x10008) (i32.const 28))
  (memory.copy (i32.const 0x41c) (i32.const 0x10008) (i32.const 28))
  (i32.store (i32.const 0x10000) (i32.const 0x400))
  (i32.store (i32.const 0x10004) (i32.const 2)))
(func $invoke (param i32 i32 i32 i32) (result i32) unreachable)
