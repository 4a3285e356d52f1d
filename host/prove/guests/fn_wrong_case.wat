;; Gives the ninth case of an enum of two.
(component
  (core module $code (func (export "run") (result i32) (i32.const 9)))
  (core instance $running (instantiate $code))
  (type $answer (enum "yes" "no"))
  (export $exported "answer" (type $answer))
  (func $run (result $exported) (canon lift (core func $running "run")))
  (export "fn-wrong-case" (func $run)))
