;; Exports the contract's functions with types of its own.
(component
  (core module $code
    (memory (export "memory") 1)
    (func (export "describe") (result i32) (i32.const 0))
    (func (export "invoke") (param i32)))
  (core instance $running (instantiate $code))
  (func $describe (result string)
    (canon lift (core func $running "describe") (memory (core memory $running "memory"))))
  (func $invoke (param "pointer" u32) (canon lift (core func $running "invoke")))
  (instance $tools (export "describe" (func $describe)) (export "invoke" (func $invoke)))
  (export "belljar:tool/tools@0.1.0" (instance $tools)))
