;; Gives bytes that are no UTF-8 as a string.
(component
  (core module $code
    (memory (export "memory") 1)
    (data (i32.const 16) "\c3\28\ff")
    (func (export "run") (result i32)
      (i32.store (i32.const 0) (i32.const 16))
      (i32.store (i32.const 4) (i32.const 3))
      (i32.const 0)))
  (core instance $running (instantiate $code))
  (func $run (result string)
    (canon lift (core func $running "run") (memory (core memory $running "memory"))))
  (export "fn-bad-text" (func $run)))
