;; Grows by one page after the other until it is refused, and says so.
(data (i32.const 0x300) "no more memory")
(func $invoke (param i32 i32 i32 i32) (result i32)
  (loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 1)))))
  (call $text (i32.const 0x300) (i32.const 14)))
