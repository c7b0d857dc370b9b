"""How often Python looks for garbage in cycles.

What these processes hold most of, facts and what is drawn of them, lives long and is in no cycle; going
through it again and again, as Python does by default, takes a quarter of all CPU.
"""

from __future__ import annotations

import gc


def spare_the_collector(young: int, middle: int, old: int) -> None:
    """Looks less often, and never at what is there already.

    Args:
        young: New objects after which the newest are gone through.
        middle: So many times this, the next older ones as well.
        old: So many times that, all of them.
    """
    gc.freeze()
    gc.set_threshold(young, middle, old)
