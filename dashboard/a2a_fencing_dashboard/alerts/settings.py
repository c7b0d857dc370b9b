"""Where alerts go, and which."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from a2a_fencing import conventions as c

SEVERITIES: Final = (c.CRITICAL, c.WARNING)
"""Of findings that violate; the others are nobody's alert."""


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """What `Alerts` is made of; travels to the receiver's process.

    Attributes:
        webhooks: URLs that messages are posted to.
        alertmanagers: Base URLs of Alertmanagers, as a Prometheus would be given them.
        secret: Key that webhook messages are signed with, ``whsec_`` and base64; None: not signed.
        severities: Findings of these are told.
        dashboard_url: Base URL of the dashboard, for links; None: no links.
        gather_s: Seconds that the first of several findings waits for the others.
        look_s: Seconds between two looks at what is new.
        resend_s: Seconds between two messages to an Alertmanager to which nothing new is to be said.
        stands_s: Seconds after which an Alertmanager is no longer told of the newest finding of a kind.
        timeout_s: Seconds for one attempt.
        attempts: How often an endpoint may answer that it cannot take a message.
        parcel: Findings in one message, at most.
        drain_s: Seconds at the end for what has just been found.
    """

    webhooks: tuple[str, ...] = ()
    alertmanagers: tuple[str, ...] = ()
    secret: str | None = None
    severities: tuple[str, ...] = SEVERITIES
    dashboard_url: str | None = None
    gather_s: float = 1.0
    look_s: float = 0.5
    resend_s: float = 60.0
    stands_s: float = 3600.0
    timeout_s: float = 10.0
    attempts: int = 100
    parcel: int = 100
    drain_s: float = 2.0

    def linking_to(self, dashboard_url: str) -> AlertSettings:
        """The same with links to this dashboard, where none was named."""
        return self if self.dashboard_url else replace(self, dashboard_url=dashboard_url)


def place(url: str) -> str:
    """Where a URL leads, to be shown: the rest of it may be a secret."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
