;; Describes itself with 100,000 words.
(func $before_describe
  (memory.fill (i32.const 0x20000) (i32.const 0x61) (i32.const 100000))
  (global.set $heap (i32.const 0x40000))
  (i32.store (i32.const 0x10010) (i32.const 0x20000))
  (i32.store (i32.const 0x10014) (i32.const 100000)))
(func $invoke (param i32 i32 i32 i32) (result i32) unreachable)
