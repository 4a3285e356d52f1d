;; A command that makes a file in its current directory, and says `o` where it could and `n` where
;; not.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "made.txt")
  (func (export "_start")
    (i32.store8 (i32.const 16) (i32.const 110))
    (if (i32.eqz (call $open (i32.const 3) (i32.const 1) (i32.const 100) (i32.const 8)
          (i32.const 1) (i64.const 64) (i64.const 64) (i32.const 0) (i32.const 40)))
      (then (i32.store8 (i32.const 16) (i32.const 111))))
    (i32.store (i32.const 0) (i32.const 16))
    (i32.store (i32.const 4) (i32.const 1))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
