;; A component that does something else.
(component
  (core module $code (func (export "run")))
  (core instance $running (instantiate $code))
  (func $run (canon lift (core func $running "run")))
  (export "run" (func $run)))
