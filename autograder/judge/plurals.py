"""A number with its noun in the singular or plural, for messages."""


def count(n: int, noun: str, many: str = "") -> str:
    """1 row, 2 rows. many: the plural, unless it is the noun with an s."""
    return f"{n} {noun if n == 1 else many or noun + 's'}"


def tokens(n: int) -> str:
    """1 token, 2 tokens."""
    return count(n, "token")
