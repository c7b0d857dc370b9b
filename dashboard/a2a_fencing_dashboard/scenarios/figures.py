"""What a scenario expects and what was observed: the same figures twice, to be compared."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one run; None where a scenario has no such figure.

    Attributes:
        attempts: Dispatch attempts that reached the resource.
        accepted: Those that it accepted: effects.
        conflicts: Writes of the old writer that were refused because somebody else had written.
        terminal_rejected: Writes that were refused because the task was finished.
        dropped: Events of the old writer that reached nobody.
        overwritten: Terminal states that were replaced by another, proven.
        evidence: Outcome of the attempt as the receiver of facts knows it.
        stored: The state that is stored in the end.
        streamed: The last state that a client's stream from the other replica told.
    """

    attempts: int | None = None
    accepted: int | None = None
    conflicts: int | None = None
    terminal_rejected: int | None = None
    dropped: int | None = None
    overwritten: int | None = None
    evidence: str | None = None
    stored: str | None = None
    streamed: str | None = None

    def __iter__(self) -> Iterator[tuple[str, int | str | None]]:
        """Names and values, in order."""
        for field in fields(self):
            yield field.name, getattr(self, field.name)


Run = Callable[[str], Coroutine[Any, Any, Figures]]
"""Plays a scenario on the database of this DSN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario that can be run.

    Attributes:
        name: As the command line takes it.
        story: What happens in it, in a sentence.
        expected: What must come out; figures left out are not looked at.
        play: Runs it.
    """

    name: str
    story: str
    expected: Figures
    play: Run


@dataclass(frozen=True, slots=True)
class Result:
    """A scenario that was run.

    Attributes:
        scenario: Which one.
        observed: What came out.
        error: Why it could not be played to its end, or None.
    """

    scenario: Scenario
    observed: Figures
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it was played and every figure is as expected."""
        return self.error is None and not self.differences

    @property
    def differences(self) -> dict[str, tuple[int | str, int | str | None]]:
        """By name, what was expected and what was observed instead; none when it was not played."""
        if self.error is not None:
            return {}
        observed = dict(self.observed)
        return {
            name: (value, observed[name])
            for name, value in self.scenario.expected
            if value is not None and observed[name] != value
        }
