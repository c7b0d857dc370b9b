"""Versions as stores give them."""

from __future__ import annotations

import pytest

from a2a_fencing.facts import Version
from a2a_fencing.hooks.sdk import find
from a2a_fencing.hooks.tasks import version_of

TaskVersion = find("a2a.server.cluster.version:TaskVersion")


class Revision(int):
    """A number with a name, as a store may count."""


@pytest.mark.parametrize(
    ("value", "told"),
    [(1, 1), (Revision(10), 10), ("2026-11-30", "2026-11-30"), (1.5, "1.5"), (0, None)],
)
def test_numbers_stay_numbers_and_what_is_no_text_becomes_one(value: object, told: Version) -> None:
    version = version_of(TaskVersion(value))
    assert version == told
    assert isinstance(version, type(told))


def test_no_version_is_none() -> None:
    assert version_of(None) is None
