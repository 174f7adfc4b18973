"""Encoders alone in Hugging Face's form and back, without its code."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

keras = pytest.importorskip("keras")
from safetensors.numpy import load_file, save_file  # noqa: E402

from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.errors import CheckpointError  # noqa: E402
from t5repro.files import write_json  # noqa: E402
from t5repro.model.checkpoints import save_weights, weight_variables  # noqa: E402
from t5repro.model.encoder import Encoder  # noqa: E402
from t5repro.model.foreign_weights import fit, read_foreign  # noqa: E402
from t5repro.model.labels import LabelColumns, TaskAnswer  # noqa: E402
from t5repro.model.trained_as import TrainedAs  # noqa: E402
from t5repro.model.weight_names import from_huggingface, to_huggingface, weight_names  # noqa: E402
from t5repro.publish.tokenizer_files import VocabularyFiles  # noqa: E402
from t5repro.publish.weights import export_weights, write_huggingface  # noqa: E402
from t5repro.train.import_weights import import_weights  # noqa: E402
from t5repro.train.initialize import load_published  # noqa: E402

pytestmark = pytest.mark.keras

NO_VOCABULARY = VocabularyFiles(b"", b"", 0)
ROWS = 96
ODD = {
    "d_model": 15,
    "d_ff": 22,
    "d_kv": 5,
    "num_heads": 3,
    "num_encoder_layers": 4,
    "num_decoder_layers": 4,
    "max_positions": 17,
}


def settings(size, **change):
    of_size = {key: getattr(SIZES[size], key) for key in SIZES[size].model_fields_set}
    return ModelSettings(**{**of_size, **ODD, **change})


NETWORKS = {
    "bert": settings("bert_base"),
    "roberta": settings("roberta_base"),
    "albert": settings("albert_base", embedding_width=7, block_groups=2, blocks_per_group=2),
}
HEADS = {"masked": {}, "pairs": {"pair_classes": 2}, "labels": {"labels": 4}}
CASES = [
    (name, head) for name in NETWORKS for head in HEADS if (name, head) != ("roberta", "pairs")
]


def network(name, **arguments):
    defaults = {"embedding_rows": ROWS, "dropout_rate": 0.0, "seed": 0}
    return Encoder(NETWORKS[name], **(defaults | arguments))


def arrays_of(model):
    return {name: variable.numpy() for name, variable in weight_variables(model).items()}


def write(folder, model):
    write_huggingface(folder, model.settings, arrays_of(model), NO_VOCABULARY)


def change_config(folder, **change):
    path = folder / "config.json"
    values = json.loads(path.read_text()) | change
    path.write_text(json.dumps({key: x for key, x in values.items() if x is not None}))


def change_arrays(folder, change):
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path)


@pytest.mark.parametrize(("name", "head"), sorted(CASES))
def test_weights_and_settings_return_unchanged(tmp_path, name, head):
    model = network(name, **HEADS[head])
    write(tmp_path, model)
    foreign = read_foreign(tmp_path)
    assert foreign.model.stated == model.settings.stated
    assert foreign.weights.keys() == arrays_of(model).keys()
    for path, array in arrays_of(model).items():
        np.testing.assert_array_equal(foreign.weights[path], array, err_msg=path)


@pytest.mark.parametrize(
    ("name", "head", "architecture"),
    [
        ("bert", "pairs", "BertForPreTraining"),
        ("bert", "masked", "BertForMaskedLM"),
        ("bert", "labels", "BertForSequenceClassification"),
        ("roberta", "masked", "RobertaForMaskedLM"),
        ("albert", "pairs", "AlbertForPreTraining"),
    ],
)
def test_the_class_of_hugging_face_follows_from_the_heads(tmp_path, name, head, architecture):
    write(tmp_path, network(name, **HEADS[head]))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == [architecture]
    assert len(config.get("id2label", {})) == (4 if head == "labels" else 0)


ANSWERS = {
    "glue_rte": TaskAnswer("label", ("entailment", "not_entailment")),
    "glue_stsb": TaskAnswer("number"),
    "super_glue_copa": TaskAnswer("choice", ("choice1", "choice2")),
}


def config_of(folder, name, *tasks, **trained):
    columns = LabelColumns({task: ANSWERS[task] for task in tasks})
    model = network(name, labels=columns.total)
    how = TrainedAs(columns=columns, **trained)
    write_huggingface(folder, model.settings, arrays_of(model), NO_VOCABULARY, how)
    return json.loads((folder / "config.json").read_text())


def test_labels_have_the_words_of_one_task_and_the_tasks_of_several(tmp_path):
    one = config_of(tmp_path, "bert", "glue_rte")
    assert one["id2label"] == {"0": "entailment", "1": "not_entailment"}
    assert one["label2id"] == {"entailment": 0, "not_entailment": 1}
    several = config_of(tmp_path, "albert", "glue_stsb", "glue_rte")
    words = ["glue_rte: entailment", "glue_rte: not_entailment", "glue_stsb"]
    assert list(several["id2label"].values()) == words
    number = config_of(tmp_path, "roberta", "glue_stsb")
    assert number["id2label"] == {"0": "glue_stsb"}


def test_choices_alone_are_a_class_of_choices_if_it_has_the_head_of_labels(tmp_path):
    def architecture(name):
        return config_of(tmp_path, name, "super_glue_copa")["architectures"]

    assert architecture("bert") == ["BertForMultipleChoice"]
    assert architecture("albert") == ["AlbertForMultipleChoice"]
    assert architecture("roberta") == ["RobertaForSequenceClassification"]


def test_the_configuration_has_the_dropout_of_the_training(tmp_path):
    """ALBERT's second version is trained without, and has 0.1 in the head of fine-tuning."""
    albert = config_of(tmp_path, "albert", "glue_rte", dropout_rate=0.0, classifier_dropout=0.1)
    rates = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob")
    assert [albert[rate] for rate in rates] == [0.0, 0.0, 0.1]
    roberta = config_of(tmp_path, "roberta", "glue_rte", dropout_rate=0.2, classifier_dropout=0.0)
    assert (roberta["hidden_dropout_prob"], roberta["classifier_dropout"]) == (0.2, 0.0)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"finetune": {"dropout_rate": 0.3, "classifier_dropout": 0.4}, "pretrain": {}},
            (0.3, 0.4),
        ),
        ({"pretrain": {"dropout_rate": 0.0}}, (0.0, 0.0)),
        ({}, (0.1, 0.1)),
    ],
)
def test_the_training_is_that_of_the_manifest(settings, expected):
    trained = TrainedAs.of_settings(settings, LabelColumns({}))
    assert (trained.dropout_rate, trained.head_dropout) == expected


