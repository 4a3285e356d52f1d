module word_count

go 1.24

require belljar.local/tool v0.2.0

replace belljar.local/tool => ./sdk/go
