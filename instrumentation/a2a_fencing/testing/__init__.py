"""For tests: facts in the process, without exporter and network."""

from a2a_fencing.testing.capture import History, capture

__all__ = ["History", "capture"]
