;; Says that its name is a path.
(data (i32.const 0x300) "../../file_read")
(func $before_describe
  (i32.store (i32.const 0x10008) (i32.const 0x300))
  (i32.store (i32.const 0x1000c) (i32.const 15)))
(func $invoke (param i32 i32 i32 i32) (result i32) unreachable)
