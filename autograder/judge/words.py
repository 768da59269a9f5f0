"""Numbers with their nouns, as the messages of several stages write them."""


def count(n: int, noun: str, many: str = "") -> str:
    """1 row, 2 rows. many: the plural, where it is more than an s."""
    return f"{n} {noun if n == 1 else many or noun + 's'}"


def tokens(n: int) -> str:
    """1 token, 2 tokens."""
    return count(n, "token")
