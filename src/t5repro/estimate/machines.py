"""Machines: kinds of chips with their published figures, and names such as ``v5e-8``.

To add a kind: a row in `KINDS` with its source.
"""

import re
from dataclasses import dataclass, replace

from t5repro.config.sections.devices import DevicesSettings
from t5repro.errors import SettingsError, nearest
from t5repro.plan.memory import machine_bytes

TERA, GIGA, GIB = 1e12, 1e9, 2**30
NAME = re.compile(r"^([a-z0-9]+)(?:-([0-9]+))?$")


@dataclass(frozen=True)
class Kind:
    """A kind of chip; of a CPU one core.

    Attributes:
        name: its name in ``--machine``.
        bfloat16: peak of matrix products in bfloat16; FLOP/s of a chip.
        float32: the same for float32 activations, as TensorFlow computes them.
        memory: bytes of a chip; 0 for a core, which shares the machine's.
        bandwidth: of this memory; bytes/s.
        utilization: share of the peak that a training reaches, unless it was measured.
        cores: cores of a chip that the names of the owner count, as in ``v3-8``.
        device: `devices.kind` of a run on it.
        replicas: copies of the network on a chip, each with its part of the memory.
    """

    name: str
    bfloat16: float
    float32: float
    memory: float
    bandwidth: float
    utilization: float
    cores: int
    device: str
    replicas: int = 1

    def peak(self, precision: str) -> float:
        """Return the peak of a chip for `devices.precision`; FLOP/s."""
        return self.bfloat16 if precision == "bfloat16" else self.float32


def _tpu(
    name: str, tera: float, memory: float, giga: float, *, cores: int, replicas: int = 1
) -> Kind:
    # XLA multiplies float32 matrices on a TPU in one pass of bfloat16 unless told otherwise.
    return Kind(name, tera * TERA, tera * TERA, memory, giga * GIGA, 0.45, cores, "tpu", replicas)


def _gpu(name: str, tera: float, tf32: float, memory: float, giga: float) -> Kind:
    # TensorFlow multiplies float32 matrices in TF32 on these chips. Dense figures, no sparsity.
    return Kind(name, tera * TERA, tf32 * TERA, memory, giga * GIGA, 0.35, 1, "gpu")


# Peak, memory and bandwidth of a chip. TPUs: the pages of the chips, such as
# docs.cloud.google.com/tpu/docs/v5e; v2 and v3 also Jouppi et al., "A domain-specific supercomputer
# for training deep neural networks", CACM 63(7), 2020. GPUs: NVIDIA's data sheets of the A100
# 80GB SXM, H100 SXM and H200 SXM. A core: 185 GFLOP/s were measured on two cores with AVX2
# (docs/benchmarks.md); it is no peak, so its utilization is 1.
# A chip up to v4 is two devices of half its memory, as the TPU compiler describes it.
KINDS = {
    kind.name: kind
    for kind in (
        _tpu("v2", 45, 16 * GIB, 700, cores=2, replicas=2),
        _tpu("v3", 123, 32 * GIB, 900, cores=2, replicas=2),
        _tpu("v4", 275, 32 * GIB, 1228, cores=2, replicas=2),
        _tpu("v5e", 197, 16 * GIB, 819, cores=1),
        _tpu("v5p", 459, 95 * GIB, 2765, cores=2),
        _tpu("v6e", 918, 32 * GIB, 1640, cores=1),
        _gpu("a100", 312, 156, 80 * GIGA, 2039),
        _gpu("h100", 989, 494, 80 * GIGA, 3350),
        _gpu("h200", 989, 494, 141 * GIGA, 4800),
        Kind("cpu", 92.5 * GIGA, 92.5 * GIGA, 0, 10 * GIGA, 1.0, 1, "cpu"),
    )
}


@dataclass(frozen=True)
class Machine:
    """Chips of one kind; of a CPU cores.

    Attributes:
        kind: the kind.
        chips: number of chips or cores.
        memory: bytes that the cores of a CPU share; 0 if unknown, as of a named machine.
    """

    kind: Kind
    chips: int
    memory: float = 0.0

    @property
    def name(self) -> str:
        """Kind and number of chips."""
        return f"{self.kind.name}, {self.chips} {self.unit}{'s' if self.chips > 1 else ''}"

    @property
    def unit(self) -> str:
        """The unit of its hours."""
        return "core" if self.kind.device == "cpu" else "chip"


def machine_named(name: str, chips: int | None = None) -> Machine:
    """Return the machine of a name such as ``v5e-8``, ``h100`` or ``cpu-2``.

    As in the provider's names, the number counts cores for v2, v3, v4 and v5p, two to a chip.

    Args:
        name: kind, with or without a number.
        chips: number of chips; overrides the number in the name.

    Raises:
        SettingsError: the kind is unknown, or the number does not fit.
    """
    match = NAME.match(name)
    if match is None or match[1] not in KINDS:
        kinds = ", ".join(KINDS)
        raise SettingsError(
            f"--machine {name!r} is unknown; name a kind and a number, such as v5e-8; kinds: "
            f"{kinds}{nearest(name.partition('-')[0], KINDS)}"
        )
    kind, number = KINDS[match[1]], int(match[2] or KINDS[match[1]].cores)
    if number < 1 or number % kind.cores:
        raise SettingsError(
            f"--machine {name!r}: the number of {kind.name} counts cores, {kind.cores} to a chip, "
            f"so it is a multiple of {kind.cores} from {kind.cores} on; or give --chips"
        )
    if chips is not None and chips < 1:
        raise SettingsError(f"--chips {chips} must be 1 or more")
    return Machine(kind, chips or number // kind.cores)


def machine_of(devices: DevicesSettings, chips: int | None = None) -> Machine:
    """Return the machine that the settings of a run name.

    Raises:
        SettingsError: they name none.
    """
    if devices.kind == "cpu":
        return replace(
            machine_named("cpu", chips or devices.intra_op_threads), memory=machine_bytes()
        )
    kind, _, topology = devices.slice.partition(":")
    if devices.kind != "tpu" or kind not in KINDS:
        raise SettingsError(
            f"devices.kind is {devices.kind!r} and devices.slice {devices.slice!r}, which names no "
            f"machine; give --machine, such as v5e-8; kinds: {', '.join(KINDS)}"
        )
    return machine_named(kind, chips or slice_chips(topology))


def slice_chips(topology: str) -> int:
    """Return the number of chips of a topology such as ``4x4``; 1 without one."""
    chips = 1
    for side in topology.split("x"):
        chips *= int(side or 1)
    return chips
