module conformance

go 1.24

require belljar.local/tool v0.1.0

replace belljar.local/tool => ./sdk/go
