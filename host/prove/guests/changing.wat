;; Ends its name with another letter each time that it is asked.
(import "wasi:random/random@0.2.0" "get-random-bytes" (func $random (param i64 i32)))
(func $before_describe
  (call $random (i64.const 8) (i32.const 0x400))
  (i32.store8 offset=7 (i32.load (i32.const 0x10008))
    (i32.add (i32.const 0x61)
      (i32.rem_u (i32.load (i32.load (i32.const 0x400))) (i32.const 26)))))
(data (i32.const 0x300) "harmless")
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $text (i32.const 0x300) (i32.const 8)))
