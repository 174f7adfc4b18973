"""Calls the TPU compiler for a preflight; a separate program.

    python tpu_compiler.py describe v5e:4x4
    python tpu_compiler.py compile v5e:4x4 STEP

It prints one JSON object. It runs in an interpreter with the packages of the extra `preflight` and
imports nothing of t5repro, so that no process imports both TensorFlow and JAX: on a TPU host both
would load libtpu. STEP is MLIR bytecode of StableHLO, written by TensorFlow.

The functions of jaxlib are private and change between releases, so the versions are pinned.
"""

import json
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PINNED = {"jax": "0.10.2", "jaxlib": "0.10.2", "libtpu": "0.0.42.1"}
ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",  # off a TPU host there is no metadata server to query
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # several may compile at a time; none touches a TPU
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def check_versions() -> dict[str, str] | None:
    """Return the fault of the installed packages, or nothing."""
    installed = {}
    for name in PINNED:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            return {"fault": "missing", "text": f"{name} is not installed"}
    if installed != PINNED:
        versions = ", ".join(f"{name} {version}" for name, version in installed.items())
        return {"fault": "versions", "text": f"found {versions}"}
    return None


def topology(name: str) -> Any:
    """Return the description of a slice."""
    from jax.experimental import topologies

    return topologies.get_topology_desc(platform="tpu", topology_name=name)


def describe(name: str) -> dict[str, Any]:
    """Return the number of cores of a slice and their kind."""
    from jaxlib import _jax

    try:
        devices = topology(name).devices
    except _jax.JaxRuntimeError as error:
        return {"fault": "slice", "text": _first_line(error)}
    import libtpu

    return {
        "cores": len(devices),
        "kind": devices[0].device_kind,
        "library": libtpu.get_library_path(),
    }


def compile_step(name: str, step: Path) -> dict[str, Any]:
    """Return memory and arithmetic of a step on one core of the slice."""
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib import _jax
    from jaxlib.mlir import ir

    device = topology(name).devices[0]
    context = mlir.make_ir_context()
    with context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(step.read_bytes())
        _remove_copies(module, ir)
        try:
            compiled = device.client.compile(
                module, _jax.DeviceList((device,)), xla_client.CompileOptions()
            )
        except _jax.JaxRuntimeError as error:
            return memory_fault(error)
    return costs_of(compiled.get_compiled_memory_stats(), compiled.cost_analysis())


def memory_fault(error: Exception) -> dict[str, str]:
    """Return the fault of a step that needs more memory than a core has; raise any other error."""
    if "RESOURCE_EXHAUSTED" not in str(error):
        raise error
    return {"fault": "memory", "text": _first_line(error)}


def costs_of(memory: Any, costs: Any) -> dict[str, Any]:
    """Return memory and arithmetic of a compiled step by the names of the report."""
    costs = costs[0] if isinstance(costs, list) else costs
    return {
        "argument_bytes": memory.argument_size_in_bytes,
        "output_bytes": memory.output_size_in_bytes - memory.alias_size_in_bytes,
        "temporary_bytes": memory.temp_size_in_bytes,
        "code_bytes": memory.generated_code_size_in_bytes,
        "flops": costs.get("flops"),
        "bytes_accessed": costs.get("bytes accessed"),
    }


def _remove_copies(module: Any, ir: Any) -> None:
    """Remove ``mhlo.copy``, an identity that jaxlib's compiler does not support."""
    copies = []

    def collect(operation: Any) -> Any:
        if operation.name == "mhlo.copy":
            copies.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for operation in copies:
        operation.results[0].replace_all_uses_with(operation.operands[0])
        operation.operation.erase()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def main(arguments: list[str]) -> dict[str, Any]:
    """Run a command; return the object to print."""
    os.environ.update(ENVIRONMENT)
    fault = check_versions()
    if fault is not None:
        return fault
    if arguments[0] == "describe":
        return describe(arguments[1])
    return compile_step(arguments[1], Path(arguments[2]))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
