"""Libraries that the base install does not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import util

import click


def require(extra: str, *libraries: str) -> None:
    """Makes sure of libraries that another process will import.

    Raises:
        click.UsageError: One is missing; the text says which extra to install.
    """
    for library in libraries:
        if util.find_spec(library) is None:
            raise _missing(library, extra)


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Around imports: what is missing becomes one line that says which extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("a2a_fencing", "a2a_fencing_dashboard"):
            raise
        raise _missing(library, extra) from error


def _missing(library: str, extra: str) -> click.UsageError:
    return click.UsageError(f"needs {library}: pip install 'a2a-fencing[{extra}]'")
