import io
from pathlib import Path

import pytest
import sentencepiece

from t5repro.config.sections.vocab import VocabStage
from t5repro.errors import ArtifactError, VocabularyError
from t5repro.files import read_json
from t5repro.jobs.corpus import VocabJob
from t5repro.vocab.special_ids import add_sentinels
from t5repro.vocab.train import make_vocabulary


def vocab_settings(size: int = 120, extra_ids: int = 100) -> VocabStage:
    return VocabStage.model_validate(
        {"vocab": {"vocab_size": size, "extra_ids": extra_ids, "character_coverage": 0.9995}}
    )


def train(settings: VocabStage, sample: Path, folder: Path) -> tuple[Path, Path]:
    model, pieces = folder / "sentencepiece.model", folder / "sentencepiece.vocab"
    make_vocabulary(
        VocabJob(
            settings, sample=sample, model=model, pieces=pieces, manifest=folder / "manifest.json"
        )
    )
    return model, pieces


def test_special_ids_are_those_of_t5_and_sentinels_count_down_from_the_last_id(
    sample: Path, tmp_path: Path
):
    model, pieces = train(vocab_settings(), sample, tmp_path)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    assert [processor.id_to_piece(number) for number in range(3)] == ["<pad>", "</s>", "<unk>"]
    assert processor.bos_id() == -1
    assert processor.get_piece_size() == 220
    assert processor.id_to_piece(219) == "▁<extra_id_0>"
    assert processor.id_to_piece(120) == "▁<extra_id_99>"
    assert processor.encode("The <extra_id_0> mill <extra_id_99>.")[-2] == 120
    lines = pieces.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 220
    assert lines[0] == "<pad>\t0"
    assert lines[219] == "▁<extra_id_0>\t0"
    assert read_json(tmp_path / "manifest.json")["counters"] == {
        "pieces": 120,
        "sentinels": 100,
        "ids": 220,
    }


def test_appended_sentinels_parse_as_user_defined_pieces(sample: Path, tmp_path: Path):
    proto = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    model, _ = train(vocab_settings(extra_ids=2), sample, tmp_path)
    parsed = proto.ModelProto.FromString(model.read_bytes())
    last = [(piece.piece, piece.score, piece.type) for piece in parsed.pieces[-2:]]
    assert last == [("▁<extra_id_1>", 0.0, 4), ("▁<extra_id_0>", 0.0, 4)]
    assert parsed.SerializeToString() == add_sentinels(parsed.SerializeToString(), 0)


def test_two_folders_give_the_same_bytes_and_no_path_is_in_them(sample: Path, tmp_path: Path):
    elsewhere = tmp_path / "else" / "where"
    elsewhere.mkdir(parents=True)
    copy = elsewhere / "text.txt"
    copy.write_bytes(sample.read_bytes())
    here = train(vocab_settings(), sample, tmp_path)[0].read_bytes()
    assert here == train(vocab_settings(), copy, elsewhere)[0].read_bytes()
    assert tmp_path.name.encode() not in here
    assert b"sample" not in here


