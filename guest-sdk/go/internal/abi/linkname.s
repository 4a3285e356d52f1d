// With a file of assembly, a function of the runtime can be declared without its body.
