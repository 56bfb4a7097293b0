"""The benchmark against what people use instead: `make bench`, explained in docs/benchmark.md."""
