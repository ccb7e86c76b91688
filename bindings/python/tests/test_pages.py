"""The examples of the pages run as they are written, but for the addresses of the nodes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from redlatch import testing

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page, capsys):
    blocks = BLOCK.findall(page.read_text())
    with testing.nodes(3) as nodes:
        names: dict[str, object] = {}
        for number, (notes, block) in enumerate(blocks):
            for node, url in enumerate(nodes.urls, start=1):
                block = block.replace(f"redis://10.0.0.{node}", url)
            code = compile(block, f"{page.name}, block {number}", "exec")
            if "no-run" not in notes:
                exec(code, names)


def test_the_first_example_does_what_it_says(capsys):
    test_the_examples_of_a_page_run(PAGES[0], capsys)
    assert capsys.readouterr().out == "charging the card\nmarking the order as paid\nrunning\n"
