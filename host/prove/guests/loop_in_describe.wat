;; Never returns from `describe`.
(func $before_describe (loop $again (br $again)))
(func $invoke (param i32 i32 i32 i32) (result i32) unreachable)
