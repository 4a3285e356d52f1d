;; Never returns from `invoke`.
(func $invoke (param i32 i32 i32 i32) (result i32)
  (loop $again (br $again)) unreachable)
