;; Exports a function with the name of a built-in tool.
(component
  (core module $code (func (export "run")))
  (core instance $running (instantiate $code))
  (func $run (canon lift (core func $running "run")))
  (export "file-read" (func $run)))
