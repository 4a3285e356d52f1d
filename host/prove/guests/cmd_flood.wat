;; A command that writes 16 MiB to stdout and as much to stderr, all of it characters that JSON
;; writes in six bytes.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 4)
  (func (export "_start")
    (local $turns i32)
    (memory.fill (i32.const 65536) (i32.const 1) (i32.const 65536))
    (i32.store (i32.const 0) (i32.const 65536))
    (i32.store (i32.const 4) (i32.const 65536))
    (local.set $turns (i32.const 256))
    (loop $next
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
      (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
      (br_if $next (local.tee $turns (i32.sub (local.get $turns) (i32.const 1)))))))
