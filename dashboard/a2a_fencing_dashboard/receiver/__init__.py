"""OTLP in: decode, bound, acknowledge after commit."""

from a2a_fencing_dashboard.receiver.limits import Limits
from a2a_fencing_dashboard.receiver.server import serve

__all__ = ["Limits", "serve"]
