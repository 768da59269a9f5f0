"""The checks of stage 4: one saved prefix, any number of suffixes; students meet them in the order of these imports."""

# isort: off
from autograder.stages.save_and_reuse import steps  # noqa: F401
from autograder.stages.save_and_reuse import saved  # noqa: F401
from autograder.stages.save_and_reuse import reuse  # noqa: F401
from autograder.stages.save_and_reuse import files  # noqa: F401
from autograder.stages.save_and_reuse import file_refusals  # noqa: F401
