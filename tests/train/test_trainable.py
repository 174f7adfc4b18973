"""Which weights change in which step, seen in the files that real steps leave."""

from pathlib import Path

import numpy as np
import pytest
import traced_steps

keras = pytest.importorskip("keras")
from t5repro.config.sections.finetune import FinetuneSettings  # noqa: E402
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.model.checkpoints import read_arrays, weight_variables  # noqa: E402
from t5repro.train import trainable  # noqa: E402

pytestmark = pytest.mark.keras

BLOCKS = 3


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    """Run a tiny training of three blocks a stack; return it."""
    folder = tmp_path_factory.mktemp("methods")

    def start(name, **options):
        job = tiny.make_job(folder / name, blocks=BLOCKS, **options)
        traced_steps.run(job)
        return job

    return start


@pytest.fixture(scope="module")
def pretrained(run):
    return str(run("pretrained", steps=3).folder)


def weights(job, step=None):
    folder = job.folder if step is None else job.folder / f"step-{step}"
    return read_arrays(folder / "weights.safetensors")


def changed(before, after):
    return {name for name in before if not np.array_equal(before[name], after[name])}


@pytest.mark.parametrize("norms", ["all", "own"])
@pytest.mark.parametrize("optimizer", ["continue", "fresh"])
def test_adapters_train_themselves_and_the_norms_asked_for_and_no_other_weight(
    run, pretrained, norms, optimizer
):
    options = {"method": "adapters", "adapter_width": 5, "adapter_norms": norms}
    options |= {"rule": "finetune", "start": pretrained, "optimizer_state": optimizer}
    first = run(f"none-{norms}-{optimizer}", steps=0, **options)
    last = run(f"some-{norms}-{optimizer}", steps=4, **options)
    before, after = weights(first), weights(last)
    old = read_arrays(Path(pretrained) / "weights.safetensors")
    adapters = {name for name in after if "/adapter/" in name}
    scales = {name for name in after if name.endswith("/scale")}
    assert set(after) == set(old) | adapters
    assert len(adapters) == 2 * BLOCKS * 3  # norm and two matrices a block
    assert all(np.array_equal(before[name], old[name]) for name in old)
    assert changed(before, after) == adapters | (scales if norms == "all" else set())
    slots = read_arrays(last.folder / "optimizer.safetensors")
    trained = adapters | (scales if norms == "all" else set())
    # These small weights are not factored: one slot each, plus step and learning rate.
    assert {name.removesuffix(".moment") for name in slots if name.endswith("moment")} == {
        name.replace("/", ".") for name in trained
    }
    assert int(slots["iteration"]) == (7 if optimizer == "continue" else 4)


def test_adapters_of_the_papers_widths_have_the_papers_shape_on_the_base_network():
    from networks import text_network

    shape = ModelSettings(d_model=768, num_encoder_layers=1, num_decoder_layers=1, d_ff=8)
    of_24_blocks = {}
    for width in (32, 128, 512, 2048):
        variables = weight_variables(
            text_network(shape, embedding_rows=128, dropout_rate=0.0, seed=0, adapter_width=width)
        )
        mine = {name: item.shape for name, item in variables.items() if "/adapter/" in name}
        assert mine["encoder/block_0/adapter/feed_forward/wi"] == (768, width)
        assert mine["decoder/block_0/adapter/feed_forward/wo"] == (width, 768)
        of_24_blocks[width] = 12 * sum(int(np.prod(item)) for item in mine.values())
    # 12 blocks in each of two stacks: d 2048 is a third of the 222,903,552 of the base network.
    assert of_24_blocks[32] == 1_198_080
    assert of_24_blocks[2048] == 75_515_904


@pytest.mark.parametrize(
    "architecture", ["shared_encoder_decoder", "language_model", "prefix_language_model"]
)
def test_adapters_are_in_every_block_of_every_architecture(architecture):
    from networks import text_network

    shape = ModelSettings(
        architecture=architecture,
        d_model=8,
        d_ff=8,
        d_kv=4,
        num_heads=2,
        num_encoder_layers=2,
        num_decoder_layers=2,
    )
    model = text_network(shape, embedding_rows=128, dropout_rate=0.0, seed=0, adapter_width=4)
    # Stacks that share weights share their adapters, too.
    assert sum("/adapter/feed_forward/wi" in name for name in weight_variables(model)) == 2
    assert all(block.adapter is not None for block in model.decoder.blocks)


