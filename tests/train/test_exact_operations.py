"""What TensorFlow executes in training and decoding has the same bits on every x86-64 CPU (D-043).

Each operation of the graph that runs, after Grappler and oneDNN's rewriting, must be listed below
with the reason for its bits being fixed. A new operation fails until somebody gives one: measure
it on other CPUs (`t5repro/model/operations`, `tests/support/other_cpu`) before listing it.
"""

import dataclasses
import functools
import inspect
from typing import Literal, get_args, get_origin

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from executed_graph import executed_operations  # noqa: E402
from keras import ops  # noqa: E402

from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.model import AddedLayers, ModelSettings  # noqa: E402
from t5repro.config.sections.training import LearningRate, TrainingSettings  # noqa: E402
from t5repro.model import beam, decode, encoder, layers, stack  # noqa: E402
from t5repro.model.generator_detector import GeneratorDetector  # noqa: E402
from t5repro.model.labels import LabelColumns, TaskAnswer  # noqa: E402
from t5repro.model.operations import hashes  # noqa: E402
from t5repro.model.transformer import DecoderClassifier  # noqa: E402
from t5repro.model.two_stream import TwoStreamEncoder  # noqa: E402
from t5repro.systems import token_loss as loss  # noqa: E402
from t5repro.systems.decoder_classifier.loss import DecoderAnswerLoss  # noqa: E402
from t5repro.systems.encoder.loss import EncoderAnswerLoss  # noqa: E402
from t5repro.systems.finetuning import finetuning_of  # noqa: E402
from t5repro.systems.generator_detector.loss import ReplacedTokensLoss  # noqa: E402
from t5repro.systems.pretraining import pretraining_of  # noqa: E402
from t5repro.systems.two_stream.loss import PermutationLoss  # noqa: E402
from t5repro.train import adafactor, loop, validation  # noqa: E402
from t5repro.train.tensorflow_step import TensorFlowModel  # noqa: E402

pytestmark = pytest.mark.keras

WITHOUT_ROUNDING = "moves, compares or counts values"
IEEE_754 = "sums, products, quotients and roots of single values, fixed by IEEE 754"
FIXED_ORDER = "a sum in an order that shapes and threads fix; hashed as {}"
NO_APPROXIMATION = "a kernel without RSQRTPS, RCPPS and AVX-512; hashed as {}"
ONE_DNN = "oneDNN's AVX2 kernel; hashed as {}"
REPLACED = "as traced; oneDNN's kernel is executed"
FOLDED = "a shape or an index, known when the graph is optimised"

