"""A directive for examples with their pictures, and ``python docs/gallery.py [NAME ...]``, which draws the pictures.

``.. gallery::`` takes lines of the form ``file in examples: title``. The text is that of the file: the docstring of a
program, the first cell of a notebook.
"""
from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PICTURES = Path(__file__).parent / "_static" / "gallery"
#: Longest side of a picture, in pixels.
SIDE = 900


class Gallery(Directive):
    """One entry for each example: title, picture, text and code."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        found = []
        for line in filter(None, self.content):
            name, _, title = (part.strip() for part in line.partition(":"))
            path = EXAMPLES / name
            self.state.document.settings.record_dependencies.add(str(path))
            section = nodes.section(ids=[nodes.make_id(path.stem)], names=[path.stem], classes=["example"])
            self.state.document.note_explicit_target(section)
            section += nodes.title("", title)
            for picture in PICTURES.glob(f"{path.stem}.[ps][nv]g"):
                section += nodes.image(uri=f"_static/gallery/{picture.name}", alt=f"The result of {name}")
            self.state.nested_parse(StringList(described(path).splitlines()), 0, section)
            section += nodes.raw("", f"<details><summary>Code: examples/{name}</summary>", format="html")
            section += nodes.literal_block("", code_of(path), language="python")
            section += nodes.raw("", "</details>", format="html")
            found.append(section)
        return found


def described(path: Path) -> str:
    """What an example says of itself."""
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(path.read_text())) or ""
    cells = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]
    return cells[0].partition("\n")[2].replace("`", "``")


def code_of(path: Path) -> str:
    """The code of a program or a notebook."""
    if path.suffix == ".py":
        return path.read_text()
    cells = json.loads(path.read_text())["cells"]
    return "\n\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def draw(path: Path) -> bool:
    """Run an example, and keep its picture; whether it makes one."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if path.suffix == ".ipynb":
            picture = Path(folder, "picture.png")
            found = executed(path, folder)
            picture.write_bytes(last_picture(found))
            if report := profile(found):
                (PICTURES / f"{path.stem}.html").write_text(report + "\n", encoding="utf-8")
        elif written := re.search(r'"--output", type=Path, default=Path\("([\w.]+)"\)', path.read_text()):
            picture = Path(folder, written[1])
            subprocess.run([sys.executable, path], cwd=folder, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
        else:
            return False
        keep(picture, PICTURES / f"{path.stem}{picture.suffix}")
    return True


def keep(picture: Path, place: Path) -> None:
    """Copy a picture, at most `SIDE` pixels wide and high and with few colours."""
    from PIL import Image

    if picture.suffix == ".svg":
        place.write_bytes(picture.read_bytes())
        return
    with Image.open(picture) as image:
        small = image.convert("RGB")
        small.thumbnail((SIDE, SIDE))
        small.quantize(128).save(place, optimize=True)


def executed(path: Path, folder: str) -> list[Any]:
    """What the cells of a notebook show, by media type, when it is run in a folder."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    os.environ["PYTHONPATH"] = str(ROOT)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    return [output.get("data", {}) for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def last_picture(shown: list[Any]) -> bytes:
    """The last picture among what is shown, as PNG."""
    return b64decode([data["image/png"] for data in shown if "image/png" in data][-1])


def profile(shown: list[Any]) -> str:
    """The HTML of a profile among what is shown, or ""."""
    return "".join(data["text/html"] for data in shown if "lazyarray-profile" in data.get("text/html", ""))


def setup(app: Any) -> dict[str, bool]:
    """Make the directive known to Sphinx."""
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True}


def main() -> None:
    """Draw the pictures."""
    parser = argparse.ArgumentParser(prog="python docs/gallery.py", description="Draw the pictures of the examples.")
    parser.add_argument("names", nargs="*", help="examples, such as demo.py; all without any")
    chosen = parser.parse_args().names
    for path in sorted(EXAMPLES.iterdir()):
        if path.suffix in (".py", ".ipynb") and (not chosen or path.name in chosen):
            print(path.name, "drawn" if draw(path) else "makes no picture")


if __name__ == "__main__":
    main()
