"""Every hostile form in every kind of file: a message of every command, no traceback, no pass."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hostile_forms import FORMS, PLACES, replaced
from made_graphs import SCORES, write
from made_records import commit, sealed_run, write_index

from t5repro.cli.main import main
from t5repro.lineage.keys import new_key, public_key_of, ssh_text
from t5repro.lineage.shared_facts import share
from t5repro.lineage.signatures import sign

Words = Sequence[str]
RAW, KEY = "data/tasks/one.tsv", "../keys/alice"
VERIFY, VERIFY_JSON = ("verify",), ("verify", "--json")
TRACE, DIFF, IMPACT = ("trace", SCORES), ("diff", ".", "."), ("impact", RAW)
SIGN = ("sign", "--run", "r", "--key", KEY)
ALLOW = (*SIGN, "--allow", "bob@example.org")
WITHDRAW = ("withdraw", RAW, "--reason", "ticket")
EXPORT = ("export", "--format", "in-toto", "--key", KEY)
CHECK_STATEMENTS = ("export", "--verify", "statements.jsonl", "--public-key", f"{KEY}.pub")
SHOW_OWN = ("config", "show", "withdrawing.yaml")
ESTIMATE = ("estimate", "--configfile", "run.yaml")


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        path: of the file.
        refusing: commands that must fail and name the file.
        reading: commands that may go on without the file; they end as they should.
        harmless: forms that say what an honest file may say.
    """

    path: str
    refusing: tuple[Words, ...]
    reading: tuple[Words, ...] = ()
    harmless: tuple[str, ...] = ()


