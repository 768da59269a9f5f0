"""The hostile class: submissions that try for points they did not earn, for what they must not see, or to do harm.

None can do harm where nothing stops it: it changes what lies in CANARY, a folder of the test's, and in the folder that
it begins in, and what it takes of memory, disk and processes has an end. tests/test_payloads.py holds them to that.
"""

from autograder.tests.hostile.attacks.attack import EVERYTHING, SOLVED, ZEROS, Attack
from autograder.tests.hostile.attacks.changing import CHANGING
from autograder.tests.hostile.attacks.ending import ENDING
from autograder.tests.hostile.attacks.looking import LOOKING
from autograder.tests.hostile.attacks.pages import PAGES
from autograder.tests.hostile.attacks.pipe import PIPE
from autograder.tests.hostile.attacks.points import POINTS
from autograder.tests.hostile.attacks.taking import TAKING

ATTACKS = [*POINTS, *LOOKING, *CHANGING, *TAKING, *ENDING, *PIPE, *PAGES]

__all__ = ["ATTACKS", "CHANGING", "EVERYTHING", "LOOKING", "SOLVED", "TAKING", "ZEROS", "Attack"]
