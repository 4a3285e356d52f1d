;; Describes itself with a bidi override, so that a person reads something else.
(data (i32.const 0x300) "reads \e2\80\aetxt.exe")
(func $before_describe
  (i32.store (i32.const 0x10010) (i32.const 0x300))
  (i32.store (i32.const 0x10014) (i32.const 16)))
(func $invoke (param i32 i32 i32 i32) (result i32) unreachable)
