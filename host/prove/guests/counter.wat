;; Answers with how often its store was called: one letter `x` for each time.
(global $calls (mut i32) (i32.const 0))
(data (i32.const 0x300) "xxxxxxxxxxxxxxxx")
(func $invoke (param i32 i32 i32 i32) (result i32)
  (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
  (call $text (i32.const 0x300) (global.get $calls)))