REASONS = {
    WITHOUT_ROUNDING: """
        _Arg _Retval Const Enter Exit Identity LoopCond Merge NextIteration NoOp Switch
        AssignVariableOp ReadVariableOp VarHandleOp
        All Any ArgMax Equal Greater GreaterEqual Less LessEqual LogicalAnd LogicalNot LogicalOr
        Max Maximum Min Minimum Neg NotEqual Relu ReluGrad SelectV2 TopKV2
        BroadcastTo ConcatV2 Empty EnsureShape ExpandDims GatherV2 InplaceUpdate Pack Pad PadV2
        Reshape Slice Snapshot Squeeze StridedSlice StridedSliceGrad TensorScatterUpdate Tile
        Transpose Unpack _MklTranspose
        Bitcast BitwiseAnd FloorDiv FloorMod RightShift StatelessRandomGetKeyCounter
    """,
    IEEE_754: """
        AddV2 AssignSubVariableOp Cast DivNoNan Mul RealDiv Sqrt SqrtGrad Square Sub TanhGrad
    """,
}
HASHED = {
    "AddN": (FIXED_ORDER, "gelu/gradient/64x512"),  # unless time orders it
    "Mean": (FIXED_ORDER, "reduce/mean_last/64x512"),
    "Sum": (FIXED_ORDER, "reduce/sum_first/64x512"),
    "UnsortedSegmentSum": (FIXED_ORDER, "gather/segment_sum/2176"),
    "Exp": (NO_APPROXIMATION, "elementwise/exp"),
    "Log": (NO_APPROXIMATION, "elementwise/log"),
    "Pow": (NO_APPROXIMATION, "elementwise/pow_minus_0.8"),
    "StatelessRandomUniformV2": (NO_APPROXIMATION, "random/uniform/3"),
    "Tanh": (NO_APPROXIMATION, "elementwise/tanh"),
    "_MklBatchMatMulV2": (ONE_DNN, "attention/demo_enc/read"),
    "_MklMatMul": (ONE_DNN, "matmul/demo_qkv/forward"),
    "_MklSoftmax": (ONE_DNN, "softmax/64x512"),
}
EXECUTED = {
    **{op: reason for reason, names in REASONS.items() for op in names.split()},
    **{op: reason.format(name) for op, (reason, name) in HASHED.items()},
}
TRACED = {
    **EXECUTED,
    **dict.fromkeys(("BatchMatMulV2", "MatMul", "Softmax"), REPLACED),
    **dict.fromkeys(("BroadcastGradientArgs", "ConcatOffset", "Fill"), FOLDED),
    **dict.fromkeys(("InvertPermutation", "Prod", "Range"), FOLDED),
    **dict.fromkeys(("IdentityN", "Placeholder", "StopGradient", "While"), WITHOUT_ROUNDING),
}
TYPES = {"bool", "float32", "int32", "int64", "resource"}

WIDE = {  # weights with factored moments, too
    "d_model": 128,
    "d_ff": 128,
    "d_kv": 16,
    "num_heads": 2,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}
GPT = {key: getattr(SIZES["gpt"], key) for key in SIZES["gpt"].model_fields_set - WIDE.keys()}
TRAININGS = {  # name -> settings of model, stage and learning rate
    "encoder_decoder": ({}, {"keep_checkpoints": "all"}),
    "shared_gated_untied": (
        {
            "architecture": "shared_encoder_decoder",
            "feed_forward": "gated_gelu",
            "tie_embeddings": False,
        },
        {
            "learning_rate": {"schedule": "inverse_square_root"},
            "loss_normaliser": "target_tokens",
            "z_loss": 0.0,
        },
    ),
    "adamw": (
        {"feed_forward": "swiglu", "relative_position_bias": "per_layer"},
        {
            "optimizer": "adamw",
            "optimizer_state": "fresh",
            "weight_decay": 0.1,
            "learning_rate": {"schedule": "cosine", "factor": 0.02, "warmup_steps": 4},
        },
    ),
    "lamb": (
        {"initializer": "truncated_normal"},
        {"optimizer": "lamb", "weight_decay": 0.1, "max_grad_norm": 1.0},
    ),
    **{
        name: ({}, {"optimizer": name, "weight_decay": 0.1, "max_grad_norm": 1.0})
        for name in ("adamax", "adamax_mt_dnn")
    },
    "gpt": (
        GPT,
        {
            "optimizer": "adam_gpt",
            "weight_decay": 0.1,
            "max_grad_norm": 1.0,
            "learning_rate": {"schedule": "cosine", "factor": 0.02, "warmup_steps": 4},
        },
    ),
    "encoder_decoder_with_parts_of_gpt": (
        {**GPT, "architecture": "encoder_decoder", "feed_forward": "swiglu"},
        {"micro_batches": 2},
    ),
    "language_model": (
        {"architecture": "language_model", "target_marker": "target_word"},
        {
            "dropout_rate": 0.0,
            "optimizer": "adam_gpt",
            "weight_decay": 0.1,
            "learning_rate": {"schedule": "gpt_linear", "factor": 0.02},
        },
    ),
    "rotary": (
        {"positions": "rotary"},
        {
            "optimizer": "adam_fairseq",
            "weight_decay": 0.1,
            "learning_rate": {"schedule": "linear", "factor": 0.02, "warmup_steps": 4},
        },
    ),
    "prefix_language_model_rotary": (
        {"architecture": "prefix_language_model", "positions": "rotary"},
        {
            "optimizer": "adam_bert",
            "learning_rate": {"schedule": "bert_linear", "factor": 0.02, "warmup_steps": 4},
        },
    ),
    "prefix_language_model_in_parts": (
        {"architecture": "prefix_language_model", "feed_forward": "gated_gelu"},
        {"micro_batches": 2},
    ),
    "three_blocks_with_one_bias": ({"num_encoder_layers": 3, "num_decoder_layers": 3}, {}),
    "adapters": ({}, {"method": "adapters", "adapter_width": 64}),
    "gradual_unfreezing": ({"num_decoder_layers": 2}, {"method": "gradual_unfreezing"}),
}
ENCODERS = {  # name -> size, changes of its settings, heads
    "bert": ("bert_base", {}, {"pair_classes": 2}),
    "bert_without_pairs": ("bert_base", {}, {}),
    "bert_of_labels": ("bert_base", {}, {"labels": 3}),
    "bert_of_pairs": ("bert_base", {}, {"labels": 3, "networks": [("pairs", 0, 2)]}),
    "roberta": ("roberta_base", {}, {}),
    "roberta_of_a_number": ("roberta_base", {}, {"labels": 1}),
    "albert": (
        "albert_base",
        {"block_groups": 2, "blocks_per_group": 2, "num_encoder_layers": 4},
        {"pair_classes": 2},
    ),
    "albert_of_labels": ("albert_base", {"num_encoder_layers": 3}, {"labels": 3}),
    "albert_sharing_attention": (
        "albert_base",
        {"num_encoder_layers": 2, "shared_parts": "attention"},
        {},
    ),
    "albert_sharing_feed_forward": (
        "albert_base",
        {"num_encoder_layers": 2, "shared_parts": "feed_forward"},
        {},
    ),
}


