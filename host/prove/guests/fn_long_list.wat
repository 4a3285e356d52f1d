;; Gives 100,000 strings of 64 KiB each, all of them the same place in its memory.
(component
  (core module $code
    (memory (export "memory") 16)
    (func (export "run") (result i32)
      (local $at i32)
      (local.set $at (i32.const 131072))
      (loop $next
        (i32.store (local.get $at) (i32.const 64))
        (i32.store offset=4 (local.get $at) (i32.const 65536))
        (local.set $at (i32.add (local.get $at) (i32.const 8)))
        (br_if $next (i32.lt_u (local.get $at) (i32.const 931072))))
      (i32.store (i32.const 0) (i32.const 131072))
      (i32.store (i32.const 4) (i32.const 100000))
      (i32.const 0)))
  (core instance $running (instantiate $code))
  (func $run (result (list string))
    (canon lift (core func $running "run") (memory (core memory $running "memory"))))
  (export "fn-long-list" (func $run)))
