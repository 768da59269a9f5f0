"""The checks of stage 2, the KV cache; students meet them in the order of these imports.

Keys, values and queries are drawn at random: a cache must hold whatever it is given, and attend is a function of
arrays. What `keys` is before the first append is never looked at, nothing is written into `keys` or `values`, and what
`append` returns is ignored.
"""

# isort: off
from autograder.stages.kv_cache import layer_cache  # noqa: F401
from autograder.stages.kv_cache import model_cache  # noqa: F401
from autograder.stages.kv_cache import attend  # noqa: F401
from autograder.stages.kv_cache import memory_bill  # noqa: F401
