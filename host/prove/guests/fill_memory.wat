;; Fills 192 MiB at a time: one instruction that does not yield, again and again.
(memory (export "memory") 3100)
(func $invoke (param i32 i32 i32 i32) (result i32)
  (loop $again
    (memory.fill (i32.const 0x30000) (i32.const 1) (i32.const 201326592))
    (br $again))
  unreachable)
