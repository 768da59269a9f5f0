"""The checks of stage 1, the forward pass; students meet them in the order of these imports."""

# isort: off
from autograder.stages.forward_pass import functions  # noqa: F401
from autograder.stages.forward_pass import steps  # noqa: F401
from autograder.stages.forward_pass import attention  # noqa: F401
from autograder.stages.forward_pass import model  # noqa: F401
from autograder.stages.forward_pass import greedy  # noqa: F401
