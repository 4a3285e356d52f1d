;; Describes arguments that are no object.
(data (i32.const 0x300) "{\22type\22:\22string\22}")
(func $before_describe
  (i32.store (i32.const 0x10018) (i32.const 0x300))
  (i32.store (i32.const 0x1001c) (i32.const 17)))
(func $invoke (param i32 i32 i32 i32) (result i32) unreachable)