@pytest.fixture(scope="module")
def job_of(tiny, tmp_path_factory):
    """Return a training job of one of the trainings."""
    job = tiny.make_job(tmp_path_factory.mktemp("exact"))

    def make(name):
        model, training = TRAININGS[name]
        rule = "finetune" if "method" in training else "pretrain"
        settings = tiny.stage_settings(
            rule, 0, model=ModelSettings(**{**WIDE, **model}), devices={}, training=training
        )
        section = settings.finetune if rule == "finetune" else settings.pretrain
        model = settings.model
        system = finetuning_of(model, section) if rule == "finetune" else pretraining_of(model)
        return dataclasses.replace(
            job, rule=rule, system=system, settings=settings, training=section
        )

    return make


@pytest.fixture(scope="module")
def executed_in_training(job_of, tiny):
    """Return the operations of a training step."""

    def executed(name):
        job = job_of(name)
        model = loop.make_model(job)
        loop.set_schedules(job, model, offset=0)
        features, targets = batch_of(tiny, job.settings.model)
        return executed_operations(
            lambda features, targets: model.train_step((features, targets)), features, targets
        )

    return executed


def batch_of(tiny, model):
    features, targets = tiny.batch(3)
    if model.family.joined:
        targets, segments = features["encoder_ids"], features["encoder_segments"]
        features = {
            "decoder_ids": np.pad(targets, ((0, 0), (1, 0)))[:, :-1],
            "decoder_segments": segments,
            "decoder_prefix": (np.arange(targets.shape[1]) < 5) * segments,
        }
    return tf.nest.map_structure(tf.constant, (features, targets))


