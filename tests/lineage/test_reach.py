"""Which definitions an entry module reaches, on small packages written for each case."""

from pathlib import Path

import pytest

from t5repro.lineage.sources import SourceTree
from t5repro.lineage.syntax import facts_of


def package(folder: Path, **modules: str) -> Path:
    """Write a package; ``a__b`` is the module ``a.b``, and ``a__init`` the package ``a``."""
    (folder / "__init__.py").write_text("")
    for name, text in modules.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path = path.with_name(path.name.replace("init.py", "__init__.py"))
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def closure(folder: Path, entry: str = "entry") -> dict[str, str]:
    return SourceTree(package=folder).hashes(entry)


def changes(folder: Path, name: str, old: str, new: str) -> bool:
    """Return whether an edit of a module changes the closure of the module ``entry``."""
    before, path = closure(folder), folder / f"{name}.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    after = closure(folder)
    path.write_text(text)
    return before != after


LIBRARY = """
def used():
    return helper() + CONSTANT

def helper():
    return 1

def unused():
    return 7

CONSTANT, OTHER = 2, 3
TABLE = {"unused": unused}
"""


@pytest.mark.parametrize(
    "entry",
    [
        "from t5repro.library import used\ndef main():\n    return used()\n",
        "from t5repro import library\ndef main():\n    return library.used()\n",
        "from t5repro import library as other\ndef main():\n    return other.used()\n",
        "import t5repro.library as other\ndef main():\n    return other.used()\n",
        "def main():\n    from t5repro.library import used as f\n    return f()\n",
        "def main():\n    from t5repro import library\n    return library.used()\n",
        "from t5repro.library import used\ndef main(f: 'used'):\n    return 1\n",
        "from t5repro.library import used\nclass C:\n    f: 'list[used]'\n",
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from t5repro.library import used\n"
        "def main(f: 'used'):\n    return 1\n",
        "from t5repro.library import used\nMAIN = {'f': used}\n",
        "from t5repro.library import used\n@used\ndef main():\n    return 1\n",
        "from t5repro.library import used\ndef main(f=used):\n    return 1\n",
        "from t5repro.shown import used\ndef main():\n    return used()\n",
        "from t5repro.shown import library\ndef main():\n    return library.used()\n",
    ],
)
def test_a_definition_is_code_if_something_reached_names_it(tmp_path: Path, entry: str) -> None:
    shown = "from t5repro import library\nfrom t5repro.library import used\n"
    folder = package(tmp_path, library=LIBRARY, shown=shown, entry=entry)
    assert changes(folder, "library", "helper() + CONSTANT", "helper() - CONSTANT")
    assert changes(folder, "library", "return 1", "return 2")
    assert changes(folder, "library", "2, 3", "2, 4")
    assert not changes(folder, "library", "return 7", "return 8")
    assert not changes(folder, "library", '"unused": unused', '"used": used')
    assert not changes(folder, "library", "def unused", "# a comment\ndef renamed")


def test_every_definition_of_the_entry_module_is_code(tmp_path: Path) -> None:
    folder = package(tmp_path, entry="def first():\n    return 1\n\nA = 5\n")
    assert changes(folder, "entry", "return 1", "return 2")
    assert changes(folder, "entry", "A = 5", "A = 6")


@pytest.mark.parametrize(
    "use", ["getattr(library, 'us' + 'ed')()", "vars(library)['used']()", "[library][0].used()"]
)
def test_a_module_that_is_used_as_a_value_counts_whole(tmp_path: Path, use: str) -> None:
    entry = f"from t5repro import library\ndef main():\n    return {use}\n"
    folder = package(tmp_path, library=LIBRARY, entry=entry)
    assert changes(folder, "library", "return 7", "return 8")