@pytest.mark.parametrize("name", NETWORKS)
def test_every_weight_has_one_name(name):
    names = weight_names(NETWORKS[name])
    paths = [weight.path for weight in names]
    foreign = [weight.huggingface for weight in names]
    assert len(set(paths)) == len(paths)
    assert len(set(foreign)) == len(foreign)
    pretraining = {} if name == "roberta" else HEADS["pairs"]
    networks = (
        network(name, **heads)
        for heads in (pretraining, HEADS["labels"], {"predicts_spans": True}, {"tags": 9})
    )
    assert set(paths) == {path for model in networks for path in weight_variables(model)}


def test_matrices_are_transposed_and_tables_are_not():
    model = network("albert")
    arrays = arrays_of(model)
    state = to_huggingface(arrays, model.settings)
    query = "albert.encoder.albert_layer_groups.1.albert_layers.0.attention.query.weight"
    np.testing.assert_array_equal(state[query], arrays["encoder/block_2/self_attention/q"].T)
    types = state["albert.embeddings.token_type_embeddings.weight"]
    np.testing.assert_array_equal(types, arrays["encoder/token_types/table"])
    assert from_huggingface(state, model.settings).keys() == arrays.keys()


def test_roberta_has_rows_that_no_position_has(tmp_path):
    model = network("roberta")
    write(tmp_path, model)
    state = load_file(tmp_path / "model.safetensors")
    table = state["roberta.embeddings.position_embeddings.weight"]
    # This project's padding has the id 0, so its first position is row 1.
    assert table.shape == (18, 15)
    assert not table[0].any()
    assert not state["roberta.embeddings.token_type_embeddings.weight"].any()


