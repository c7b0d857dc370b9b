"""What every test gets."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_INTEGRATION = Path(__file__).parent / "integration"


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts background jobs with Ctrl-C ignored, and children inherit that; some tests press it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "integration: needs processes, databases or a browser; not quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _INTEGRATION in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Streamlit's AppTest makes the page `__main__`, which every process started later would run."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
