;; Describes its arguments with a schema that nests 30,000 deep.
(data (i32.const 0x300) "{\22type\22:\22object\22,\22x\22:")
(func $before_describe
  (memory.copy (i32.const 0x20000) (i32.const 0x300) (i32.const 21))
  (memory.fill (i32.const 131093) (i32.const 0x5b) (i32.const 30000))
  (memory.fill (i32.const 161093) (i32.const 0x5d) (i32.const 30000))
  (i32.store8 (i32.const 191093) (i32.const 0x7d))
  (global.set $heap (i32.const 0x30000))
  (i32.store (i32.const 0x10018) (i32.const 0x20000))
  (i32.store (i32.const 0x1001c) (i32.const 60022)))
(func $invoke (param i32 i32 i32 i32) (result i32) unreachable)
