;; Never gets past its start function.
(func $begin (loop $again (br $again)))
(start $begin)
(func $invoke (param i32 i32 i32 i32) (result i32) unreachable)
