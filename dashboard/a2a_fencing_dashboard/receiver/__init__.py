"""OTLP in: decode, bound, acknowledge after commit.

`server` runs it. `otlp` is of use without a web server, so nothing is imported here.
"""
