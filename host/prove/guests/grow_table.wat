;; Grows a table until it is refused, and says so.
(table $t 1 funcref)
(data (i32.const 0x300) "no larger table")
(func $invoke (param i32 i32 i32 i32) (result i32)
  (loop $again
    (br_if $again (i32.ne (i32.const -1) (table.grow $t (ref.null func) (i32.const 1000)))))
  (call $text (i32.const 0x300) (i32.const 15)))
