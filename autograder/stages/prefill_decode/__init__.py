"""The checks of stage 3, prefill and decode; students meet them in the order of these imports.

The prompt goes through the model in one pass, then one token at a time, equal to a recompute throughout. `decode_step`
is judged on caches that the judge fills through `append`, so that what is wrong with prefill does not count twice, and
so that a function which never saw the earlier ids cannot run them again.
"""

# isort: off
from autograder.stages.prefill_decode import steps  # noqa: F401
from autograder.stages.prefill_decode import prefill  # noqa: F401
from autograder.stages.prefill_decode import decode  # noqa: F401
from autograder.stages.prefill_decode import generate  # noqa: F401
from autograder.stages.prefill_decode import limits  # noqa: F401