# A list without entries says that there are none; a link to itself is no file.
NO_ENTRIES = ("empty", "spaces", "mapping", "null")
KINDS = {
    "manifest": Kind(
        "results/r/evaluate_score/a/manifest.json", (VERIFY, VERIFY_JSON), (TRACE, DIFF, IMPACT)
    ),
    "record": Kind("records/r/evaluate_score/a.json", (VERIFY,), (TRACE, DIFF, IMPACT)),
    "index": Kind("records/r.index.json", (VERIFY, SIGN)),
    "shared facts": Kind("records/r/shared/", (VERIFY,), (TRACE, DIFF)),
    "signatures": Kind("records/r.intoto.jsonl", (VERIFY,), harmless=("itself twice",)),
    "signers": Kind("configs/allowed_signers", (ALLOW,), harmless=("itself twice", *NO_ENTRIES)),
    "private key": Kind(KEY, (SIGN, EXPORT), harmless=("itself twice",)),
    "public key": Kind(f"{KEY}.pub", (CHECK_STATEMENTS,), harmless=("itself twice",)),
    "statements": Kind("statements.jsonl", (), (CHECK_STATEMENTS,)),
    "journal": Kind("withdrawn/unfinished.json", (SIGN, WITHDRAW), harmless=("link to itself",)),
    "lock": Kind("dvc.lock", (VERIFY,), (IMPACT,)),
    "raw data": Kind("data.dvc", (VERIFY,)),
    "withdrawn pages": Kind("withdrawn/pages.yaml", (VERIFY,), harmless=NO_ENTRIES),
    "withdrawn files": Kind("withdrawn/files.yaml", (SHOW_OWN,), harmless=NO_ENTRIES),
    "run file": Kind("run.yaml", (("config", "show", "run.yaml"),), (ESTIMATE,), NO_ENTRIES),
    "sources": Kind("sources.yaml", (("config", "show", "including.yaml"),), harmless=("list",)),
    "rates": Kind("rates.yaml", ((*ESTIMATE, "--rates", "rates.yaml"),)),
    "prices": Kind("prices.yaml", ((*ESTIMATE, "--prices", "prices.yaml"),)),
}
# One kind for each reader has all forms, the others have those that most readers trip over.
WITH_ALL_FORMS = ("manifest", "record", "lock", "run file", "private key")
TYPICAL = (
    *("empty", "deep", "list", "text", "too large", "NaN", "twice", "UTF-16", "Latin-1"),
    *("surrogate", "control", "controls", "conflict", "half", *PLACES),
)
# PyYAML takes seconds for them, and they differ from others only in JSON.
LONG = ("deep", "10 MB")
OF_YAML = ("withdrawn pages", "withdrawn files", "run file", "sources", "rates", "prices")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed run, the records of which share their facts, and files of a user."""
    root = sealed_run(tmp_path_factory.mktemp("run") / "checkout")
    new_key(root / KEY, root)
    write(root, "configs/allowed_signers", f"a@example.org {ssh_text(public_key_of(root / KEY))}\n")
    for path in sorted((root / "records/r").rglob("*.json")):
        share(path)
    write_index(root)
    sign(root, "r", root / KEY)
    write(root, "withdrawn/pages.yaml", "domains: {}\nurls: {http://a.example/: ticket}\n")
    write(root, "withdrawn/files.yaml", "files: {tasks/none.tsv: ticket}\n")
    write(root, "run.yaml", "run: {name: own}\n")
    write(root, "withdrawing.yaml", "run: {name: own}\n")
    write(root, "including.yaml", "data: {sources: [{include: sources.yaml}]}\n")
    write(root, "sources.yaml", "- {origin: here, licence: mine, files: {a.txt: ''}}\n")
    write(root, "rates.yaml", "rates: []\n")
    write(root, "prices.yaml", "{}\n")
    write(root, "statements.jsonl", "{}\n")
    commit(root, "signed")
    return root


def forms_of(name: str) -> list[str]:
    kind = KINDS[name]
    too_long = LONG if name in OF_YAML else ()
    forms = FORMS if name in WITH_ALL_FORMS else TYPICAL
    return [form for form in forms if form not in (*kind.harmless, *too_long)]


CASES = [(name, form) for name in KINDS for form in forms_of(name)]


@pytest.mark.parametrize(("name", "form"), CASES, ids=[" ".join(case) for case in CASES])
def test_a_hostile_file_is_named_and_nothing_ends_in_a_traceback(
    checkout: Path,
    name: str,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(checkout)
    for level in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(level, str(checkout / "no_configuration"))
    kind = KINDS[name]
    path = checkout / kind.path
    if kind.path.endswith("/"):
        path = next(path.glob("*.json"))
    signatures = (checkout / KINDS["signatures"].path).read_bytes()
    with replaced(path, form):
        for words in (*kind.refusing, *kind.reading):
            code = main(words)  # an exception fails the test
            printed = "".join(capfd.readouterr())
            assert not {"\x1b", "\x07"} & set(printed), words
            assert max(map(len, printed.splitlines()), default=0) < 10_000_000, words
            if words in kind.refusing:
                assert code in (1, 2), (words, printed)
                assert path.name in printed, (words, printed)
    (checkout / KINDS["signatures"].path).write_bytes(signatures)


def test_half_of_a_lock_is_named(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    for name in ("dvc.lock", "data.dvc"):
        honest = (checkout / name).read_bytes()
        for length in range(1, len(honest), 7 if name == "data.dvc" else 397):
            (checkout / name).write_bytes(honest[:length])
            assert main(["verify"]) in (1, 2), (name, length)
        (checkout / name).write_bytes(honest)


def test_an_unreadable_record_is_said_by_every_question_about_its_job(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(checkout)
    with replaced(checkout / "records/r/evaluate_score/a.json", "half"):
        for words in (TRACE, DIFF, IMPACT):
            main(words)
            error = capfd.readouterr().err
            assert "1 of 9 records cannot be read" in error, words
            assert "records/r/evaluate_score/a.json is not JSON" in error, words


def test_signatures_that_are_lost_are_named_and_those_over_former_results_are_not(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(checkout)
    path = checkout / "records/r.intoto.jsonl"
    honest = path.read_bytes()
    path.unlink()
    assert main(VERIFY) == 1
    assert "the commit has signatures of this state" in capfd.readouterr().out
    path.write_bytes(honest)


def test_a_name_with_a_line_break_prints_no_line_of_its_own(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(checkout)
    path = checkout / "results/r/c4/a/x\nattested: upstream@example.org signed dvc.lock"
    path.touch()
    assert main(VERIFY) == 1
    lines = capfd.readouterr().out.splitlines()
    path.unlink()
    assert any("attested: upstream" in line for line in lines)
    assert not any(line.startswith("attested: upstream") for line in lines)
    manifest = checkout / KINDS["manifest"].path
    honest = manifest.read_bytes()
    manifest.write_bytes(honest.replace(b"evaluate_score/a/scores", b"evaluate\\nscore/a/scores"))
    assert main(TRACE) == 1
    assert "has a line break" in capfd.readouterr().err
    manifest.write_bytes(honest)


def test_a_long_value_of_a_damaged_file_is_cut(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(checkout)
    with replaced(checkout / "records/r.index.json", "10 MB"):
        assert main(VERIFY) == 1
    printed = capfd.readouterr().out
    assert len(printed) < 100_000
    assert "characters more)" in printed
