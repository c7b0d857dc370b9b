"""What the command line tells the pages, through the environment of their process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_PREFIX: Final = "A2A_FENCING_DASHBOARD_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the pages read, and where they link to.

    Attributes:
        store_url: The store, as `a2a_fencing_dashboard.store.open_store` takes it.
        jaeger_url: Base URL of a Jaeger UI, or None.
        receiver_url: Where facts are taken in, as a hint for who has none yet, or None.
        history: Name of the history file that the store was made from; None: what arrives live.
    """

    store_url: str
    jaeger_url: str | None = None
    receiver_url: str | None = None
    history: str | None = None

    def to_environment(self) -> dict[str, str]:
        """Environment variables that `from_environment` reads back."""
        values = {
            "STORE": self.store_url,
            "JAEGER_URL": self.jaeger_url,
            "RECEIVER_URL": self.receiver_url,
            "HISTORY": self.history,
        }
        return {_PREFIX + name: value for name, value in values.items() if value}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Reads what `to_environment` wrote; a missing store is an empty URL, which no store opens."""
        return cls(
            store_url=environment.get(f"{_PREFIX}STORE", ""),
            jaeger_url=environment.get(f"{_PREFIX}JAEGER_URL") or None,
            receiver_url=environment.get(f"{_PREFIX}RECEIVER_URL") or None,
            history=environment.get(f"{_PREFIX}HISTORY") or None,
        )
