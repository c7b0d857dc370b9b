"""Why a fence does not let a request through, each with the HTTP status that says so."""

from __future__ import annotations

from typing import Any, ClassVar


class FenceError(Exception):
    """A request that must not take effect; the text explains.

    Attributes:
        status: HTTP status to answer with.
        title: The kind of problem, in a few words.
        details: Figures for the answer's body.
    """

    status: ClassVar[int]
    title: ClassVar[str]

    def __init__(self, text: str, **details: Any) -> None:
        super().__init__(text)
        self.details = details


class MissingTokenError(FenceError):
    """The request carries no fencing token."""

    status = 428
    title = "fencing token required"


class MalformedTokenError(FenceError):
    """The header is not a fencing token."""

    status = 400
    title = "malformed fencing token"


class ForgedTokenError(FenceError):
    """The token is not signed, or not with our secret."""

    status = 403
    title = "fencing token not genuine"


class ForeignTokenError(FenceError):
    """The token belongs to another task than the request is about."""

    status = 403
    title = "fencing token of another task"


class SupersededTokenError(FenceError):
    """Somebody with a higher token has the right to act now."""

    status = 412
    title = "superseded"


class FenceUnavailableError(FenceError):
    """The highest tokens cannot be read, so nobody is let through."""

    status = 503
    title = "fence unavailable"