def refused(operations):
    """Return a line for each operation that is not listed, or has a type that was not measured."""
    lines = []
    for operation in operations:
        allowed = EXECUTED if operation.optimised else TRACED
        if operation.op not in allowed:
            lines.append(f"{operation.op} at {operation.source}, node {operation.name}")
        elif operation.is_timed:
            lines.append(f"{operation.name} adds in any order, at {operation.source}")
        elif operation.types - TYPES:
            types = ", ".join(sorted(operation.types - TYPES))
            lines.append(f"{operation.op} of {types} at {operation.source}")
    return lines


@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_step_executes_listed_operations_only(name, executed_in_training):
    operations = executed_in_training(name)
    assert refused(operations) == []
    executed = {operation.op for operation in operations if operation.optimised}
    assert {"_MklMatMul", "_MklSoftmax", "Sqrt", "RealDiv", "AssignSubVariableOp"} <= executed


@pytest.mark.parametrize("name", TRAININGS)
def test_the_loss_on_held_out_text_executes_listed_operations_only(name, job_of, tiny):
    job = job_of(name)
    model = loop.make_model(job)
    operations = executed_operations(
        functools.partial(validation.sums, model), *batch_of(tiny, job.settings.model)
    )
    assert refused(operations) == []
    assert "_MklMatMul" in {operation.op for operation in operations if operation.optimised}


def test_decoding_executes_listed_operations_only(job_of, tiny):
    networks = {
        name: loop.make_model(job_of(name)).network
        for name in (
            "encoder_decoder",
            "shared_gated_untied",
            "prefix_language_model_in_parts",
            "rotary",
            "prefix_language_model_rotary",
            "gpt",
            "encoder_decoder_with_parts_of_gpt",
        )
    }
    features, _ = tiny.batch(3)
    inputs = [tf.constant(features[f"encoder_{name}"]) for name in ("ids", "segments")]
    for name, network in networks.items():
        others = (networks["shared_gated_untied"],) if name == "encoder_decoder" else ()
        for search in (
            functools.partial(decode.greedy_graph, network, max_decode_length=4, ensemble=others),
            functools.partial(
                beam.beam_graph, network, max_decode_length=4, width=2, length_penalty=0.6
            ),
        ):
            operations = executed_operations(search, *inputs)
            assert refused(operations) == [], f"{name}, {search.func.__name__}"
            executed = {operation.op for operation in operations if operation.optimised}
            assert {"NextIteration", "_MklMatMul", "_MklSoftmax"} <= executed


def encoder_of(name):
    size, change, heads = ENCODERS[name]
    shape = {key: getattr(SIZES[size], key) for key in SIZES[size].model_fields_set - WIDE.keys()}
    model = ModelSettings(**{**WIDE, **shape, **change})
    return encoder.Encoder(model, embedding_rows=128, dropout_rate=0.1, seed=0, **heads)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_executes_listed_operations_only(name, tiny):
    network = encoder_of(name)
    ids, targets = tiny.batch(3)
    features = {
        "encoder_ids": ids["encoder_ids"],
        "encoder_segments": ids["encoder_segments"],
        "encoder_types": (ids["encoder_ids"] % 2).astype(np.int32),
        "target_positions": np.tile(np.array([[3, 5, 1, 0]], np.int32), (len(targets), 1)),
    }
    features = tf.nest.map_structure(tf.constant, features)
    classes = targets[:, 1:2] % 2

    def loss_of(logits):
        if network.labels == 1:
            return tf.reduce_mean(tf.square(logits))
        logits = logits if isinstance(logits, tuple) else (logits,)
        ids = [classes if part.shape.ndims == 2 else targets[:, :4] for part in logits]
        parts = [tf.expand_dims(part, 1) if part.shape.ndims == 2 else part for part in logits]
        losses = [
            tf.reduce_mean(loss.token_losses(tf.constant(ids_BM), logits_BMV, 0.0))
            for ids_BM, logits_BMV in zip(ids, parts, strict=True)
        ]
        return sum(losses[1:], losses[0])

    def gradients(features):
        with tf.GradientTape() as tape:
            total = loss_of(network(features, training=True))
        return [
            tf.convert_to_tensor(gradient)
            for gradient in tape.gradient(
                total, [variable.value for variable in network.trainable_variables]
            )
        ]

    for function in (gradients, network):
        operations = executed_operations(function, features)
        assert refused(operations) == []
        executed = {operation.op for operation in operations if operation.optimised}
        assert {"_MklMatMul", "_MklSoftmax", "Sqrt", "RealDiv"} <= executed


