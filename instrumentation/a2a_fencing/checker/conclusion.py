"""What a rule concludes before it is announced, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from a2a_fencing.checker.cluster import Cluster
from a2a_fencing.checker.incarnation import Incarnation
from a2a_fencing.facts import Fact

SETTLE_NS = 5_000_000_000
"""How long a fact may be on its way before its absence means something, ns."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the checker.

    Attributes:
        name: One of `conventions.RULES`.
        severity: How bad a violation is, unless a conclusion says otherwise.
        statement: When it is violated.
        guarantee: What a violation breaks, as a sentence.
    """

    name: str
    severity: str
    statement: str
    guarantee: str


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A finding in the making; it becomes one when it is announced.

    Attributes:
        rule: The rule that is violated.
        key: `Finding.key`.
        witness: The facts that show it, in the order in which they are told.
        explanation: One sentence.
        severity: When it is not the rule's own.
        suspected: Whether even a complete history would not prove it.
        if_complete: Whether a missing fact could refute it, so that it is only proven without gaps.
        not_before: Set when it rests on the *absence* of a fact: the earliest time, ns, at which that
            means something, as the fact may still be on its way. It is withheld while any fact is
            missing.
    """

    rule: Rule
    key: str
    witness: tuple[Fact, ...]
    explanation: str
    severity: str | None = None
    suspected: bool = False
    if_complete: bool = False
    not_before: int | None = None


Judge = Callable[[Incarnation, Any, Cluster], Iterable[Conclusion]]
"""Judges one thing of a scope: a version, an execution, a dispatch attempt, a write or the whole."""


@dataclass(frozen=True, slots=True)
class Check:
    """How one scope of a rule is judged; a rule may look at several."""

    rule: Rule
    scope: str
    judge: Judge


def at(cluster: Cluster, fact: Fact) -> str:
    """``v3, api-1``: where a fact stands in the history, for people."""
    name = cluster.name(fact.replica)
    return name if fact.version is None else f"v{fact.version}, {name}"


def state_at(cluster: Cluster, state: str | None, fact: Fact | None) -> str:
    """``CANCELED (v3, api-1)``."""
    return f"{state}" if fact is None else f"{state} ({at(cluster, fact)})"


def by_the_clocks(cluster: Cluster, one: Fact, other: Fact) -> str:
    """``by the clocks, which differ by at most 20 ms``."""
    skew = cluster.skew(one.replica, other.replica)
    return "by the clocks" if skew is None else f"by the clocks, at most {duration(skew)} apart"


def duration(ns: int) -> str:
    """``20 ms``, ``1.5 s``."""
    return f"{ns / 1e6:g} ms" if ns < 10**9 else f"{ns / 1e9:g} s"
