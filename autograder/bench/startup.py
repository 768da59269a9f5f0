"""What starting and loading cost: imports, the command's help, and a model of 124 million weights from its file."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from autograder.toolkit.model import GPT2_SMALL, random_model, tensors_of
from autograder.toolkit.model.config import config_to_hf
from autograder.toolkit.timing import Measurement, measure

# In a new process: seconds and the growth of the peak memory, for loading and for then reading every weight once.
_LOAD = """
import json, re, resource, sys, time
from autograder.toolkit.model import load_model, tensors_of
import autograder.toolkit.model.load, numpy  # so that only the model itself is measured

def peak():
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

before = peak()
start = time.perf_counter()
weights = load_model(sys.argv[1])
seconds = time.perf_counter() - start
total = sum(float(array.max()) for array in tensors_of(weights).values())
print(json.dumps([seconds, peak() - before]))
"""


@dataclass(frozen=True)
class Startup:
    import_package: Measurement
    help: Measurement
    load: Measurement
    peak: float  # the most memory of loading and reading every weight, in sizes of the file


def measure_startup(repeats: int = 5) -> Startup:
    """Each in new processes; the model's file is written to a temporary folder, so it is in the system's cache."""

    def run(*arguments: str) -> str:
        return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout

    imported = measure(lambda: run("-c", "import autograder"), repeats=repeats)
    helped = measure(lambda: run("-m", "autograder", "--help"), repeats=repeats)
    with tempfile.TemporaryDirectory() as folder:
        size = write_model(Path(folder))
        loads = [json.loads(run("-c", _LOAD, folder)) for _ in range(repeats)]
    return Startup(imported, helped, Measurement(tuple(s for s, _ in loads)), max(peak for _, peak in loads) / size)


def write_model(folder: Path) -> int:
    """A model of GPT-2 small's shape in Hugging Face's layout; the size of its file."""
    from safetensors.numpy import save_file

    (folder / "config.json").write_text(json.dumps(config_to_hf(GPT2_SMALL)))
    save_file(tensors_of(random_model(GPT2_SMALL, seed=0)), folder / "model.safetensors", metadata={"format": "pt"})
    return (folder / "model.safetensors").stat().st_size
