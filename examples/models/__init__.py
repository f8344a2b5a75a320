"""Models with real data, used by the examples, the tests and the benchmarks."""
