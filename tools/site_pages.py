"""MkDocs' hook: pages of the site that are not in ``docs/``, and links between them and the others.

The files are written for readers of the checkout. A link to a page becomes one of the site; a link
to any other file of the checkout becomes its text, because the site does not contain it.
The README's Mermaid graph becomes a drawing: GitHub's script for it is not part of the theme, and
the site loads nothing.
"""

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = "docs/"
OUTSIDE = {  # file of the checkout -> page of the site
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/mini/README.md": "mini_crawl.md",
}
GRAPH = "![The stages from the crawl to the report](docs/images/stages.svg)"
MERMAID = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<path>[^()#:\s]+)(?P<anchor>#[^()\s]*)?\)"
)
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages outside of ``docs/``."""
    from mkdocs.structure.files import File  # of the environment that builds the site

    for source, page in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Draw the graph of a page and rewrite its links."""
    source_of = {site: source for source, site in OUTSIDE.items()}
    uri = page.file.src_uri
    pages = {DOCS + name: name for name in files.src_uris} | OUTSIDE
    return with_site_links(MERMAID.sub(GRAPH, markdown), source_of.get(uri, DOCS + uri), uri, pages)


def with_site_links(markdown: str, source: str, page: str, pages: Mapping[str, str]) -> str:
    """Return a page with links and images of the site.

    Args:
        markdown: text of the page.
        source: its file in the checkout.
        page: its name in the site.
        pages: file of the checkout -> page of the site.
    """

    def rewrite(link: re.Match[str]) -> str:
        image, text = link["image"], link["text"]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link["path"]))
        if target not in pages:
            return link[0] if image else text  # MkDocs names an image that the site lacks
        path = posixpath.relpath(pages[target], posixpath.dirname(page) or ".")
        return f"{image}[{text}]({path}{link['anchor'] or ''})"

    texts, code_end = [], 0
    for code in CODE.finditer(markdown):
        texts += [LINK.sub(rewrite, markdown[code_end : code.start()]), code[0]]
        code_end = code.end()
    return "".join([*texts, LINK.sub(rewrite, markdown[code_end:])])
