;; Makes a directory whose name is no UTF-8.
(import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $mounts (param i32)))
(import "wasi:filesystem/types@0.2.0" "[method]descriptor.create-directory-at" (func $mkdir (param i32 i32 i32 i32)))
(data (i32.const 0x300) "a\ff\fe")
(func $invoke (param i32 i32 i32 i32) (result i32)
  (call $mounts (i32.const 0x400))
  (call $mkdir (i32.load (i32.load (i32.const 0x400))) (i32.const 0x300) (i32.const 3) (i32.const 0x410))
  (call $text (i32.const 0x300) (i32.const 1)))
