"""One colour and one shape per meaning, everywhere.

The colours are of middle lightness, so that the same one reads on a light and on a dark page, and stay
apart under the common colour-vision deficiencies; the shapes say the same without any colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from a2a_fencing import conventions as c


@dataclass(frozen=True, slots=True)
class Look:
    """How something is drawn.

    Attributes:
        color: ``#rrggbb``.
        shape: Plotly marker symbol.
        glyph: The same shape as a character, for tables and text.
    """

    color: str
    shape: str
    glyph: str


UNKNOWN_STATE: Final = Look("#828c9d", "circle-open-dot", "◌")

STATES: Final[Mapping[str, Look]] = {
    c.SUBMITTED: Look("#828c9d", "circle-open", "○"),
    c.WORKING: Look("#3b8fd9", "circle", "●"),
    c.INPUT_REQUIRED: Look("#b3860c", "triangle-right", "▶"),
    c.AUTH_REQUIRED: Look("#a67c52", "triangle-left", "◀"),
    c.COMPLETED: Look("#1a9e83", "square", "■"),
    c.CANCELED: Look("#9a6fd8", "diamond", "◆"),
    c.FAILED: Look("#d9722e", "triangle-up", "▲"),
    c.REJECTED: Look("#b0609a", "hexagon2", "⬢"),
}

VIOLATION: Final = Look("#d6304a", "x", "✖")
UNSURE: Final = Look("#b8841a", "diamond-open", "◇")
HELD: Final = Look("#6f86a6", "pentagon", "⛉")
"""A refused write: a shield that held. Its pentagon stands on its tip."""
CONFLICT: Final = Look("#6f86a6", "x-thin", "✕")
DROPPED: Final = Look("#6f86a6", "triangle-down-open", "▽")
READ: Final = Look("#828c9d", "circle-open", "○")
UNKNOWN_OUTCOME: Final = Look("#b8841a", "diamond-tall-open", "◊")
DISPATCH: Final = Look("#5b8c99", "arrow-up", "↑")
FAILED_DISPATCH: Final = Look("#5b8c99", "x-thin", "✕")
EXECUTION: Final = "#828c9d"

VERDICTS: Final[Mapping[str, Look]] = {
    c.VIOLATED: VIOLATION,
    c.UNKNOWN: UNSURE,
    c.FINE: Look("#1a9e83", "circle", "✓"),
}

_REPLICA_COLORS: Final = ("#3b7dd8", "#d99a2b", "#7a9a3a", "#c46fb0", "#4fa8b8", "#9a8478")
_REPLICA_DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def state_look(state: str | None) -> Look:
    """How a task state is drawn; a state this version does not know has a look of its own."""
    return STATES.get(state or "", UNKNOWN_STATE)


def replica_line(index: int) -> tuple[str, str]:
    """Colour and dash of a replica's line; `index` is its place in the order in which they started.

    Both together repeat only after 36 replicas.
    """
    size = len(_REPLICA_COLORS)
    return _REPLICA_COLORS[index % size], _REPLICA_DASHES[(index + index // size) % size]


def faded(color: str, opacity: float) -> str:
    """The colour as Plotly's ``rgba()`` with this opacity, 0 to 1."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"
