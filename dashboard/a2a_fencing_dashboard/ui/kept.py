"""Keeps what was drawn of data that has not changed since.

Each refresh draws the whole page, and much of it is what it was: the facts of a task that nobody writes
to, a chart whose newest bucket is still being filled. Making those again takes a third of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from itertools import count
from typing import Any, Final, TypeVar, cast

import streamlit as st

_MOST: Final = 32
"""Things that are kept; a long table is half a megabyte."""

_Made = TypeVar("_Made")
_numbers: Final = count()


def kept(name: str, shows: Hashable, make: Callable[[], _Made]) -> _Made:
    """What `make` made when it was asked last for the same, for whichever session; nobody changes it.

    What it draws is drawn again, by Streamlit, from the messages to the browser; no widget can be.

    Args:
        name: Tells apart what is made of the same data.
        shows: All that the result depends on.
        make: Makes it.
    """
    return cast("_Made", _kept(_number(name, shows), make))


@lru_cache(_MOST)
def _number(name: str, shows: Hashable) -> int:
    """A number for what is equal: Streamlit would take far longer to tell it apart."""
    return next(_numbers)


@st.cache_resource(show_spinner=False, max_entries=_MOST)
def _kept(number: int, _make: Callable[[], Any]) -> Any:
    return _make()
