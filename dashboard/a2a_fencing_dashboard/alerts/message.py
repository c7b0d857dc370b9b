"""What a webhook is told: changes to findings as JSON, and the signature that goes with them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Final

import msgspec
from standardwebhooks import Webhook

from a2a_fencing.checker import Finding
from a2a_fencing_dashboard.alerts.links import task_link
from a2a_fencing_dashboard.store.outbox import NEW, UNMUTED, Change

TYPE: Final = "a2a_fencing.alerts"
_WITNESSES: Final = 100
"""How many facts a message names as a finding's witness."""


def telling(changes: Iterable[Change], severities: Collection[str]) -> list[Change]:
    """Those worth telling: of the wanted severities, each finding once, as it is at last.

    What appeared and went again within one message was never there.
    """
    last: dict[str, Change] = {}
    fresh: dict[str, str] = {}
    for change in changes:
        name = fingerprint(change.finding)
        if name not in last and change.reason in (NEW, UNMUTED):
            fresh[name] = change.reason
        last[name] = change
    return [
        replace(change, reason=fresh.get(name, change.reason))
        for name, change in last.items()
        if change.finding.severity in severities and (change.stands or name not in fresh)
    ]


def body(changes: Iterable[Change], *, dropped: int, at: float, dashboard_url: str | None) -> bytes:
    """The message as it is posted.

    Args:
        changes: What it tells.
        dropped: How many changes before these were given up.
        at: When the last of them was concluded, seconds since 1970.
        dashboard_url: For links, or None.
    """
    alerts = [_alert(change, dashboard_url) for change in changes]
    data = {"alerts": alerts, "dropped": dropped}
    return msgspec.json.encode({"type": TYPE, "timestamp": _time(at), "data": data})


def headers(name: str, now: float, content: bytes, secret: str | None) -> dict[str, str]:
    """Headers after the Standard Webhooks specification.

    Args:
        name: The message's, the same in each attempt.
        now: Time of this attempt, seconds since 1970.
        content: The body.
        secret: What to sign with; None leaves the signature out.
    """
    at = datetime.fromtimestamp(int(now), timezone.utc)
    found = {"webhook-id": name, "webhook-timestamp": str(int(now))}
    if secret is not None:
        found["webhook-signature"] = Webhook(secret).sign(name, at, content.decode())
    return found


def fingerprint(finding: Finding) -> str:
    """The name under which all changes to one finding are told."""
    task = finding.task
    identity = (task.store, task.owner, task.task_id, task.incarnation, finding.rule, finding.key)
    return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:32]


def _alert(change: Change, dashboard_url: str | None) -> dict[str, Any]:
    finding = change.finding
    task = finding.task
    return {
        "id": fingerprint(finding),
        "status": "firing" if change.stands else "resolved",
        "reason": change.reason,
        "rule": finding.rule,
        "severity": finding.severity,
        "certainty": finding.certainty,
        "explanation": finding.explanation,
        "task": {
            "store": task.store,
            "owner": task.owner,
            "task_id": task.task_id,
            "incarnation": task.incarnation,
        },
        "run": change.run,
        "witness": finding.witness[:_WITNESSES],
        "found_at": _time(change.seen_unix_nano / 1e9),
        "url": task_link(dashboard_url, task, change.run),
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")
