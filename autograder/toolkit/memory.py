"""How the memory of arrays is used again."""

from __future__ import annotations

import numpy as np


def keep_freed_memory() -> None:
    """Let the memory of freed arrays of up to 32 MB be used again, where it would be given back to the system.

    A pass makes such arrays in every layer, and each of their pages that the system hands out anew takes about a
    microsecond. glibc keeps chunks as large as the largest that was freed (mallopt(3), M_MMAP_THRESHOLD), so one is
    made and freed here. Other C libraries decide for themselves.
    """
    np.empty(2**25 - 2**16, np.uint8)
