"""One check for each kind of snippet."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from t5repro.config.schema import Settings

from .commands import SCRIPT_OPTION, all_options, command
from .settings import mapping, setting
from .snippets import Snippet
from .tree import PLACEHOLDER, Missing, Tree, matches

BARE_PATH = re.compile(
    r"(?<![\w/.:-])(?:"
    r"(?:[\w.<>{}*-]+/)*[\w<>{}*-]+\.(?:py|md|smk)\b(?![\w/])"
    r"|(?:src|docs|tests|configs|workflow|tools|studies|results|logs|records)/[\w.<>{}/*-]*[\w>}*/])"
)
DOTTED_MODULE = re.compile(r"(?<![\w./])t5repro(?:\.\w+)+")
DECISION = re.compile(r"\bD-\d{3}\b")
DOTTED = re.compile(r"(?P<name>[a-z0-9_]+(?:\.[a-z0-9_]+)*(?:\.?\*)?)(?:: (?P<value>\S.*))?")
PACKAGE_FILE = r"src/t5repro/.*__init__\.py$"
PATH = re.compile(r"[\w.<>{}*…-]+(?:/[\w.<>{}*…-]*)*")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
TOOLS = {"t5repro", "make", "snakemake", "python", "python3"}
BUILT = {"results", "logs", "records"}  # folders of a run: <folder>/<run>/<rule>/...
CHECKED_SUFFIXES = (".py", ".smk", ".md", ".yaml", ".yml", ".toml", ".cff")
ARTIFACT_SUFFIXES = (
    ".safetensors",
    ".json",
    ".jsonl",
    ".ids",
    ".offsets",
    ".sentences",
    ".csv",
    ".html",
    ".txt",
)
SUFFIXES = CHECKED_SUFFIXES + ARTIFACT_SUFFIXES


def missing(tree: Tree, path: str, snippet: Snippet) -> Iterator[Missing]:
    """Yield the names of a snippet that do not exist."""
    text = snippet.text
    if snippet.kind == "link":
        yield from _link(tree, path, text)
    elif snippet.kind == "command":
        yield from command(tree, text)
    elif snippet.kind == "yaml":
        try:
            values = yaml.safe_load(text)
        except yaml.YAMLError:
            values = None
        yield from mapping(tree, values if isinstance(values, dict) else {})
    else:
        for name in DOTTED_MODULE.findall(text):
            if not tree.module(name):
                yield "module", name, [f"t5repro.{module}" for module in tree.modules]
        for name in DECISION.findall(text):
            if not any(file.startswith(f"docs/decisions/{name}-") for file in tree.files):
                yield "decision", name, ()
        if snippet.kind == "prose":
            for match in BARE_PATH.finditer(text):
                yield from _path(tree, path, match[0])
        else:
            yield from _span(tree, path, " ".join(text.split()))


def _span(tree: Tree, path: str, text: str) -> Iterator[Missing]:
    head, *arguments = text.split(" ") if text else [""]
    if head.rpartition("/")[2] in TOOLS and arguments:
        yield from command(tree, text)
        return
    if re.fullmatch(r"--[a-z][\w-]*", head):
        options = all_options(tree.parser) | tree.snakemake_options
        if path.endswith(".py"):  # a script names its own options
            options |= set(SCRIPT_OPTION.findall(tree.text(path)))
        if head not in options:
            yield "option", head, options
        return
    if match := DOTTED.fullmatch(text):
        name = match["name"]
        section, dot, _ = name.partition(".")
        if (
            name.startswith("test_")
            and not tree.tests.issuperset({name})
            and not _is_file(tree, name)
        ):
            yield "test", name, tree.tests
        if not dot and match["value"] is None and re.match(PACKAGE_FILE, path):
            yield from _member(tree, path, name)
        if dot and not _is_file(tree, name) and not name.endswith(SUFFIXES):
            if section in tree.packages and tree.module(f"t5repro.{name}"):
                return
            if section in Settings.model_fields:
                yield from setting(tree, name, match["value"])
            elif section in tree.packages:
                yield "module", name, tree.modules
    for word in text.split(" "):
        if PATH.fullmatch(word):
            yield from _path(tree, path, word)


def _member(tree: Tree, path: str, name: str) -> Iterator[Missing]:
    """Check a word of a package's docstring: a module, a package, a rule, or a name in a module."""
    folder = f"{Path(path).parent.as_posix()}/"
    modules = {Path(file.removeprefix(folder)).parts[0] for file in tree.files if folder in file}
    modules = {module.removesuffix(".py") for module in modules}
    if name in modules | tree.packages | tree.rules or tree.module(f"t5repro.{name}"):
        return
    texts = (tree.text(file) for file in tree.files if file.startswith(folder))
    if not any(re.search(rf"\b(?:def|class) {name}\b|^{name} *[:=]", text, re.M) for text in texts):
        yield "module", name, modules


