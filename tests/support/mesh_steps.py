"""Training steps on a mesh of logical devices of the CPU, as a program on JAX.

python mesh_steps.py FOLDER 2 4; python mesh_steps.py FOLDER 1 8 load

The first writes the states of 20 steps of each case below FOLDER/2x4, their distances from those
of one device below FOLDER/1x1, and the facts of the mesh. The second loads the last state of
FOLDER/2x4 on another mesh and writes it again.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tiny_training as tiny
from engine_steps import MODES, Case, cases, compiled

from t5repro.config.sections.devices import DevicesSettings, MeshSettings
from t5repro.engines.devices import prepare

STEPS = 20
# Wide enough for factored moments, with heads for eight devices.
WIDE = tiny.SHAPE.model_copy(update={"d_model": 128, "d_ff": 256, "num_heads": 8, "d_kv": 16})
TOKENS = {"loss_normaliser": "target_tokens"}
SLOW = {"learning_rate": {"schedule": "constant", "factor": 0.001}}
FREE = "T5, wide, slow, freely"  # one device decides its first state only
EVERYWHERE = {
    "T5, wide": Case(model=WIDE, training=TOKENS),
    FREE: Case(model=WIDE, training={**TOKENS, **SLOW}),
}
OF_FOUR_HEADS = (
    "T5 in parts, padded size",
    "T5 1.1 with AdamW",
    "prefix language model",
    "masked pieces, pairs and borders in parts",
    "answers of a decoder with its language model",
)


def main(folder: Path, data: int, model: int, *, load: bool = False) -> None:
    """Repeat the steps of all cases that the mesh can divide, or load and write a state."""
    prepare(DevicesSettings(engine="jax", mesh=MeshSettings(data=data, model=model)))
    from t5repro.train.repeated_steps import repeat_steps

    if load:
        save_again(folder, f"{data}x{model}")
        return
    every = cases()
    chosen = EVERYWHERE | ({name: every[name] for name in OF_FOUR_HEADS} if model <= 4 else {})
    for name, case in chosen.items():
        reference = folder / "1x1" / name
        trained = compiled(case, "jax", MODES["float32"], dropout_rate=0.1)
        repeat_steps(
            trained,
            map(case.batch, range(STEPS)),
            folder / f"{data}x{model}" / name,
            reference=reference if data * model > 1 else None,
            free=name == FREE,
        )
        if name == FREE:
            facts = facts_of(trained, case.batch(0))
            (folder / f"{data}x{model}" / "facts.json").write_text(json.dumps(facts))


def save_again(folder: Path, mesh: str) -> None:
    """Load the last state of a mesh of 2 x 4 devices and write it as this mesh does."""
    from t5repro.model.checkpoints import load_state, save_state
    from t5repro.train.repeated_steps import state_file

    model = compiled(EVERYWHERE[FREE], "jax", MODES["float32"], dropout_rate=0.1)
    load_state(folder / "2x4" / FREE / state_file(STEPS), model.network, model.optimizer)
    save_state(folder / f"loaded-{mesh}.safetensors", model.network, model.optimizer)


def facts_of(model: Any, batch: Any) -> dict[str, Any]:
    """Return the share of the numbers that the first device has, and the exchanges of a step."""
    from t5repro.engines.jax_engine import _placed
    from t5repro.train.slice_step import exchanges_of

    step = model.step
    state = step.state()
    arrays = [*state.weights, *state.slots]
    parts = [array.addressable_shards[0].data for array in arrays]
    text = step._compiled.lower(state, *map(_placed, batch)).compile().as_text()
    return {
        "share": sum(part.nbytes for part in parts) / sum(array.nbytes for array in arrays),
        "exchanges": exchanges_of(text),
        "slots": {
            variable.path: str(tuple(np.shape(variable.value.addressable_shards[0].data)))
            for variable in model.optimizer.variables
        },
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), load="load" in sys.argv)
