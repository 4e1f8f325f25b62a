"""Benchmarks: ``python -m benchmarks`` (or ``make bench``) runs them and keeps the figures."""
