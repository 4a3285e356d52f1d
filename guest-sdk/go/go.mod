module belljar.local/tool

go 1.24