SHAPE = {"embedding_rows": 128, "dropout_rate": 0.1, "seed": 0}


ELECTRA = (("detection", "embeddings"), ("masked_detection", "none"), ("masked_pieces", "all"))


def electra_of(tying):
    shape = {key: getattr(SIZES["electra_base"], key) for key in SIZES["electra_base"].stated}
    change = {"generator_tying": tying, "generator_width": 1.0 if tying == "all" else 0.5}
    return ModelSettings(**{**shape, **WIDE, "embedding_width": 64, **change})


@pytest.mark.parametrize(("task", "tying"), [*ELECTRA, ("all_pieces", "embeddings")])
def test_electra_draws_pieces_by_listed_operations_only(task, tying, tiny):
    network = GeneratorDetector(electra_of(tying), task=task, **SHAPE)
    trained = in_parts(network, ReplacedTokensLoss(task=task))
    ids, targets = tiny.batch(3)
    positions = np.tile(np.array([[3, 5, 1, 0]], np.int32), (len(targets), 1))
    features = {
        "encoder_ids": ids["encoder_ids"],
        "encoder_segments": ids["encoder_segments"],
        "encoder_types": (ids["encoder_ids"] % 2).astype(np.int32),
        "target_positions": np.sort(positions),
        "sample_draws": (positions * 3_000_017).astype(np.int32) % (1 << 24),
    }
    features, targets = tf.nest.map_structure(tf.constant, (features, targets[:, :4]))
    functions = [
        trained.loss_and_gradients,
        functools.partial(validation.sums, trained),
        functools.partial(validation.right_answers, trained),
    ]
    for function in functions:
        operations = executed_operations(function, features, targets)
        assert refused(operations) == []
        executed = {operation.op for operation in operations if operation.optimised}
        assert "_MklMatMul" in executed


def columns_of(*answers):
    return LabelColumns({answer.kind: answer for answer in answers})


def two_stream(**heads):
    shape = {key: getattr(SIZES["xlnet_base"], key) for key in SIZES["xlnet_base"].stated}
    model = ModelSettings(**{**shape, **WIDE})
    return TwoStreamEncoder(model, **heads, **SHAPE)


def test_xlnet_predicts_in_any_order_by_listed_operations_only(tiny):
    network = two_stream(memory_shape=(8, 9), reuse_length=6, both_directions=True)
    trained = TensorFlowModel(
        network, PermutationLoss(), normaliser="target_tokens", micro_batches=1
    )
    features, targets = tf.nest.map_structure(tf.constant, tiny.permuted_batch(3))
    for function in (trained.loss_and_gradients, functools.partial(validation.sums, trained)):
        operations = executed_operations(function, features, targets)
        assert refused(operations) == []
        assert "_MklMatMul" in {operation.op for operation in operations if operation.optimised}


def in_parts(network, loss):
    return TensorFlowModel(network, loss, normaliser="target_tokens", micro_batches=2)


def gpt_of_tasks(*answers):
    """Return a GPT that is fine-tuned on tasks of these kinds."""
    columns = columns_of(*answers)
    model = ModelSettings(**{**WIDE, **GPT})
    network = DecoderClassifier(model, labels=columns.total, **SHAPE)
    return in_parts(network, DecoderAnswerLoss(columns=columns, lm_weight=0.5))


