"""Fencing tokens and idempotency keys as HTTP headers.

Both are structured fields (RFC 9651). ``Idempotency-Key`` is the IETF draft's; ours reads

    A2A-Fencing-Token: 3;task="7f3c";scope="9b1e22c7e0f45a10";dispatch="<id>";attempt=1;sig=:...:

The scope tells equal task ids of different stores and owners apart without naming either to the
receiver.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from http_sf import DisplayString, StructuredFieldError, parse, ser

from a2a_fencing.facts import TaskKey
from a2a_fencing.fencing.errors import ForgedTokenError, MalformedTokenError
from a2a_fencing.scoped import digest, is_scope, scope_of, scoped

TOKEN_HEADER: Final = "A2A-Fencing-Token"
IDEMPOTENCY_HEADER: Final = "Idempotency-Key"

_LONGEST: Final = 4096
_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:a2a-fencing:idempotency-key")


@dataclass(frozen=True, slots=True)
class FencingToken:
    """The right to act on a task, as far as one execution has it.

    Attributes:
        value: Grows whenever the right moves on; at least 1.
        task_id: A2A task id.
        scope: Tells equal task ids of different stores and owners apart.
        dispatch_id: The dispatch that carries it, or None.
        attempt: Attempt of that dispatch, or None.
    """

    value: int
    task_id: str
    scope: str
    dispatch_id: str | None = None
    attempt: int | None = None

    @classmethod
    def of(cls, key: TaskKey, value: int, **about: Any) -> FencingToken:
        """The token of a task."""
        return cls(value, key.task_id, scope_of(key), **about)

    @classmethod
    def after(cls, key: TaskKey, version: int) -> FencingToken:
        """What takes the right away from everybody who started before the write of this version.

        Args:
            key: The task.
            version: The version that the store gave to the write by which the right moved on: a
                cancel, a sweep, an end.
        """
        return cls.of(key, version + 1)

    @property
    def subject(self) -> str:
        """Names the task among all tasks, in a fixed length."""
        return digest(self.scope, self.task_id)

    @property
    def task(self) -> TaskKey:
        """Names the task in facts, without its store and owner."""
        return scoped(self.task_id, self.scope)

    def to_header(self, secret: str | None = None) -> str:
        """The header's value, signed when there is a secret."""
        params = self._parameters()
        if secret is not None:
            params["sig"] = _signature(self.value, params, secret)
        return ser((self.value, params))

    @classmethod
    def from_header(cls, text: str, secret: str | None = None) -> FencingToken:
        """Reads the header.

        Args:
            text: The header's value.
            secret: The secret tokens are signed with; None: signatures are not looked at.

        Raises:
            MalformedTokenError: It is no fencing token.
            ForgedTokenError: There is a secret and the token is not signed with it.
        """
        if len(text) > _LONGEST:
            raise MalformedTokenError(f"{TOKEN_HEADER} is longer than {_LONGEST} characters")
        try:
            item: Any = parse(text.encode("ascii"), tltype="item")
        except (StructuredFieldError, UnicodeEncodeError, TypeError, ValueError) as error:
            raise MalformedTokenError(f"{TOKEN_HEADER} is not a structured field: {error}") from None
        value, params = item
        signature = params.pop("sig", None)
        token = _checked(value, params)
        if secret is not None and not (
            isinstance(signature, bytes)
            and hmac.compare_digest(signature, _signature(value, token._parameters(), secret))
        ):
            raise ForgedTokenError(f"{TOKEN_HEADER} is not signed with the secret of this resource")
        return token

    def _parameters(self) -> dict[str, Any]:
        params: dict[str, Any] = {"task": _text(self.task_id), "scope": self.scope}
        if self.dispatch_id is not None and self.attempt is not None:
            params |= {"dispatch": _text(self.dispatch_id), "attempt": self.attempt}
        return params


def idempotency_key(key: TaskKey, name: str, logical_key: str) -> str:
    """The header that stays the same for one logical action, whoever tries it and how often.

    Args:
        key: The task on whose behalf.
        name: What is dispatched.
        logical_key: Names the action within the task.
    """
    logical = json.dumps((key.store, key.owner, key.task_id, name, logical_key))
    return ser(str(uuid.uuid5(_NAMESPACE, logical)))


def find(headers: Mapping[str, str], name: str) -> str | None:
    """A header's value, whatever the case of its name."""
    wanted = name.lower()
    return next((value for key, value in headers.items() if key.lower() == wanted), None)


def _text(value: str) -> str | DisplayString:
    plain = value.isascii() and value.isprintable()
    return value if plain else DisplayString(value)


def _checked(value: Any, params: Mapping[str, Any]) -> FencingToken:
    if type(value) is not int or value < 1:
        raise MalformedTokenError(f"{TOKEN_HEADER} is not a whole number from 1")
    task, scope = params.get("task"), params.get("scope")
    dispatch, attempt = params.get("dispatch"), params.get("attempt")
    if not isinstance(task, str | DisplayString) or not (isinstance(scope, str) and is_scope(scope)):
        raise MalformedTokenError(f"{TOKEN_HEADER} names no task")
    if (dispatch, attempt) != (None, None) and not (
        isinstance(dispatch, str | DisplayString) and type(attempt) is int
    ):
        raise MalformedTokenError(f"{TOKEN_HEADER} names a dispatch without its attempt")
    return FencingToken(
        value, str(task), scope, str(dispatch) if dispatch is not None else None, attempt
    )


def _signature(value: int, params: Mapping[str, Any], secret: str) -> bytes:
    unsigned = ser((value, dict(params)))
    return hmac.new(secret.encode(), unsigned.encode(), hashlib.sha256).digest()
