"""The code a stage runs is found by its imports."""

from t5repro.lineage.sources import MODULES, source_files


def test_a_stage_runs_its_module_and_all_it_imports() -> None:
    files = source_files("data.raw")
    assert "src/t5repro/data/raw.py" in files
    assert "src/t5repro/config/schema.py" in files
    assert "src/t5repro/files.py" in files
    assert not any("/cli/" in name for name in files)
    assert list(files) == sorted(files)


def test_files_read_from_beside_a_module_count_as_its_code() -> None:
    files = source_files("report.page")
    assert "src/t5repro/report/paper_tables.json" in files
    assert any(path.endswith(".css") for path in files)


def test_a_module_that_is_none_runs_nothing() -> None:
    assert source_files("no_such_module") == ()


def test_a_change_of_the_vocabulary_trainer_reruns_neither_tokens_nor_training():
    trainers = {"src/t5repro/vocab/sample.py", "src/t5repro/vocab/train.py"}
    for rule in ("tokens", "pretrain", "finetune", "evaluate_predict"):
        assert not trainers & set(source_files(MODULES[rule])), rule
