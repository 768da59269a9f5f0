"""How many threads NumPy uses for a model's size."""

import os
import subprocess
import sys

import pytest

from autograder.toolkit.threads import BLAS_VARIABLES

CODE = """if True:
    import numpy
    from autograder.toolkit.threads import suit_threads
    from autograder.toolkit.timing import threads
    found = [threads()]
    for n_embd in (128, 128, 768, 128):
        suit_threads(n_embd)
        found.append(threads())
    print(*found)
"""


def threads_of(**variables):
    environment = {name: value for name, value in os.environ.items() if name not in BLAS_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment | variables, capture_output=True, text=True, check=True
    )
    return [int(number) for number in done.stdout.split()]


def test_a_small_model_gets_one_thread_and_a_large_one_all_of_them():
    at_first, *found = threads_of()
    if at_first == 1:
        pytest.skip("NumPy has one thread here")
    assert found == [1, 1, at_first, 1]


def test_the_environment_variable_wins():
    assert len(set(threads_of(OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2"))) == 1


def test_a_notebook_that_loads_the_courses_model_computes_with_one_thread():
    environment = {name: value for name, value in os.environ.items() if name not in BLAS_VARIABLES}
    code = "import numpy, autograder; autograder.load_model('tiny'); print(autograder.timing.machine())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ", 1 thread, " in done.stdout
