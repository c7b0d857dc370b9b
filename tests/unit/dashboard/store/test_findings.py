"""A finding that is told anew, in other words or more certain, stays the finding that it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing_dashboard.store.protocol import Batch, FindingChange, FindingRow, Store, Window
from support.tale import Tale


@pytest.fixture
def suspected(store: Store) -> Finding:
    """A finding that has been stored."""
    tale = Tale()
    fact = tale.replica("a").write(c.SUBMITTED, to=1)
    found = Finding(
        c.TERMINAL_OVERWRITTEN, c.CRITICAL, c.SUSPECTED, tale.key, (fact.id,), "perhaps", "v1"
    )
    store.commit(Batch([fact], changes=[FindingChange(found)]), now_unix_nano=1)
    return found


def rows(store: Store) -> list[FindingRow]:
    return store.findings(Window())[0]


def test_it_keeps_its_number_and_when_it_was_concluded(store: Store, suspected: Finding) -> None:
    (before,) = rows(store)
    proven = replace(suspected, certainty=c.PROVEN, explanation="certainly")
    changes = [FindingChange(suspected, retracted=True), FindingChange(proven)]
    store.commit(Batch(changes=changes), now_unix_nano=2)
    (after,) = rows(store)
    assert after.finding == proven
    assert (after.id, after.seen_unix_nano) == (before.id, before.seen_unix_nano)
    assert store.overview(Window()).violations == {c.TERMINAL_OVERWRITTEN: 1}


def test_another_one_never_gets_the_number_of_one_that_was_taken_back(
    store: Store, suspected: Finding
) -> None:
    (before,) = rows(store)
    store.commit(Batch(changes=[FindingChange(suspected, retracted=True)]), now_unix_nano=2)
    store.commit(Batch(changes=[FindingChange(replace(suspected, key="v2"))]), now_unix_nano=3)
    (after,) = rows(store)
    assert after.id > before.id