def test_the_first_position_of_released_roberta_is_row_2_and_its_type_is_added(tmp_path):
    model = network("roberta")
    write(tmp_path, model)
    added = np.linspace(-1, 1, 15, dtype=np.float32)

    def as_released(state):
        name = "roberta.embeddings.position_embeddings.weight"
        state[name] = np.pad(state[name][1:], ((2, 0), (0, 0)), constant_values=9)
        state["roberta.embeddings.token_type_embeddings.weight"] = added[None]
        return state

    change_arrays(tmp_path, as_released)
    change_config(tmp_path, pad_token_id=None, max_position_embeddings=19)
    foreign = read_foreign(tmp_path)
    expected = arrays_of(model)["encoder/positions/table"] + added
    np.testing.assert_array_equal(foreign.weights["encoder/positions/table"], expected)


def test_the_first_names_of_norms_and_states_without_heads_are_read(tmp_path):
    model = network("bert", pair_classes=2)
    write(tmp_path, model)

    def as_released(state):
        body = {name.removeprefix("bert."): x for name, x in state.items() if "cls." not in name}
        for ours, theirs in (("LayerNorm.weight", "gamma"), ("LayerNorm.bias", "beta")):
            body = {n.replace(ours, f"LayerNorm.{theirs}"): x for n, x in body.items()}
        return body

    change_arrays(tmp_path, as_released)
    weights = read_foreign(tmp_path).weights
    expected = {path: x for path, x in arrays_of(model).items() if "_head" not in path}
    expected = {path: x for path, x in expected.items() if "masked_lm" not in path}
    assert weights.keys() == expected.keys()


@pytest.mark.parametrize(
    ("name", "constants", "copy", "original"),
    [
        (
            "bert",
            ["bert.embeddings.position_ids", "bert.embeddings.token_type_ids"],
            "cls.predictions.decoder.weight",
            "bert.embeddings.word_embeddings.weight",
        ),
        (
            "roberta",
            ["roberta.pooler.dense.weight", "roberta.embeddings.position_ids"],
            "lm_head.decoder.bias",
            "lm_head.bias",
        ),
    ],
)
def test_arrays_beyond_the_network_are_known_or_refused_by_name(
    tmp_path, name, constants, copy, original
):
    write(tmp_path, network(name))
    weights = read_foreign(tmp_path).weights
    extra = {constant: np.ones(2, np.float32) for constant in constants}
    change_arrays(tmp_path, lambda state: {**state, **extra, copy: state[original].copy()})
    assert read_foreign(tmp_path).weights.keys() == weights.keys()
    change_arrays(tmp_path, lambda state: {**state, copy: state[copy] + 1})
    with pytest.raises(CheckpointError, match=f"'{copy}' is not equal to '{original}'"):
        read_foreign(tmp_path)
    strange = f"{name}.encoder.layer.9.output.dense.bias"
    change_arrays(
        tmp_path,
        lambda state: {**state, copy: state[original].copy(), strange: extra[constants[0]]},
    )
    with pytest.raises(CheckpointError, match=f"lacks: '{strange}'"):
        read_foreign(tmp_path)


def test_a_head_without_one_of_its_weights_is_refused(tmp_path):
    write(tmp_path, network("bert"))
    change_arrays(
        tmp_path,
        lambda state: {
            n: x for n, x in state.items() if n != "cls.predictions.transform.dense.bias"
        },
    )
    with pytest.raises(CheckpointError, match="lacks 'masked_lm/transform/bias'"):
        read_foreign(tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("bert", {"hidden_act": "silu"}, "hidden_act is 'silu'; allowed are"),
        (
            "bert",
            {"position_embedding_type": "relative_key"},
            "position_embedding_type is 'relative_key'; only 'absolute' can be read",
        ),
        (
            "bert",
            {"num_attention_heads": 4},
            "hidden_size 15 is not a multiple of num_attention_heads",
        ),
        ("bert", {"intermediate_size": None}, "has no 'intermediate_size'"),
        ("bert", {"max_position_embeddings": 0}, "model.max_positions is 0"),
        ("bert", {"num_hidden_layers": 2000}, "has 2000 layers, the weights have"),
        ("roberta", {"type_vocab_size": 2}, "type_vocab_size is 2; RoBERTa has 1 token type"),
        ("albert", {"num_hidden_layers": 3}, "num_hidden_layers 3 is not a multiple of .* 2"),
        ("albert", {"inner_group_num": 0}, "inner_group_num 0 is not positive"),
    ],
)
def test_a_configuration_of_another_network_is_refused(tmp_path, name, change, message):
    write(tmp_path, network(name))
    change_config(tmp_path, **change)
    with pytest.raises(CheckpointError, match=message):
        read_foreign(tmp_path)


