"""Where on the time axis each fact of a task is drawn.

Facts that decide something often lie a millisecond apart, with seconds of nothing between them. So the
usual axis gives each fact one step and says how long an idle stretch was; the other one is to scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from a2a_fencing_dashboard.ui.words import duration, elapsed

_IDLE_MIN_NS: Final = 20_000_000
_IDLE_FACTOR: Final = 8
_IDLE_PART: Final = 0.1
_MAX_TICKS: Final = 8
_NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Idle:
    """A stretch without facts, drawn shorter than it was."""

    start: float
    end: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """Positions for facts.

    Attributes:
        positions: One per fact, never decreasing.
        ticks: Position and label.
        idle: Stretches that are drawn shorter than they were.
        start, end: The range to draw, with a margin on both sides.
    """

    positions: tuple[float, ...]
    ticks: tuple[tuple[float, str], ...]
    idle: tuple[Idle, ...]
    start: float
    end: float


def by_order(times: Sequence[int]) -> Axis:
    """One step a fact; an idle stretch takes one step more and is labelled.

    Args:
        times: ns, never decreasing.
    """
    gaps = [later - earlier for earlier, later in pairwise(times)]
    idle_ns = _idle_ns(gaps)
    positions = [0.0] if times else []
    idle: list[Idle] = []
    for gap in gaps:
        before = positions[-1]
        if gap >= idle_ns:
            positions.append(before + 2)
            idle.append(Idle(before + 0.6, before + 1.4, duration(gap)))
        else:
            positions.append(before + 1)
    return _axis(times, positions, tuple(idle), margin=0.8)


def _idle_ns(gaps: Sequence[int]) -> float:
    """From when on a gap is idle: long in itself, beside the others, and as a part of the whole."""
    if not gaps:
        return 0
    return max(_IDLE_MIN_NS, _IDLE_FACTOR * median(gaps), _IDLE_PART * sum(gaps))


def to_scale(times: Sequence[int]) -> Axis:
    """Milliseconds since the first fact.

    Args:
        times: ns, never decreasing.
    """
    positions = [(time - times[0]) / _NS_PER_MS for time in times]
    return _axis(times, positions, (), margin=max(1.0, positions[-1] * 0.04) if positions else 1.0)


def _axis(
    times: Sequence[int], positions: Sequence[float], idle: tuple[Idle, ...], margin: float
) -> Axis:
    if not positions:
        return Axis((), (), (), 0.0, 1.0)
    return Axis(
        tuple(positions),
        _ticks(times, positions),
        idle,
        positions[0] - margin,
        positions[-1] + 2 * margin,
    )


def _ticks(times: Sequence[int], positions: Sequence[float]) -> tuple[tuple[float, str], ...]:
    """Ticks at facts, at least an eighth of the axis apart."""
    least = (positions[-1] - positions[0]) / _MAX_TICKS
    ticks: list[tuple[float, str]] = []
    for time, position in zip(times, positions, strict=True):
        if not ticks or position - ticks[-1][0] >= max(least, 1e-9):
            since = time - times[0]
            ticks.append((position, f"+{elapsed(since)}" if since else "0"))
    return tuple(ticks)
