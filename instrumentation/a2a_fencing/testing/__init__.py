"""For tests: facts in the process, without exporter and network, and a store to write them against."""

from a2a_fencing.testing.capture import History, capture
from a2a_fencing.testing.store import InMemoryVersionedTaskStore

__all__ = ["History", "InMemoryVersionedTaskStore", "capture"]
