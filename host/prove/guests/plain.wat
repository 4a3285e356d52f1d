;; Answers with one word.
(data (i32.const 0x300) "harmless")
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $text (i32.const 0x300) (i32.const 8)))