@pytest.mark.parametrize(
    "statement",
    [
        "print('loaded')",
        "TABLE.update(more=1)",
        "TABLE['more'] = 1",
        "for name in TABLE:\n    TABLE[name] = 1",
        "if TABLE:\n    LATE = 1",
        "LOADED = open('file').read()",
        "import keras",
        "@registered\ndef late():\n    pass",
        "def late(at=now()):\n    pass",
        "class Late:\n    at = now()",
    ],
)
def test_a_statement_with_an_effect_is_code_of_whoever_runs_its_module(
    tmp_path: Path, statement: str
) -> None:
    entry = "from t5repro.library import CONSTANT\ndef main():\n    return CONSTANT\n"
    folder = package(tmp_path, library=LIBRARY, middle="from t5repro import library\n", entry=entry)
    assert changes(folder, "library", "CONSTANT, OTHER", f"{statement}\nCONSTANT, OTHER")
    (folder / "entry.py").write_text("import t5repro.middle\n")  # the effect needs no name
    assert changes(folder, "library", "CONSTANT, OTHER", f"{statement}\nCONSTANT, OTHER")


def test_what_a_statement_with_an_effect_calls_is_code(tmp_path: Path) -> None:
    library = LIBRARY + "\nprint(unused())\n"
    folder = package(tmp_path, library=library, entry="import t5repro.library\n")
    assert changes(folder, "library", "return 7", "return 8")
    assert not changes(folder, "library", "return 1", "return 2")


@pytest.mark.parametrize(
    "statement",
    ["import json", "from pathlib import Path", "LATE = Path('x')", "LATE = unused()", "LATE = {}"],
)
def test_a_value_that_nobody_names_is_no_code(tmp_path: Path, statement: str) -> None:
    folder = package(tmp_path, library=LIBRARY, entry="import t5repro.library\n")
    assert not changes(folder, "library", "CONSTANT, OTHER", f"{statement}\nCONSTANT, OTHER")


def test_another_source_of_an_imported_name_is_another_code(tmp_path: Path) -> None:
    entry = "from t5repro.library import used\ndef main():\n    return used()\n"
    folder = package(tmp_path, library=LIBRARY, twin=LIBRARY, entry=entry)
    assert changes(folder, "entry", "t5repro.library", "t5repro.twin")
    assert changes(folder, "entry", "import used", "import helper as used")


def test_the_init_of_every_package_on_the_way_is_run(tmp_path: Path) -> None:
    folder = package(
        tmp_path,
        entry="from t5repro.inner.library import used\ndef main():\n    return used()\n",
        inner__init="print('init')\n",
        inner__library=LIBRARY,
    )
    assert changes(folder, "inner/__init__", "init", "other")
    assert SourceTree(package=folder).files("entry") == (
        "src/t5repro/__init__.py",
        "src/t5repro/entry.py",
        "src/t5repro/inner/__init__.py",
        "src/t5repro/inner/library.py",
    )


def test_a_name_that_a_package_computes_reaches_what_computes_it(tmp_path: Path) -> None:
    entry = "from t5repro import inner\ndef main():\n    return inner.late()\n"
    init = "def __getattr__(name):\n    return 1\n"
    folder = package(tmp_path, entry=entry, inner__init=init)
    assert changes(folder, "inner/__init__", "return 1", "return 2")


def test_modules_that_name_each_other_are_followed_once(tmp_path: Path) -> None:
    folder = package(
        tmp_path,
        entry="from t5repro.a import f\ndef main():\n    return f()\n",
        a="from t5repro import b\ndef f():\n    return b.g()\n",
        b="from t5repro import a\ndef g():\n    return a.f()\n",
    )
    assert set(closure(folder)) == {f"src/t5repro/{name}.py" for name in ("a", "b", "entry")}


def test_two_definitions_of_one_name_both_count(tmp_path: Path) -> None:
    library = "def used():\n    return 1\n\ndef used():\n    return 2\n"
    entry = "from t5repro.library import used\ndef main():\n    return used()\n"
    folder = package(tmp_path, library=library, entry=entry)
    assert changes(folder, "library", "return 1", "return 3")
    assert changes(folder, "library", "return 2", "return 3")


def test_a_fact_has_the_names_of_a_quoted_annotation_and_not_of_a_literal() -> None:
    (statement,) = facts_of(
        "def f(a: 'np.ndarray', b: Literal['not a name']) -> 'C': ...", ""
    ).statements
    assert {"np", "C", "Literal"} <= {*statement.reads}
    assert statement.attributes == ()
