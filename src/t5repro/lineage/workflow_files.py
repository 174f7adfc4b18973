"""The rule files and the run file of a job: what decides its command line and its settings.

A job knows its own rule only, so a rule file counts for the rules that it contains, and the
Snakefile and ``common.smk`` for all. Comments and the text at the head of a rule file decide
nothing, so their hash leaves them out. Snakemake passes the names of its run files to the jobs in
an environment variable.
"""

import hashlib
import io
import json
import os
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from t5repro.config.run_file import included_files
from t5repro.config.withdrawn import FILES
from t5repro.files import sha256_of
from t5repro.lineage.redaction import redact, redact_path

VARIABLE = "T5REPRO_RUN_FILES"
SHARED_RULE_FILES = (
    *(Path("Snakefile"), Path("workflow/rules/common.smk")),
    Path("src/t5repro/plan/commands.py"),  # writes the command lines of the rules
)
RULE_FILES = Path("workflow/rules")


@dataclass(frozen=True)
class RunFile:
    """The run file of a job.

    Attributes:
        names: the run files in the order in which Snakemake merges them.
        hashes: run file or included file -> SHA-256.
        overrides: settings of the command line, nested or dotted.
    """

    names: list[str]
    hashes: dict[str, str]
    overrides: dict[str, Any]


def rule_files(rule: str, root: Path = Path()) -> list[Path]:
    """Return the rule files that decide the command of a rule, relative to the checkout."""
    command = re.compile(rf"\bt5repro stage {re.escape(rule)}(?!\w)|command_of\(\"{rule}\"\)")
    own = (
        path.relative_to(root)
        for path in sorted((root / RULE_FILES).glob("*.smk"))
        if command.search(path.read_text(encoding="utf-8"))
    )
    shared = (path for path in SHARED_RULE_FILES if (root / path).is_file())
    return list(dict.fromkeys([*shared, *own]))


def rule_file_hashes(rule: str, root: Path = Path()) -> dict[str, str]:
    """Return rule file -> hash of its text without comments."""
    return {
        path.as_posix(): rule_text_hash((root / path).read_text(encoding="utf-8"))
        for path in rule_files(rule, root)
    }


@lru_cache(maxsize=64)  # the shared rule files count for every rule
def rule_text_hash(text: str) -> str:
    """Return a hash of a rule file without comments, empty lines and the text at its head."""
    lines = text.splitlines()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):  # not a rule file: every byte counts
        return hashlib.sha256(text.encode()).hexdigest()
    # By position, because Python 3.12 divides an f-string into tokens and 3.11 does not.
    for token in tokens:
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    head = next((t for t in tokens if t.type not in (tokenize.COMMENT, tokenize.NL)), None)
    if head is not None and head.type == tokenize.STRING:
        lines[head.start[0] - 1 : head.end[0]] = [""] * (head.end[0] - head.start[0] + 1)
    code_lines = [line.rstrip() for line in lines]
    return hashlib.sha256("\n".join(filter(None, code_lines)).encode()).hexdigest()


def describe_run(names: Iterable[Path], overrides: Mapping[str, Any]) -> str:
    """Return the value of `VARIABLE` for the jobs of a run."""
    return json.dumps({"names": [str(name) for name in names], "overrides": dict(overrides)})


def run_file() -> RunFile | None:
    """Return the run file of this job; None if Snakemake did not start it."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return None
    values = json.loads(text)
    names = [Path(name) for name in values["names"]]
    included = [path for name in names for path in included_files(name)]
    paths = [*names, *included, FILES]
    return RunFile(
        names=[redact_path(name) for name in names],
        hashes={redact_path(path): sha256_of(path) for path in paths if path.is_file()},
        overrides=redact(values["overrides"]),
    )
