"""The training step on JAX, compiled for a TPU slice by the compiler in `libtpu`, without a TPU.

Only public functions of JAX are called: the step is traced with the shapes and layouts of its
arguments and compiled for the devices of a described slice. The weights are made once, on the CPU:
the whole of a model must fit into the memory of this machine.
"""

import os
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from t5repro.config.sections.devices import MeshSettings
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.training import TrainingSettings
from t5repro.engines.devices import prepare
from t5repro.randomness import single_seed
from t5repro.train import tpu_compiler

EXCHANGES = r" (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("


def costs_on_slice(
    settings: PretrainStage | FinetuneStage, *, slice_name: str, library: str
) -> dict[str, Any]:
    """Return memory and arithmetic of a core, and the exchanges between cores, for one step.

    Args:
        settings: of the stage; `devices.mesh` has as many devices as the slice has cores.
        slice_name: such as ``v5e:4x4``.
        library: path of the compiler, ``libtpu.so``.

    Returns:
        The names of `tpu_compiler.compile_step`, and ``exchanges``: kind -> number in a step; or a
        fault, if the step needs more memory than a core has.
    """
    os.environ.update({**tpu_compiler.ENVIRONMENT, "TPU_LIBRARY_PATH": library})
    # Made on the CPU, which needs flags for `devices.remat` that the other compiler does not know.
    mesh = MeshSettings(data=1, model=settings.devices.mesh.model)
    prepare(settings.devices.model_copy(update={"kind": "cpu", "remat": "none", "mesh": mesh}))
    import jax

    lowered = lowered_slice_step(
        settings, tpu_compiler.topology(slice_name).devices, platform="tpu"
    )
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        return tpu_compiler.memory_fault(error)
    costs = tpu_compiler.costs_of(compiled.memory_analysis(), compiled.cost_analysis())
    # The loop over the parts of a batch is counted once, and nearly all arithmetic is in it.
    costs["flops"] *= training_of(settings).micro_batches
    return {**costs, "exchanges": exchanges_of(compiled.as_text())}


def training_of(settings: PretrainStage | FinetuneStage) -> TrainingSettings:
    """Return the section of the stage itself."""
    return settings.pretrain if isinstance(settings, PretrainStage) else settings.finetune


def exchanges_of(program: str) -> dict[str, int]:
    """Return kind -> number of the exchanges between devices in a compiled program."""
    return dict(sorted(Counter(re.findall(EXCHANGES, program)).items()))


def lowered_slice_step(
    settings: PretrainStage | FinetuneStage, devices: Sequence[Any], *, platform: str
) -> Any:
    """Return the step of a stage as a program for devices, which need not exist.

    Args:
        settings: of the stage.
        devices: of JAX, as many as `devices.mesh` has.
        platform: of the devices, as JAX names it.
    """
    import jax
    import keras
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec

    from t5repro.engines.mesh import Mesh
    from t5repro.train.fresh_model import fresh_model, padding_batch
    from t5repro.train.jax_step import State

    model = fresh_model(settings, seed=single_seed(settings.seed, "preflight"))
    mesh = Mesh(settings.devices.mesh, devices)
    keras.distribution.set_distribution(mesh)  # of the slice, for what the step asks when traced
    cores = mesh.device_mesh.backend_mesh

    def described(variable: Any) -> jax.ShapeDtypeStruct:
        here = variable.value.sharding  # the names of its axes are those of the slice
        spec = here.spec if isinstance(here, NamedSharding) else PartitionSpec()
        return jax.ShapeDtypeStruct(
            variable.shape, variable.dtype, sharding=NamedSharding(cores, spec)
        )

    def rows(array: Any) -> jax.ShapeDtypeStruct:
        array = np.asarray(array)
        layout = mesh.get_data_layout(array.shape)
        return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=layout.backend_layout)

    state = State(*([described(variable) for variable in group] for group in model.step.variables))
    shardings = jax.tree.map(lambda array: array.sharding, state)
    step = jax.jit(model.step.update, donate_argnums=0, out_shardings=(shardings, None))
    batch = jax.tree.map(rows, padding_batch(settings, training_of(settings).batch_size))
    return step.trace(state, *batch).lower(lowering_platforms=(platform,))
