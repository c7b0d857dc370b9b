"""Whether the dashboard is being ended.

Pages are drawn in threads that nobody waits for. One that is still drawing then finds that its libraries
refuse to work, which is no fault of the page, and nobody is left to see it.
"""

from __future__ import annotations

from threading import Event
from typing import Final

ENDED: Final = Event()
"""Set once the server has stopped."""
