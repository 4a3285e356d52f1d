;; Exports the contract's interface without its functions.
(component
  (instance $nothing)
  (export "belljar:tool/tools@0.1.0" (instance $nothing)))
