"""The site and the manual pages of these documents, by Sphinx: `make docs` builds both."""

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes

DOCS = Path(__file__).resolve().parents[1]
TOPICS = tomllib.loads((DOCS / "site" / "topics.toml").read_text())

project = "Downburst"
version = release = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]["version"]
author = "Downburst's maintainers"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["site"]
# Blocks of code without a language are commands and their output.
highlight_language = "none"
# Anchors as code hosts make them, so that one link serves both.
myst_heading_anchors = 6
# Options and quoted sentences stay as they are typed.
smartquotes = False
# Documents are written for code hosts, where headings may begin at any level.
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = f"Downburst {release}"
html_copy_source = html_show_sourcelink = html_use_index = False
html_show_copyright = html_show_sphinx = False
html_permalinks_icon = "#"
html_theme_options = {"top_of_page_buttons": []}

CONTENTS = {
    "Quick starts": ["quick-start-*"],
    "Guides": ["operator-guide", "site-guide", "troubleshooting", "access", "air-gap"],
    "Reference": [
        "settings",
        "reference/commands",
        "reference/node",
        "reference/api",
        "metrics",
        "reliability",
        "python-client",
    ],
    "Other systems": ["wis2-import", "circuits-nsi", "circuits-peers", "measuring-systems"],
    "Protocols": ["protocol-session", "protocol", "protocol-ldm6", "node-lines"],
    "Figures": ["performance", "studies", "threat-model"],
    "The page": ["comparison", "page-design", "page-questions", "page-reading"],
    "Decisions": ["adr/README"],
}
"""Parts of the table of contents. A page that none has is a warning, and so fails the build.

Decisions and commands have lists of their own: in the contents of every page they would take most of a build's time.
"""


def _man_pages() -> list[tuple[str, str, str, str, int]]:
    """Document, name, sentence, author and section: 1 for commands, 5 for the settings, 7 for guides."""
    pages = [
        ("reference/commands", "downburst", "distributes meteorology feeds from a hub to many sites", author, 1),
    ]
    for name, sentence in TOPICS["programs"].items():
        pages.append((f"reference/{name}", f"downburst-{name}", sentence, author, 1))
    for path in sorted((DOCS / "reference" / "commands").glob("*.md")):
        sentence = re.split(r"\n\n+", path.read_text())[1].replace("\n", " ").replace("\\", "")
        pages.append((f"reference/commands/{path.stem}", f"downburst-{path.stem}", sentence, author, 1))
    for section, topics in ((5, TOPICS["formats"]), (7, TOPICS["guides"])):
        pages += [(name, f"downburst-{name}", sentence, author, section) for name, sentence in topics.items()]
    return pages


man_pages = _man_pages()
man_make_section_directory = True


def setup(app: Any) -> None:
    """Adds the steps that adapt documents of a code host to a site, and pages to a strict policy."""
    app.connect("source-read", _add_contents)
    app.connect("source-read", _without_links_outside)
    app.connect("doctree-resolved", _without_addresses_in_manual)
    app.connect("build-finished", _extract_inline)


def _add_contents(app: Any, name: str, source: list[str]) -> None:
    """Appends the table of contents, which a code host would show as code, and the list of decisions."""
    del app
    if name == root_doc:
        source[0] += "".join(_tree(caption, entries) for caption, entries in CONTENTS.items())
    elif name == "adr/README":
        decisions = sorted((DOCS / "adr").glob("[0-9]*.md"))
        source[0] += "\n" + "".join(
            f"* [{path.read_text().splitlines()[0][2:]}]({path.name})\n" for path in decisions
        )
    elif name.startswith(("adr/", "reference/commands/")):
        source[0] = f"---\norphan: true\n---\n\n{source[0]}"


def _tree(caption: str, entries: list[str]) -> str:
    return "\n".join(["\n```{toctree}", ":glob:", ":hidden:", f":caption: {caption}", "", *entries, "```\n"])


def _without_links_outside(app: Any, name: str, source: list[str]) -> None:
    """Links to files that are no part of the site become the paths of these files in the source tree."""
    del app
    folder = (DOCS / name).parent

    def replaced(link: re.Match[str]) -> str:
        there = (folder / link[2]).resolve()
        if there.is_relative_to(DOCS) and not there.is_dir():
            return link[0]
        return f"{link[1]} (`{there.relative_to(DOCS.parent)}`)"

    source[0] = re.sub(r"\[([^\]]*)\]\(([^):#\s]+)(?:#[^)\s]*)?\)", replaced, source[0])


def _without_addresses_in_manual(app: Any, doctree: nodes.document, name: str) -> None:
    """Manual pages have no anchors: links between documents become their words."""
    del name
    if app.builder.name == "man":
        for link in list(doctree.findall(nodes.reference)):
            if not link.get("refuri", "").startswith("http"):
                link.replace_self(link.children)


def _extract_inline(app: Any, failure: Exception | None) -> None:
    """Moves inline scripts of pages into files: the hub's policy of contents permits no other."""
    if failure is None and app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        for page in Path(app.outdir).rglob("*.html"):
            up = "../" * (len(page.relative_to(app.outdir).parts) - 1)
            page.write_text(INLINE.sub(lambda found, up=up: _as_file(found[1], static, up), page.read_text()))


def _as_file(script: str, static: Path, up: str) -> str:
    name = f"inline-{hashlib.sha256(script.encode()).hexdigest()[:16]}.js"
    (static / name).write_text(script)
    return f'<script src="{up}_static/{name}"></script>'


INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
