;; A command that looks for what it was not given: variables, and files outside. It says a digit for
;; how many variables there are, and a letter for each of three paths that it opened: `o` = opened,
;; `n` = not.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get"
    (func $environ (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "../neighbour/note.txt")
  (data (i32.const 200) "/etc/passwd")
  (data (i32.const 300) "../../../../etc/passwd")
  (func $try (param $at i32) (param $path i32) (param $length i32)
    (i32.store8 (local.get $at) (i32.const 110))
    (if (i32.eqz (call $open (i32.const 3) (i32.const 1) (local.get $path) (local.get $length)
          (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 40)))
      (then (i32.store8 (local.get $at) (i32.const 111)))))
  (func (export "_start")
    (drop (call $environ (i32.const 32) (i32.const 36)))
    (i32.store8 (i32.const 16) (i32.add (i32.const 48) (i32.load (i32.const 32))))
    (call $try (i32.const 17) (i32.const 100) (i32.const 21))
    (call $try (i32.const 18) (i32.const 200) (i32.const 11))
    (call $try (i32.const 19) (i32.const 300) (i32.const 22))
    (i32.store (i32.const 0) (i32.const 16))
    (i32.store (i32.const 4) (i32.const 4))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
