;; Answers with bytes that are no UTF-8.
(data (i32.const 0x300) "fine \ff\fe\c0\80")
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $text (i32.const 0x300) (i32.const 9)))
