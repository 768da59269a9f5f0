"""The checks of stage 5, failure modes; students meet them in the order of these imports."""

# isort: off
from autograder.stages.failure_modes import steps  # noqa: F401
from autograder.stages.failure_modes import ids  # noqa: F401
from autograder.stages.failure_modes import template  # noqa: F401
from autograder.stages.failure_modes import prompt  # noqa: F401
from autograder.stages.failure_modes import key  # noqa: F401
