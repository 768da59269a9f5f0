"""The checks of stage 6: blocks of many prompts in one store; students meet them in the order of these imports."""

# isort: off
from autograder.stages.block_cache import keys  # noqa: F401
from autograder.stages.block_cache import store  # noqa: F401
from autograder.stages.block_cache import serve  # noqa: F401
from autograder.stages.block_cache import int8  # noqa: F401
