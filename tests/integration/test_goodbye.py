"""Who stops says so: only of a process that was cut off may something be missing at its end."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.checker import check
from a2a_fencing.facts import Fact
from support.otlp_sink import otlp_sink

ENDS = {
    "uninstruments": "a2a_fencing.uninstrument()",
    "just ends": "",
    "raises": "raise SystemExit(0)",
    "forks": "child = os.fork()\nif child: os.waitpid(child, 0)",
}


def heartbeats_of(end: str) -> dict[str, list[Fact]]:
    """What a process that ends like this told, by replica."""
    with otlp_sink() as sink:
        program = f"import os, a2a_fencing\na2a_fencing.instrument(endpoint={sink.url!r})\n{end}"
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
        facts = sink.facts_in_logs()
    told = defaultdict(list)
    for fact in facts:
        told[fact.replica].append(fact)
    assert check(facts).complete
    return told


@pytest.mark.parametrize("end", ENDS)
def test_the_last_heartbeat_says_that_none_follows(end: str) -> None:
    told = heartbeats_of(ENDS[end])
    assert len(told) == (2 if end == "forks" else 1)
    for facts in told.values():
        assert [fact.kind for fact in facts] == [c.HEARTBEAT, c.HEARTBEAT]
        assert [fact.id.rpartition(":")[2] for fact in facts] == ["1", "2"]
        assert facts[0].interval_s == 5.0
        assert facts[1].interval_s == 0.0
