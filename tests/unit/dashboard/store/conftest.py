from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Store


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the same store once more, as another process or the next one would."""
    opened: list[Store] = []

    def open_again() -> Store:
        opened.append(open_store(f"sqlite:///{tmp_path / 'facts.db'}"))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Callable[[], Store]) -> Store:
    return reopen()