BESIDE_RULES = {"shared"}  # a folder of records that no rule is called after


def _is_file(tree: Tree, name: str) -> bool:
    return name in tree.base_names or any(fnmatchcase(base, f"{name}*") for base in tree.base_names)


def _path(tree: Tree, path: str, name: str) -> Iterator[Missing]:
    if name in tree.presets:
        return
    first, slash, _ = name.partition("/")
    numbered = re.sub(r"/(D-\d{3})$", r"/\1-*", name)  # a decision without its title
    pattern = PLACEHOLDER.sub("*", numbered).rstrip("/")
    if first in BUILT and slash:
        folders = name.rstrip("/").split("/")  # results, run, rule, node
        rule = folders[2].partition(".")[0] if len(folders) > 2 else ""
        if rule and not PLACEHOLDER.search(rule) and rule not in tree.rules | BESIDE_RULES:
            yield "rule", rule, tree.rules
        return
    is_in_tree = bool(slash) and first in tree.top
    is_in_package = bool(slash) and first in tree.packages and first not in tree.top
    if not (is_in_tree or is_in_package or name.endswith(CHECKED_SUFFIXES)):
        return
    if is_in_package and Path(name).suffix not in ("", ".py"):
        return
    if is_in_package and set(name.rstrip("/").split("/")[1:]) <= tree.experiments | {""}:
        return  # a node of a rule that has the name of a package
    # A path may be relative to the package, to the page, or to a folder above it.
    bases = ["src/t5repro", *map(str, Path(path).parents)]
    spelled = {pattern, *(f"{base}/{pattern}" for base in bases)}
    spelled |= {f"{spelling}.py" for spelling in spelled if is_in_package and "." not in pattern}
    names = tree.files | tree.folders
    if spelled & names or any("*" in spelling and matches(names, spelling) for spelling in spelled):
        return
    if not is_in_tree and any(fnmatchcase(f"/{file}", f"*/{pattern}") for file in tree.files):
        return
    existing = tree.files | {file.removeprefix("src/t5repro/") for file in tree.files}
    yield "file", name, existing if slash else tree.base_names


def _link(tree: Tree, path: str, target: str) -> Iterator[Missing]:
    if re.match(r"[a-z]+:", target):
        return
    name, _, anchor = target.partition("#")
    file = (Path(path).parent / name) if name else Path(path)
    # By hand: `resolve` would follow links of the file system, which git does not.
    folders: list[str] = []
    for folder in file.parts:
        folders = folders[:-1] if folder == ".." else [*folders, folder]
    file_name = "/".join(folders)
    if file_name not in tree.files | tree.folders:
        yield "file", target, tree.files
    elif anchor and file_name.endswith(".md"):
        anchors = {_anchor(heading) for heading in HEADING.findall(tree.text(file_name))}
        if anchor not in anchors:
            yield "anchor", target, [f"{name}#{existing}" for existing in anchors]


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
