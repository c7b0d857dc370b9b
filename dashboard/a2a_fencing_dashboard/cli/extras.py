"""Libraries that the base install does not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def needs_extra(name: str) -> Iterator[None]:
    """Around imports: what is missing becomes one line that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("a2a_fencing", "a2a_fencing_dashboard"):
            raise
        raise click.UsageError(f"needs {library}: pip install 'a2a-fencing[{name}]'") from error
