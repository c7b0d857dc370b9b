"""Putting context variables back."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, TypeVar

from opentelemetry import context as otel_context

_T = TypeVar("_T")


def restore(variable: ContextVar[_T], token: Token[_T]) -> None:
    """Puts a variable back, where this is still the context in which it was set.

    A coroutine that is thrown away unfinished is closed wherever that happens to be: there nothing was
    set, and whoever closes it must not hear of it.
    """
    try:
        variable.reset(token)
    except ValueError:
        return


def detach(token: Any) -> None:
    """The same for OTel's context, whose own `detach` logs an error instead."""
    if isinstance(token, Token):
        restore(token.var, token)
    else:  # of another runtime than the default one
        otel_context.detach(token)
