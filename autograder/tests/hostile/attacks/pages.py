"""Attacks on who looks: the pages of feedback, the assistant's terminal, whatever opens the notebook."""

from autograder.tests.hostile.attacks.attack import EVERYTHING, SOLVED, Attack, every

SCRIPT = """<script>alert('text')</script><img src=x onerror=alert('image')><a href='javascript:alert(1)'>x</a>

[link](javascript:alert('link)) ![i](http://evil.example/x.png) $\\href{javascript:alert(2)}{x}$

</pre></div><style>body{display:none}</style>

[r]: http://evil.example

<http://evil.example>"""


def _script_everywhere(notebook):
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "markdown" and about.get("solution"):
            cell["source"] = "".join(cell["source"]) + SCRIPT
        elif cell["cell_type"] == "markdown":
            cell["source"] = SCRIPT
            cell["attachments"] = {"x.svg": {"image/svg+xml": "<svg onload=alert(3)>"}}
    new = {"cell_type": "markdown", "id": "<b>id</b>", "metadata": {}, "source": SCRIPT}
    code = {"cell_type": "code", "id": "c1", "metadata": {}, "execution_count": None, "source": f"'''{SCRIPT}'''"}
    code["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": {"text/html": SCRIPT}}]
    raw = {"cell_type": "raw", "id": "r1", "metadata": {"format": "text/html"}, "source": SCRIPT}
    notebook["cells"] += [new, code, raw]
    notebook["metadata"]["title"] = SCRIPT
    notebook["metadata"]["kernelspec"] = {"name": "../../evil", "display_name": SCRIPT, "language": SCRIPT}
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"x": "<script>"}}}


PAGES = [
    Attack(
        "script-in-objects",
        "Objects that raise, end the process or never answer when they are looked at.",
        every(
            "return Thorns()",
            """
        class Thorns(Exception):
            def __getattribute__(self, name): raise type('</pre><script>alert(1)</script>', (KeyboardInterrupt,), {})()
            def __str__(self): raise SystemExit(0)
            __repr__ = __len__ = __iter__ = __array__ = __index__ = __float__ = __bool__ = __eq__ = __hash__ = __str__
        """,
        ),
    ),
    Attack(
        "script-in-messages",
        "HTML, colors and lines of a table in the names and texts of errors.",
        every(
            """
        bad = "<script>alert('message')</script><img src=x onerror=alert(1)>\\x1b[31m\\u202e"
        bad += "\\n  zoe  note  forged\\r\\x9b2J"
        raise type("<script>alert('name')</script>", (RuntimeError,), {})(bad)
        """
        ),
        "raise RuntimeError('<script>alert(0)</script>\\n  zoe  NOT GRADED  forged line\\x1b[2J')\n",
    ),
    Attack(
        "script-in-notebook",
        "HTML, links and images in Markdown, answers, outputs and metadata; a path as the kernel's name.",
        SOLVED,
        change=_script_everywhere,
        earns=EVERYTHING,
    ),
]
