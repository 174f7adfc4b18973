"""Settings of the devices of training and prediction (`devices.*`)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from t5repro.config.field import Section


class DevicesSettings(Section):
    """Where training and prediction run."""

    kind: Literal["cpu", "gpu", "mirrored", "tpu"] = "cpu"
    """One CPU or GPU, all local GPUs in step, or a TPU slice."""
    tpu: str = "local"
    """Name or address of the TPU for `TPUClusterResolver`."""
    intra_op_threads: int = Field(2, ge=1)
    """Threads inside one operation on a CPU; a fixed number keeps results exact."""
    instruction_set: Literal["avx2", "native"] = "avx2"
    """Of matrix products on a CPU: what every x86-64 server has, with the same bytes on all of
    them, or the processor's widest, up to twice as fast where that is AVX-512.
    """
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of activations; weights and optimizer are always float32."""
    steps_per_execution: int = Field(1, ge=1)
    """Training steps per call from the host."""
    cloud_folder: Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9+.-]*://.+)?$")] = ""
    """Cloud Storage folder (`gs://...`) that gets a copy of every state of an unfinished training
    and the TensorBoard files; a preempted machine takes its disk along; empty: only local.
    """
    slice: Annotated[str, StringConstraints(pattern=r"^([a-z0-9]+:[0-9x]+)?$")] = ""
    """TPU slice that `t5repro preflight` compiles pre-training for before anything else runs, such
    as `v5e:4x4`; empty: no preflight.
    """
