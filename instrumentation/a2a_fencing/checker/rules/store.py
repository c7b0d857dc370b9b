"""What fences at all: unfenced-store."""

from __future__ import annotations

from a2a_fencing import conventions as c
from a2a_fencing.checker.conclusion import Rule
from a2a_fencing.checker.report import Finding
from a2a_fencing.facts import Fact, TaskKey

UNFENCED = Rule(
    c.UNFENCED_STORE,
    c.INFO,
    "the store does not version; CAS protects nothing here",
    "nothing is broken: this store promises no fence",
)


def unfenced(write: Fact, task: TaskKey) -> Finding:
    """The finding of a store, once, told by its first write that got no version."""
    return Finding(
        UNFENCED.name,
        UNFENCED.severity,
        c.PROVEN,
        task,
        (write.id,),
        f"{task.store} keeps no versions: nothing there fences one writer from another",
        task.store,
    )
