"""Benchmarks: the programs and their yardsticks, timing in turn, tables, plots, and the machine."""
