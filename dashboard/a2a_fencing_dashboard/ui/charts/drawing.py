"""What every part of a task's timeline needs to know."""

from __future__ import annotations

from dataclasses import dataclass

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.ui.charts.axis import Axis
from a2a_fencing_dashboard.ui.charts.lanes import Lanes
from a2a_fencing_dashboard.ui.charts.schedule import Schedule
from a2a_fencing_dashboard.ui.charts.text import figure_text
from a2a_fencing_dashboard.ui.story import sentence
from a2a_fencing_dashboard.ui.words import Names

Placed = tuple[Fact, float]
"""A fact and its x."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Facts in order, and where they go.

    Attributes:
        schedule: The facts.
        axis: Their x.
        lanes: Their y.
        names: What replicas are called.
    """

    schedule: Schedule
    axis: Axis
    lanes: Lanes
    names: Names

    def placed(self) -> list[Placed]:
        """All facts in order."""
        return list(zip(self.schedule.facts, self.axis.positions, strict=True))

    def accepted(self) -> list[Placed]:
        """The writes that the store took."""
        return [(f, x) for f, x in self.placed() if f.kind == c.WRITE and f.outcome == c.ACCEPTED]

    def hover(self, fact: Fact) -> str:
        """What a fact says under the pointer."""
        return f"{figure_text(sentence(fact, self.names), 300)}<br><i>{figure_text(fact.id)}</i>"
