"""Exported weights in the libraries they are for, as the page shows."""

from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from documented_steps import BLOCK
from finished_run import RUN, TEXTS, VOCABULARY, settings, write_run

from t5repro.files import read_json_lines
from t5repro.publish.weights import export_weights

pytestmark = [
    pytest.mark.keras,
    # keras-hub's T5 warns about its own layers when a user builds it,
    pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning"),
    # ... and leaves the vocabulary's file to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed file.*vocabulary.spm:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in.*vocabulary.spm"),
]


def test_the_documented_lines_for_keras_hub_answer_as_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/exchange.md").read_text(encoding="utf-8")
    (code,) = (
        block["body"]
        for block in BLOCK.finditer(page)
        if block["kind"] == "python" and "keras_hub" in block["body"]
    )
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path)
    export_weights(
        RUN / "finetune/baseline/manifest.json",
        vocabulary=VOCABULARY,
        form="keras_hub",
        folder=Path("t5_preset"),
    )
    names: dict[str, object] = {}
    inputs_length = f"encoder_sequence_length = {settings(()).evaluate.inputs_length}"
    exec(code.replace("encoder_sequence_length = 128", inputs_length), names)  # noqa: S102
    assert capsys.readouterr().out.count("\n") == 2
    expected = [
        row["prediction"] for row in read_json_lines(RUN / "evaluate_predict/baseline/one.jsonl")
    ]
    model: Any = names["model"]
    assert list(model.generate(TEXTS, max_length=13)) == expected
    assert len(set(expected)) > 1