def test_albert_may_have_more_layers_than_arrays(tmp_path):
    write(tmp_path, network("albert"))
    change_config(tmp_path, num_hidden_layers=200)
    assert read_foreign(tmp_path).model.num_encoder_layers == 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_kv": 6}, "model.d_kv is 6, only 5 can be exchanged: the BERT, RoBERTa or ALBERT of"),
        ({"biases": False}, "model.biases is False, only True can be exchanged"),
        ({"feed_forward": "swiglu"}, "model.feed_forward is 'swiglu', only 'relu' or 'gelu' or"),
        (
            {"block_groups": 2, "embedding_width": 7, "shared_parts": "attention"},
            "model.shared_parts is 'attention', only 'all' can be exchanged",
        ),
        ({"block_groups": 2}, "model.embedding_width is 0, only the width of an embedding"),
    ],
)
def test_what_other_libraries_lack_is_refused_with_the_settings(tmp_path, change, message):
    with pytest.raises(CheckpointError, match=message):
        write_huggingface(tmp_path, settings("bert_base", **change), {}, NO_VOCABULARY)
    assert not list(tmp_path.iterdir())


def test_another_number_of_classes_of_pairs_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="the head of pairs has 3 classes, that of .* 2"):
        write(tmp_path, network("bert", pair_classes=3))


def test_a_roberta_with_a_head_of_pairs_is_not_exported(tmp_path):
    model = network("roberta", pair_classes=2)
    save_weights(tmp_path / "weights.safetensors", model)
    manifest = tmp_path / "manifest.json"
    write_json(manifest, {"settings": {"model": model.settings.model_dump(), "vocab": {}}})
    message = "2 weights that other libraries lack, such as 'pair_head/bias'.*without a pair task"
    with pytest.raises(CheckpointError, match=message):
        export_weights(
            manifest, vocabulary=tmp_path / "none", form="huggingface", folder=tmp_path / "exported"
        )

    with pytest.raises(CheckpointError, match="head of pairs, which no RoBERTa of other libraries"):
        write(tmp_path / "exported", model)


def test_pretraining_starts_from_a_checkpoint_whose_table_is_shorter(tmp_path):
    source = network("albert", embedding_rows=90, pair_classes=2)
    source.masked_lm.bias.assign(np.arange(1, 91, dtype=np.float32))
    write(tmp_path, source)
    foreign = read_foreign(tmp_path)
    weights = fit(foreign, NETWORKS["albert"], embedding_rows=128, where=tmp_path)
    assert weights["masked_lm/bias"].shape == (128,)
    assert not weights["masked_lm/bias"][90:].any()
    model = network("albert", embedding_rows=128, pair_classes=2, seed=4)
    model.compile(optimizer="sgd")
    model.optimizer.build(model.trainable_variables)
    trained = SimpleNamespace(network=model, optimizer=model.optimizer)
    assert "starting from huggingface weights" in load_published(tmp_path, trained)
    assert model.rows_in_use == 90
    np.testing.assert_array_equal(
        arrays_of(model)["embedding"][:90], arrays_of(source)["embedding"]
    )


def test_imported_weights_are_a_folder_of_this_project(tmp_path):
    model = network("albert", pair_classes=2)
    write(tmp_path / "theirs", model)
    (tmp_path / "theirs" / "spiece.model").unlink()
    import_weights(tmp_path / "theirs", tmp_path / "ours")
    foreign = read_foreign(tmp_path / "ours")
    assert foreign.form == "t5repro"
    assert foreign.model.stated == model.settings.stated
    for path, array in arrays_of(model).items():
        np.testing.assert_array_equal(foreign.weights[path], array, err_msg=path)
