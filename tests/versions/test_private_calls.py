"""What this project uses of Snakemake without a public call is listed, with its upstream issue."""

import ast
import re
from collections.abc import Iterator

from checkout import ROOT

VERSIONS = ROOT / "src/t5repro/versions"
OWN = ("self", "cls", "result")


def private_uses(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (owner, attribute) of private attributes of others, and of what is replaced in them."""
    replaced = {
        target
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = ast.unparse(node.value).rpartition(".")[2]
        is_private = node.attr.startswith("_") and not node.attr.startswith("__")
        if owner not in OWN and (is_private or node in replaced):
            yield owner, node.attr


def test_every_private_call_of_snakemake_is_listed_with_its_issue() -> None:
    used = {
        use
        for path in VERSIONS.glob("*.py")
        for use in private_uses(ast.parse(path.read_text(encoding="utf-8")))
    }
    used.discard(("default_storage_provider", "keep_local"))  # public: a setting of the provider
    page = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.partition("| private or replaced |")[2].partition("\n\n")[0]
    listed: set[tuple[str, str]] = set()
    for row in table.splitlines()[2:]:
        names, _, issue = (cell.strip() for cell in row.strip("|").split("|"))
        assert re.search(r"\d", issue), row
        owner = ""
        for name in re.findall(r"`([^`]+)`", names):
            owner = name.rpartition(".")[0] or owner  # a row states the owner once
            listed.add((owner, name.rpartition(".")[2]))
    assert used == listed
