"""A table of results, for a terminal and for course/MEASURED.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import table as rich_table
from rich.box import SIMPLE_HEAD


@dataclass(frozen=True)
class Table:
    """head and each row have the same number of strings. note: what the numbers mean and how they were measured."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    @property
    def _has_names(self) -> bool:
        """Whether the first column holds names, which are aligned left. All other columns are aligned right."""
        return not self.rows[0][0].isdigit()

    def shown(self) -> rich_table.Table:
        table = rich_table.Table(
            title=self.title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False,
            collapse_padding=True, caption=self.note or None, caption_justify="left",
        )  # fmt: skip
        for number, column in enumerate(self.head):
            name = not number and self._has_names
            table.add_column(column, justify="left" if name else "right", no_wrap=not name)
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> list[str]:
        """The lines of the note and the table."""
        rule = ["---" if self._has_names else "--:", *["--:"] * (len(self.head) - 1)]
        table = [f"| {' | '.join(row)} |" for row in (self.head, *self.rows)]
        return [*([self.note, ""] if self.note else []), table[0], f"|{'|'.join(rule)}|", *table[1:]]
