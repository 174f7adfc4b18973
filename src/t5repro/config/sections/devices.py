"""Settings of the devices of training and prediction (`devices.*`)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from t5repro.config.field import Pattern, Section

EngineName = Literal["tensorflow", "jax"]
Remat = Literal["none", "block", "dots"]
TITLES: dict[EngineName, str] = {"tensorflow": "TensorFlow", "jax": "JAX"}


class MeshSettings(Section):
    """A grid of devices that train and predict together."""

    data: int = Field(1, ge=1)
    """Devices that share the rows of a batch."""
    model: int = Field(1, ge=1)
    """Devices that share each weight: heads, inner features and ids are divided among them."""

    @property
    def devices(self) -> int:
        """Number of devices."""
        return self.data * self.model


class DevicesSettings(Section):
    """Devices of training and prediction."""

    engine: EngineName = "tensorflow"
    """Library that computes, behind Keras. Both train on the same batches from the same weights;
    dropout draws other numbers, and sums differ in their rounding.
    """
    kind: Literal["cpu", "gpu", "mirrored", "tpu"] = "cpu"
    """Device: a CPU, a GPU, all local GPUs (`mirrored`) or a TPU slice."""
    tpu: str = "local"
    """Name or address of the TPU for TensorFlow's `TPUClusterResolver`."""
    intra_op_threads: int = Field(2, ge=1)
    """Threads per operation on a CPU. The number affects the last bits of the results; with more
    than two, the size of the CPU's L2 cache does so too (D-043).
    """
    instruction_set: Literal["avx2", "native"] = "avx2"
    """Instruction set of matrix products on a CPU: `avx2`, with the same bytes on every x86-64 CPU
    that has AVX2 and FMA (D-043), or `native`, the widest of the processor.
    """
    precision: Literal["float32", "bfloat16"] = "float32"
    """Floating-point type of the activations. Weights and optimizer state are always float32. On a
    CPU the bytes of a `bfloat16` result are those of one kind of CPU (D-043).
    """
    # Left out of recorded settings where it is the default: jobs from before it was a setting
    # agree with those of today.
    remat: Remat = Field("none", exclude_if=lambda remat: remat == "none")
    """Activations that the backward pass computes again instead of keeping them, on JAX: `none`,
    all inside a block (`block`: least memory, about a third more arithmetic), or all inside a block
    but its products with weights (`dots`). If `none`, the setting is not recorded.
    """
    mesh: MeshSettings = Field(MeshSettings(), exclude_if=lambda mesh: mesh.devices == 1)
    """Grid of devices, on JAX. If it is one device, the setting is not recorded."""
    steps_per_execution: int = Field(1, ge=1)
    """Training steps per call from the host; steps."""
    cloud_folder: Annotated[
        str, Pattern("^([a-z][a-z0-9+.-]*://.+)?$", "an address, such as 'gs://bucket/folder'")
    ] = ""
    """Cloud Storage folder (`gs://...`) for copies of checkpoints and TensorBoard files, because a
    preempted machine loses its disk. If empty, they are stored locally only.
    """
    slice: Annotated[str, Pattern("^([a-z0-9]+:[0-9x]+)?$", "a slice, such as 'v5e:4x4'")] = ""
    """TPU slice, such as `v5e:4x4`, for which pre-training is compiled before any other rule runs.
    If empty, this check is skipped.
    """

    @model_validator(mode="after")
    def _engine_can(self) -> "DevicesSettings":
        if self.engine == "jax":
            if self.cloud_folder:
                raise ValueError(
                    f"devices.cloud_folder is {self.cloud_folder!r}, which is copied to by "
                    "TensorFlow only; leave it empty, or set devices.engine to tensorflow"
                )
            if self.mesh.devices > 1 and self.kind == "mirrored":
                raise ValueError(
                    f"devices.mesh has {self.mesh.devices} devices and devices.kind is 'mirrored', "
                    "which takes all that there are; set devices.kind to cpu, gpu or tpu"
                )
        elif self.mesh.devices > 1:
            raise ValueError(
                f"devices.mesh is {self.mesh.data} x {self.mesh.model} devices, which JAX divides "
                "a model among only; leave it out, or set devices.engine to jax"
            )
        elif self.remat != "none":
            raise ValueError(
                f"devices.remat is {self.remat!r}, which JAX computes only; set it to none, or set "
                "devices.engine to jax"
            )
        return self
