;; Fills a table of 19,000 elements, again and again.
(table $t 19000 funcref)
(func $invoke (param i32 i32 i32 i32) (result i32)
  (loop $again
    (table.fill $t (i32.const 0) (ref.func $invoke) (i32.const 19000))
    (br $again))
  unreachable)
(elem declare func $invoke)
