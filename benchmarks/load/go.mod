module twinlake/benchmarks/load

go 1.22