def test_too_large_a_vocabulary_is_refused_with_the_largest_possible(sample: Path, tmp_path: Path):
    with pytest.raises(VocabularyError, match=r"vocab_size is 60000, .* allows at most (\d+)") as e:
        train(vocab_settings(60_000), sample, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    largest = int(str(e.value).split("at most ")[1].split()[0])
    train(vocab_settings(largest), sample, tmp_path / "out")


def test_too_small_a_vocabulary_is_refused_with_what_the_characters_need(
    sample: Path, tmp_path: Path
):
    with pytest.raises(VocabularyError, match=r"vocab_size is 16, .* alone need \d+ pieces"):
        train(vocab_settings(16), sample, tmp_path / "out")


def test_an_empty_sample_is_refused(tmp_path: Path):
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(VocabularyError, match=r"cannot train on .*empty.txt"):
        train(vocab_settings(), tmp_path / "empty.txt", tmp_path / "out")


def test_a_missing_sample_names_the_rule_that_writes_it(tmp_path: Path):
    with pytest.raises(ArtifactError, match=r"sample.txt is missing; run the rule vocab_sample"):
        train(vocab_settings(), tmp_path / "sample.txt", tmp_path)


def test_the_trainer_is_quiet(sample: Path, tmp_path: Path, capfd):
    train(vocab_settings(), sample, tmp_path)
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["vocab", "vocab"]


def test_the_model_depends_on_the_coverage_asked_for(sample: Path, tmp_path: Path):
    rare = tmp_path / "rare.txt"
    rare.write_text(sample.read_text(encoding="utf-8") + "ß" * 2, encoding="utf-8")
    settings = vocab_settings()
    full = settings.model_copy(
        update={"vocab": settings.vocab.model_copy(update={"character_coverage": 1.0})}
    )
    narrow = sentencepiece.SentencePieceProcessor(
        model_file=str(train(settings, rare, tmp_path)[0])
    )
    assert narrow.encode("ß")[-1] == narrow.unk_id()
    whole = sentencepiece.SentencePieceProcessor(model_file=str(train(full, rare, tmp_path)[0]))
    assert whole.encode("ß")[-1] != whole.unk_id()


def test_required_characters_get_a_piece_though_the_text_lacks_them(sample: Path, tmp_path: Path):
    settings = vocab_settings()
    required = settings.model_copy(
        update={"vocab": settings.vocab.model_copy(update={"required_characters": "_§"})}
    )
    pieces = train(settings, sample, tmp_path)[1].read_text(encoding="utf-8")
    assert "_\t" not in pieces
    pieces = train(required, sample, tmp_path)[1].read_text(encoding="utf-8")
    assert "\n_\t" in pieces
    assert "\n§\t" in pieces


def adopt(tmp_path, source, size, extra_ids=8, tokenizer=()):
    settings = VocabStage.model_validate(
        {"vocab": {"vocab_size": size, "extra_ids": extra_ids, "character_coverage": 1.0}}
    )
    make_vocabulary(
        VocabJob(
            settings,
            model_file=source,
            tokenizer=tokenizer,
            model=tmp_path / "adopted.model",
            pieces=tmp_path / "adopted.vocab",
            manifest=tmp_path / "adopted.json",
        )
    )
    return (tmp_path / "adopted.model").read_bytes()


def bare_model(size=36):
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(f"word{n} and yes or no" for n in range(200)),
        model_writer=trained,
        vocab_size=size,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    return trained.getvalue()


def test_a_vocabulary_of_an_owner_gets_sentinels_once(tmp_path):
    source = tmp_path / "spiece.model"
    source.write_bytes(bare_model())
    adopted = adopt(tmp_path, source, 36)
    assert adopted == add_sentinels(bare_model(), 8)
    pieces = (tmp_path / "adopted.vocab").read_text(encoding="utf-8").splitlines()
    assert len(pieces) == 44
    assert pieces[-1].startswith("▁<extra_id_0>\t")
    source.write_bytes(adopted)
    assert adopt(tmp_path, source, 36) == adopted


def test_a_vocabulary_of_another_number_of_pieces_names_the_setting(tmp_path):
    source = tmp_path / "spiece.model"
    source.write_bytes(bare_model())
    with pytest.raises(VocabularyError, match="has 44 ids .* set vocab.vocab_size to 36"):
        adopt(tmp_path, source, 50)


def test_an_adopted_vocabulary_has_the_sentinels_that_its_tokenizer_states(tmp_path):
    source, tokenizer = tmp_path / "spiece.model", tmp_path / "added_tokens.json"
    source.write_bytes(bare_model())
    tokenizer.write_text('{"<extra_id_0>": 43, "<extra_id_1>": 42}')
    assert adopt(tmp_path, source, 36, tokenizer=[tokenizer]) == add_sentinels(bare_model(), 8)
    inputs = read_json(tmp_path / "adopted.json")["inputs"]
    assert [Path(entry["path"]) for entry in inputs] == [source, tokenizer]
    tokenizer.write_text('{"<extra_id_0>": 135}')
    with pytest.raises(VocabularyError, match="'<extra_id_0>' as id 135, .* has it as id 43"):
        adopt(tmp_path, source, 36, tokenizer=[tokenizer])


def test_a_file_that_is_no_vocabulary_is_refused(tmp_path):
    source = tmp_path / "spiece.model"
    with pytest.raises(ArtifactError, match="is missing; vocab.model_file names it"):
        adopt(tmp_path, source, 36)
    source.write_bytes(b"nothing")
    with pytest.raises(ArtifactError, match="not a SentencePiece model; get it again"):
        adopt(tmp_path, source, 36)
