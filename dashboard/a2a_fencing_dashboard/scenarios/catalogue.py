"""Every scenario and what must come out of it."""

from __future__ import annotations

from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.guard import CONSUMER, STORE
from a2a_fencing_dashboard.scenarios.figures import Figures, Scenario
from a2a_fencing_dashboard.scenarios.killed import accepted_then_killed
from a2a_fencing_dashboard.scenarios.stale_burst import stale_burst
from a2a_fencing_dashboard.scenarios.stale_dispatch import stale_dispatch

SCENARIOS: Final = (
    Scenario(
        name="normal-control",
        story="A charges a card through a fenced resource and completes; nobody interferes.",
        expected=Figures(attempts=1, accepted=1, conflicts=0, stored=c.COMPLETED, streamed=c.COMPLETED),
        play=stale_dispatch(finished_meanwhile=False, fenced=True),
    ),
    Scenario(
        name="terminal-task-only",
        story="B records FAILED before A charges: the store refuses A, the world serves it.",
        expected=Figures(attempts=1, accepted=1, conflicts=1, stored=c.FAILED, streamed=c.FAILED),
        play=stale_dispatch(finished_meanwhile=True, fenced=False),
    ),
    Scenario(
        name="terminal-with-resource-fence",
        story="The same, and the resource looks at the fencing token.",
        expected=Figures(attempts=1, accepted=0, conflicts=1, stored=c.FAILED, streamed=c.FAILED),
        play=stale_dispatch(finished_meanwhile=True, fenced=True),
    ),
    Scenario(
        name="remote-cancel-stale-burst",
        story="B cancels; A's queued artifact is refused, its queued COMPLETED is not. No guard.",
        expected=Figures(
            conflicts=1,
            terminal_rejected=0,
            dropped=1,
            overwritten=1,
            stored=c.COMPLETED,
            streamed=c.CANCELED,
        ),
        play=stale_burst(),
    ),
    Scenario(
        name="remote-cancel-guard-store",
        story="The same with the guard's store rule alone.",
        expected=Figures(
            conflicts=1,
            terminal_rejected=1,
            dropped=2,
            overwritten=0,
            stored=c.CANCELED,
            streamed=c.CANCELED,
        ),
        play=stale_burst(STORE),
    ),
    Scenario(
        name="remote-cancel-guard-consumer",
        story="The same with the guard's consumer rule alone, on a store that would accept.",
        expected=Figures(
            conflicts=1,
            terminal_rejected=0,
            dropped=2,
            overwritten=0,
            stored=c.CANCELED,
            streamed=c.CANCELED,
        ),
        play=stale_burst(CONSUMER),
    ),
    Scenario(
        name="remote-cancel-guard-both",
        story="The same with both rules.",
        expected=Figures(
            conflicts=1,
            terminal_rejected=0,
            dropped=2,
            overwritten=0,
            stored=c.CANCELED,
            streamed=c.CANCELED,
        ),
        play=stale_burst(True),
    ),
    Scenario(
        name="accepted-then-killed",
        story="The resource accepts, SIGKILL ends A before it saves, a sweeper records FAILED.",
        expected=Figures(
            attempts=1,
            accepted=1,
            conflicts=0,
            evidence=c.UNKNOWN,
            stored=c.FAILED,
            streamed=c.FAILED,
        ),
        play=accepted_then_killed,
    ),
)
