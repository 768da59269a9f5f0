"""Gives a process another date and folder, to check that its results do not depend on them."""

from __future__ import annotations

import datetime
import os
import tempfile
import time

SECONDS_LATER = 40_000_000  # more than a year


def go_elsewhere() -> None:
    """Change the folder, and the results of time and datetime. Names imported from them earlier do not change."""
    os.chdir(tempfile.mkdtemp(dir=os.getcwd()))
    now, now_ns, strftime, asctime = time.time, time.time_ns, time.strftime, time.asctime
    time.time = lambda: now() + SECONDS_LATER
    time.time_ns = lambda: now_ns() + SECONDS_LATER * 10**9
    time.localtime, time.gmtime, time.ctime = map(_of_now, (time.localtime, time.gmtime, time.ctime))
    time.strftime = lambda form, moment=None: strftime(form, time.localtime() if moment is None else moment)
    time.asctime = lambda moment=None: asctime(time.localtime() if moment is None else moment)
    datetime.datetime = _Later


def _of_now(convert):
    return lambda seconds=None: convert(time.time() if seconds is None else seconds)


class _Later(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(seconds=SECONDS_LATER)

    @classmethod
    def utcnow(cls):
        return cls.now(datetime.timezone.utc).replace(tzinfo=None)


_Later.__name__ = _Later.__qualname__ = "datetime"
