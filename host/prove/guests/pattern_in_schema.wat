;; Describes an argument with a pattern that takes terabytes to compile.
(data (i32.const 0x300) "{\22type\22:\22object\22,\22properties\22:{\22a\22:{\22type\22:\22string\22,\22pattern\22:\22((((a{0,1000}){0,1000}){0,1000}){0,1000}){0,1000}\22}}}")
(func $before_describe
  (i32.store (i32.const 0x10018) (i32.const 0x300))
  (i32.store (i32.const 0x1001c) (i32.const 116)))
(data (i32.const 0x500) "harmless")
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $text (i32.const 0x500) (i32.const 8)))
