"""The display run: a submission's own cells run once more, in a sandboxed kernel, for the charts of its feedback.

It is off unless the course asks for it, comes after the scores, and decides none. Three processes take part: the
grader (run.py), one that speaks Jupyter's protocol (__main__.py, provisioner.py), and the kernel (worker/kernel.py).
"""