def bert_of_tasks(*answers):
    """Return a BERT that is fine-tuned on tasks of these kinds."""
    columns = columns_of(*answers)
    network = encoder.Encoder(
        encoder_of("bert").settings, labels=columns.total, predicts_spans=columns.has_spans, **SHAPE
    )
    return in_parts(network, EncoderAnswerLoss(columns=columns))


WORDS, CHOICES = TaskAnswer("label", ("no", "yes")), TaskAnswer("choice", ("a", "b"))
NUMBERS, SPANS = TaskAnswer("number"), TaskAnswer("span")


def test_a_decoder_of_labels_executes_listed_operations_only(tiny):
    network = gpt_of_tasks(NUMBERS, WORDS)
    ids, _ = tiny.batch(3)
    rows = len(ids["encoder_ids"])
    is_swapped = (np.arange(rows) % 2)[:, None]
    features = {
        "decoder_ids": ids["encoder_ids"],
        "decoder_segments": ids["encoder_segments"],
        "swapped_ids": ids["encoder_ids"][:, ::-1] * is_swapped,
        "swapped_segments": ids["encoder_segments"] * is_swapped,
        "last_positions": np.full((rows, 1), 4),
    }
    check_operations_of_tasks(network, features)


def test_a_decoder_of_options_executes_listed_operations_only(tiny):
    network = gpt_of_tasks(WORDS, CHOICES)
    ids, _ = tiny.batch(3)
    both = np.stack([ids["encoder_ids"], ids["encoder_ids"][:, ::-1]], axis=1)
    features = {"decoder_ids": both, "decoder_segments": both > 0}
    features["last_positions"] = np.full((len(both), 2, 1), 4)
    check_operations_of_tasks(network, features)


@pytest.mark.parametrize("options", [1, 2])
def test_an_encoder_of_spans_executes_listed_operations_only(tiny, options):
    network = bert_of_tasks(*(NUMBERS, WORDS, SPANS, CHOICES)[: 2 + options])
    ids, _ = tiny.batch(3)
    rows = np.repeat(ids["encoder_ids"][:, None], options, axis=1)
    features = {"encoder_ids": rows, "encoder_segments": rows > 0, "encoder_types": rows % 2}
    if options == 1:
        features = {name: array[:, 0] for name, array in features.items()}
    features["answer_span"] = np.tile([[1, 3]], (len(rows), 1))
    check_operations_of_tasks(network, features)


def check_operations_of_tasks(network, features):
    """Check loss, gradients and answers of rows of all tasks in turn."""
    rows = len(next(iter(features.values())))
    columns = [*network.objective.columns.columns.values()]
    features = features | {"label_columns": [columns[row % len(columns)] for row in range(rows)]}
    features = {name: tf.constant(np.array(array), tf.int32) for name, array in features.items()}
    targets = tf.constant(np.arange(rows)[:, None] % 2, tf.float32)
    for function, arguments in (
        (network.loss_and_gradients, (features, targets)),
        (network, (features,)),
    ):
        operations = executed_operations(function, *arguments)
        assert refused(operations) == []
        executed = {operation.op for operation in operations if operation.optimised}
        assert {"_MklMatMul", "_MklSoftmax", "Sqrt", "RealDiv"} <= executed


def test_every_option_that_changes_arithmetic_is_traced(job_of):
    stages = {name: job_of(name) for name in TRAININGS}
    sections = [
        (kind, [section(job) for job in stages.values()])
        for kind, section in (
            (ModelSettings, lambda job: job.settings.model),
            (TrainingSettings, lambda job: job.training),
            (LearningRate, lambda job: job.training.learning_rate),
        )
    ]
    sections[0][1].extend(encoder_of(name).settings for name in ENCODERS)
    sections[0][1].extend([two_stream().settings, *(electra_of(tying) for _, tying in ELECTRA)])
    methods = [job.training for job in stages.values() if job.rule == "finetune"]
    labelled = AddedLayers(answers="labels")  # see the test of a decoder of labels
    sections.append((AddedLayers, [*methods, labelled]))
    for kind, settings in sections:
        for field, information in kind.model_fields.items():
            if information.annotation is bool:
                options = {False, True}
            elif get_origin(information.annotation) is Literal:
                options = set(get_args(information.annotation))
            else:
                continue
            traced = {getattr(section, field) for section in settings}
            assert traced == options, f"{kind.__name__}.{field}"
    trainings = [job.training for job in stages.values()]
    for name in ("dropout_rate", "z_loss"):
        assert {getattr(training, name) > 0 for training in trainings} == {False, True}
    assert {training.micro_batches > 1 for training in trainings} == {False, True}


