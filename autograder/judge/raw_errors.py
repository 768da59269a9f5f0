"""What errors of Python and NumPy that say little mean in this course."""

from __future__ import annotations

_MEANINGS = (
    ("'NoneType' object", "a value is None there, as of a function without return, or keys before the first append"),
    ("could not be broadcast", "the shapes must agree from the last axis on, or be 1 there"),
    ("could not broadcast input array", "the array does not fit into the place that it is assigned to"),
    (
        "matmul: Input operand",
        "a @ b needs a's last axis to be as long as b's last but one; .T reverses all axes, swapaxes(1, 2) two",
    ),
    ("not aligned", "a product needs a's last axis to be as long as b's last but one"),
    ("can be converted to Python scalars", "math's functions take one number, NumPy's of that name take arrays"),
    ("axes don't match array", "transpose needs each axis of the array once"),
    ("has no setter", "a property is computed when it is read: store the array under another name"),
    ("can't set attribute", "a property is computed when it is read: store the array under another name"),
    ("read-only", "the weights and what a check passes are not to be changed: make a new array"),
)


def meaning(message: str) -> str:
    """A phrase that explains an error's message; empty where there is none."""
    return next((phrase for part, phrase in _MEANINGS if part in message), "")
