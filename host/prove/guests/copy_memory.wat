;; Copies 96 MiB at a time within its memory, again and again.
(memory (export "memory") 3100)
(func $invoke (param i32 i32 i32 i32) (result i32)
  (loop $again
    (memory.copy (i32.const 0x30000) (i32.const 100663296) (i32.const 100000000))
    (br $again))
  unreachable)
