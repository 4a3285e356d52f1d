;; Exports functions of a resource alone, which nobody can name in JSON.
(component
  (type $file (resource (rep i32)))
  (export $exported "file" (type $file))
  (core module $code (func (export "take") (param i32)))
  (core instance $running (instantiate $code))
  (func $take (param "file" (own $exported)) (canon lift (core func $running "take")))
  (export "take" (func $take)))
