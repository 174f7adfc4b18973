"""Costs of a training step on eight logical devices of the CPU, from shapes alone, as a program.

python slice_costs.py 2 4
"""

import json
import sys

import tiny_training as tiny
from mesh_steps import WIDE

from t5repro.config.sections.devices import DevicesSettings, MeshSettings
from t5repro.engines.devices import prepare


def main(data: int, model: int) -> None:
    """Print memory and exchanges of the step of a mesh, which this process does not set up."""
    here = MeshSettings(data=1, model=8)
    prepare(DevicesSettings(engine="jax", mesh=here))
    import jax

    from t5repro.train.slice_step import exchanges_of, lowered_slice_step

    mesh = {"data": data, "model": model}
    settings = tiny.stage_settings(
        "pretrain", 0, model=WIDE, devices={"engine": "jax", "mesh": mesh}, training={}
    )
    compiled = lowered_slice_step(settings, jax.devices()[: data * model], platform="cpu").compile()
    memory = compiled.memory_analysis()
    costs = {"arguments": memory.argument_size_in_bytes, "temporary": memory.temp_size_in_bytes}
    print(json.dumps({**costs, "exchanges": exchanges_of(compiled.as_text())}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