def test_every_listed_kernel_has_equal_hashes_on_an_intel_and_an_amd_cpu():
    amd, intel = hashes.references()
    for op, (_, name) in HASHED.items():
        assert amd.hashes[name] == intel.hashes[name], op


def test_rsqrt_in_the_norm_is_refused_with_its_line(executed_in_training, monkeypatch):
    monkeypatch.setattr(layers, "inverse_root", ops.rsqrt)
    lines = refused(executed_in_training("encoder_decoder"))
    source, first = inspect.getsourcelines(layers.RMSNorm.call)
    (offset,) = (number for number, line in enumerate(source) if "inverse_root(" in line)
    place = f"{layers.__file__}:{first + offset} in call"
    assert any(line.startswith(f"Rsqrt at {place}, node") for line in lines), lines
    # The gradient is told by the line of the operation that it is the gradient of.
    assert any(line.startswith(f"RsqrtGrad at {place}, node") for line in lines), lines
    assert all(place in line for line in lines), lines


def test_an_rsqrt_that_grappler_makes_in_the_optimizer_is_refused(
    executed_in_training, monkeypatch
):
    def inverse_root(x):
        return 1.0 / ops.sqrt(x)

    monkeypatch.setattr(adafactor, "inverse_root", inverse_root)
    lines = refused(executed_in_training("encoder_decoder"))
    line = inspect.getsourcelines(inverse_root)[1] + 1
    assert lines
    for text in lines:
        assert text.startswith(("Rsqrt at", "Reciprocal at", "_UnaryOpsComposition at")), text
        assert f"{__file__}:{line} in inverse_root" in text


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda x: keras.ops.gelu(x, approximate=False), "Erf"),
        (lambda x: x**-0.5, "Rsqrt"),
        (lambda x: x / np.array([3.0, 5.0], np.float32), "Reciprocal"),
        (lambda x: ops.cast(ops.cast(x, "bfloat16") * 2, "float32"), "Mul of bfloat16"),
    ],
)
def test_a_trap_for_the_next_author_is_refused(function, op):
    lines = refused(executed_operations(function, tf.ones((8, 2))))
    assert any(line.startswith(op) for line in lines), lines
    assert all(__file__ in line for line in lines)


def three_gradients(x, biases):
    """Return the gradient of an array with three readers, each of which adds a bias, and those."""
    with tf.GradientTape() as tape:
        tape.watch([x, biases])
        read = [tf.tanh(x + bias) for bias in tf.unstack(biases)]
        total = tf.reduce_sum(read[0] * read[1] * read[2])
    return tape.gradient(total, [x, biases])


def test_a_sum_of_gradients_in_the_order_of_time_is_refused():
    arguments = tf.ones((8, 2)), tf.ones((3, 2))
    (line,) = refused(executed_operations(three_gradients, *arguments))
    assert line.startswith("AddN adds in any order, at ")
    assert __file__ in line


def test_three_blocks_that_read_one_bias_are_refused(executed_in_training, monkeypatch):
    monkeypatch.setattr(stack, "for_each_reader", lambda bias, readers: [bias] * readers)
    lines = refused(executed_in_training("three_blocks_with_one_bias"))
    assert [line.split(", at ")[0].split(" ", 1)[1] for line in lines] == ["adds in any order"] * 2