@pytest.fixture(scope="module")
def gradual(pretrained):
    """The options of three episodes of 2, 2 and 3 steps."""
    return {"rule": "finetune", "start": pretrained, "method": "gradual_unfreezing", "steps": 7}


@pytest.fixture(scope="module")
def whole(run, gradual):
    """A gradual unfreezing with the weights of every step."""
    return run("gradual", keep_checkpoints="all", checkpoint_every_steps=1, **gradual)


@pytest.fixture(scope="module")
def stopped(train_in_place, tmp_path_factory, gradual):
    """The folder of one that stopped before the lowest block woke, and its options."""
    folder, options = tmp_path_factory.mktemp("stopped"), {"blocks": BLOCKS, **gradual}
    train_in_place(folder, cut=5, checkpoint_every_steps=4, **options)
    return folder, options


def test_gradual_unfreezing_wakes_one_block_an_episode_and_the_embeddings_at_once(
    whole, pretrained
):
    states = [read_arrays(Path(pretrained) / "weights.safetensors")]
    states += [weights(whole, step) for step in range(1, 8)]
    for step in range(7):
        episode = min(step // 2, BLOCKS - 1)  # 7 // 3 steps each, what is left over in the last
        awake = range(BLOCKS - 1 - episode, BLOCKS)
        expected = {
            name
            for name in states[0]
            if name.split("/")[1:2] == ["norm"]
            or name == "embedding"
            or any(f"/block_{number}/" in name for number in awake)
            or ("/relative_bias/" in name and 0 in awake)
        }
        assert changed(states[step], states[step + 1]) == expected, step


def test_slots_of_a_sleeping_weight_keep_their_values(whole, stopped, pretrained):
    folder, _ = stopped
    before = read_arrays(Path(pretrained) / "optimizer.safetensors")
    asleep = read_arrays(folder / "work" / "step-000000004.safetensors", section="optimizer")
    after = read_arrays(whole.folder / "optimizer.safetensors")
    assert set(before) == set(asleep) == set(after)
    lowest = {name for name in before if ".block_0." in name or ".relative_bias." in name}
    assert changed(before, asleep) == set(before) - lowest - {"learning_rate"}
    assert changed(asleep, after) == set(before) - {"learning_rate"}


def test_two_episodes_wake_the_top_two_of_three_blocks_and_then_all(tiny, tmp_path, gradual):
    options = {**gradual, "steps": 3, "unfreezing_episodes": 2}
    job = tiny.make_job(tmp_path, blocks=BLOCKS, **options)
    names = read_arrays(Path(gradual["start"]) / "weights.safetensors")
    first_steps = trainable.unfreeze_steps(names, job.training, job.settings.model)
    assert set(first_steps.values()) == {1}  # 3 // 2 steps before the lowest
    assert all("/block_0/" in name or "/relative_bias/" in name for name in first_steps)


def test_an_interrupted_gradual_unfreezing_ends_in_the_same_bytes(whole, stopped, train_in_place):
    folder, options = stopped
    again = train_in_place(folder, **options)
    for name in ("weights.safetensors", "optimizer.safetensors", "history.csv"):
        assert (again.folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_the_papers_schedule_has_twelve_episodes_of_21845_steps():
    training = FinetuneSettings(method="gradual_unfreezing")
    paths = [f"{stack}/block_{n}/x/q" for stack in ("encoder", "decoder") for n in range(12)]
    paths += ["embedding", "encoder/relative_bias/table", "encoder/norm/scale"]
    first_steps = trainable.unfreeze_steps(paths, training, ModelSettings())
    for number in range(12):
        assert first_steps.get(f"encoder/block_{number}/x/q", 0) == (11 - number) * 21_845
    assert first_steps["encoder/relative_bias/table"] == 11 * 21_845
    assert "embedding" not in first_steps
    assert "encoder/norm/scale" not in first_steps


def test_a_stack_with_fewer_blocks_wakes_its_own_from_the_top():
    training = FinetuneSettings(method="gradual_unfreezing", steps=60)
    model = ModelSettings(num_encoder_layers=6, num_decoder_layers=2)
    paths = ["encoder/block_0/q", "decoder/block_0/q", "decoder/block_1/q"]
    first_steps = trainable.unfreeze_steps(paths, training, model)
    assert first_steps == {"encoder/block_0/q": 50, "decoder/block_0/q": 10}


def test_another_repetition_has_other_weights_and_the_first_those_of_the_runs_seed():
    from t5repro.randomness import repeat_seed

    assert repeat_seed(7, 0) == 7
    assert len({repeat_seed(7, number) for number in range(100)}) == 100
