"""What pytest loads in every run of every project that has this installed, used or not.

It stands outside `a2a_fencing`, whose import brings the SDK and OpenTelemetry, and loads the plugin
itself, `a2a_fencing.testing.plugin`, when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from a2a_fencing.testing import History

_NAME: Final = "a2a_fencing"
_MARKER: Final = (
    "a2a_fencing(*, allow=(), audit=False, guard=False): watch the A2A servers of this test and fail it"
    " when they violate a rule that is not among the allowed ones"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--a2a-fencing``."""
    parser.getgroup("a2a-fencing").addoption(
        "--a2a-fencing",
        action="store_true",
        help="watch the A2A servers of every test, and fail the test when they violate a fencing rule",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker; loads the plugin where every test is to be watched."""
    config.addinivalue_line("markers", _MARKER)
    if config.getoption(_NAME):
        _load(config)


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Loads the plugin where a collected test asks for it."""
    if any(asks_for_it(item) for item in items):
        _load(config)


def asks_for_it(item: pytest.Item) -> bool:
    """Whether a test has the marker or the fixture."""
    marked = item.get_closest_marker(_NAME) is not None
    return marked or _NAME in getattr(item, "fixturenames", ())


@pytest.fixture(name=_NAME)
def _history(request: pytest.FixtureRequest) -> History:
    """Watches the A2A servers of this test; what they do is in its `facts`."""
    history: History = _load(request.config).watched(request.node)
    return history


def _load(config: pytest.Config) -> Any:
    from a2a_fencing.testing import plugin

    if not config.pluginmanager.is_registered(plugin):
        config.pluginmanager.register(plugin, "a2a-fencing")
    return plugin
