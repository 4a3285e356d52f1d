;; Exports a function that never returns.
(component
  (core module $code (func (export "run") (loop $again (br $again))))
  (core instance $running (instantiate $code))
  (func $run (canon lift (core func $running "run")))
  (export "fn-loop" (func $run)))
