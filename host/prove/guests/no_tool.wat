;; A component that exports nothing that can be called.
(component
  (type $file (resource (rep i32)))
  (export "file" (type $file)))
