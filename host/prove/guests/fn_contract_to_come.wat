;; Exports the contract in a version that is not there yet, with functions of its own.
(component
  (core module $code (func (export "run")))
  (core instance $running (instantiate $code))
  (func $run (canon lift (core func $running "run")))
  (instance $tools (export "invoke" (func $run)))
  (export "belljar:tool/tools@0.9.0" (instance $tools)))
