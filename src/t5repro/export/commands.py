"""The command `export`: writes a document, makes a key, or verifies signed statements.

Exit codes: 0 success; 1 a statement or a file is invalid; 2 the request is refused.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from t5repro.errors import LineageError, packages_of
from t5repro.export import ai_act
from t5repro.export.facts import Run, pretty, read_run
from t5repro.files import read_file, write_text
from t5repro.lineage.graph import load_graph
from t5repro.lineage.store import Folder

SUCCESS, INVALID = 0, 1
PROV_N = ".provn"


def export(
    format_name: str,
    artifact: str | None = None,
    *,
    root: Path = Path(),
    run: str | None = None,
    output: Path | None = None,
    key: Path | None = None,
    license_text: str | None = None,
    answers: Path | None = None,
    as_json: bool = False,
) -> int:
    """Write a run, or the provenance of an artifact, as a document of a standard.

    Args:
        format_name: ro-crate, ai-act, or one of `_WRITERS`.
        artifact: restricts the document to the provenance of this artifact; named as for `trace`.
        root: the checkout.
        run: name below ``results/``; required if there are several.
        output: file, or folder of a crate; without it the document is printed.
        key: private key, for in-toto.
        license_text: licence, for formats that have one.
        answers: a provider's answers, for ai-act.
        as_json: print the summary as JSON.

    Raises:
        LineageError: the document cannot be written, or a library is missing.
    """
    facts = read_run(root, run, artifact)
    summary: dict[str, Any] = {"format": format_name, "run": facts.name, "jobs": len(facts.jobs)}
    if format_name == "ro-crate":
        if output is None:
            raise LineageError("a crate is a folder: add --output FOLDER; . is this checkout")
        with packages_of("export"):
            from t5repro.export import ro_crate

            files = ro_crate.write(facts, output, license_text)
        _print_summary({**summary, "output": str(output), "files": len(files)}, as_json=as_json)
        return SUCCESS
    if answers is not None and format_name != "ai-act":
        raise LineageError("--answers belongs to --format ai-act; leave it out")
    with packages_of("export"):
        text = (
            ai_act.write(facts, output, answers)
            if format_name == "ai-act"
            else _WRITERS[format_name](facts, output, key, license_text)
        )
    if output is None:
        sys.stdout.write(text)
        return SUCCESS
    write_text(output, text)
    _print_summary({**summary, "output": str(output)}, as_json=as_json)
    return SUCCESS


def _print_summary(summary: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(summary, sort_keys=True))
        return
    files = f" and {summary['files']} files" if "files" in summary else ""
    print(
        f"{summary['output']}: {summary['format']} of run {summary['run']}, "
        f"{summary['jobs']} jobs{files}"
    )


def _prov(run: Run, output: Path | None, key: Path | None, license_text: str | None) -> str:
    from t5repro.export.prov import document

    prov_document = document(run)
    if output is not None and output.suffix == PROV_N:
        return str(prov_document.get_provn()) + "\n"
    return pretty(json.loads(prov_document.serialize(format="json")))


def _in_toto(run: Run, output: Path | None, key: Path | None, license_text: str | None) -> str:
    from t5repro.export.in_toto import attest
    from t5repro.lineage.keys import read_signer

    if key is None:
        raise LineageError("statements are signed: add --key FILE; --new-key FILE makes one")
    return attest(run, read_signer(key))


def _openlineage(run: Run, output: Path | None, key: Path | None, license_text: str | None) -> str:
    from t5repro.export.openlineage import events

    return events(run)


def _croissant(run: Run, output: Path | None, key: Path | None, license_text: str | None) -> str:
    from t5repro.export.croissant import document

    return pretty(document(run, run.root if output is None else output.parent, license_text))


def _cyclonedx(run: Run, output: Path | None, key: Path | None, license_text: str | None) -> str:
    from t5repro.export.cyclonedx import document

    return pretty(document(run))


_WRITERS: dict[str, Callable[[Run, Path | None, Path | None, str | None], str]] = {
    "prov": _prov,
    "in-toto": _in_toto,
    "openlineage": _openlineage,
    "croissant": _croissant,
    "cyclonedx": _cyclonedx,
}


def new_key(path: Path, *, root: Path = Path(), as_json: bool = False) -> int:
    """Make a signing key.

    Raises:
        LineageError: the file exists, or the path is inside the checkout.
    """
    with packages_of("export"):
        from t5repro.lineage import keys

        public = keys.new_key(path, root)
    text = f"{path}: private key, keep it\n{public}: public key, for those who verify"
    print(json.dumps({"private": str(path), "public": str(public)}) if as_json else text)
    return SUCCESS


def verify(
    statements: Path, public_key: Path, *, root: Path = Path(), as_json: bool = False
) -> int:
    """Verify signed statements and the files that they name.

    Raises:
        LineageError: the file or the key cannot be read.
    """
    with packages_of("export"):
        from t5repro.export import in_toto
        from t5repro.lineage.keys import read_public

        key = read_public(public_key)
        try:
            lines = read_file(statements).decode("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise LineageError(
                f"--verify {statements}: {error}; name a file that export --format in-toto wrote"
            ) from error
        if not lines:
            raise LineageError(f"--verify {statements}: contains no statement")
        jobs = load_graph(Folder(root)).jobs.values()
        verification = in_toto.verify(lines, key, root, jobs)
    print(
        json.dumps(verification.to_json(), indent=2) if as_json else verification.to_text(), end=""
    )
    if as_json:
        print()
    return INVALID if verification.findings else SUCCESS
