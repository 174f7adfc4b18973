"""The environment variables that JAX and XLA read when they start."""

import os

from t5repro.config.sections.devices import DevicesSettings

PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}  # all others: whatever JAX finds
FLAGS = "XLA_FLAGS"
THREADS = "NPROC"  # from which XLA takes the size of its pool of threads
INSTRUCTION_SET = "--xla_cpu_max_isa="
LOGICAL_DEVICES = "--xla_force_host_platform_device_count="
# On a CPU XLA merges what `devices.remat` computes again with the first computation, whose memory
# then stays in use, unless this pass of its compiler is left out.
KEPT_BARRIERS = "--xla_disable_hlo_passes=cse_barrier_expander"


def set_variables(settings: DevicesSettings) -> None:
    """Set the variables; they have no effect after the first operation of a process."""
    os.environ[THREADS] = str(settings.intra_op_threads)
    if platform := PLATFORMS.get(settings.kind):
        os.environ["JAX_PLATFORMS"] = platform
    flags = [flag for flag in os.environ.get(FLAGS, "").split() if INSTRUCTION_SET not in flag]
    limit = [f"{INSTRUCTION_SET}AVX2"] if settings.instruction_set == "avx2" else []
    # A CPU has no second device: a mesh of it is a rehearsal on logical ones.
    is_rehearsed = settings.kind == "cpu" and settings.mesh.devices > 1
    logical = [f"{LOGICAL_DEVICES}{settings.mesh.devices}"] if is_rehearsed else []
    barriers = [KEPT_BARRIERS] if settings.kind == "cpu" and settings.remat != "none" else []
    os.environ[FLAGS] = " ".join(dict.fromkeys([*flags, *limit, *logical, *barriers]))
