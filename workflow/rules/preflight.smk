"""
Compile the step of pre-training for the TPU slice of the run file, before anything else runs.

READS     nothing: the settings decide
WRITES    logs/{run}/preflight/{node}.json                  memory and arithmetic of one core
SETTINGS  those of pretrain; it runs where devices.slice names a slice
CODE      src/t5repro/train/preflight.py and the packages it imports
"""


def preflight_of(wildcards):
    """Return what pre-training waits for: a step that fits, where a slice is named."""
    if not settings_at(wildcards.node).devices.slice:
        return []
    return [f"logs/{RUN}/preflight/{wildcards.node}.json"]


rule preflight:
    """Fail in minutes where a slice is too small, instead of after weeks of cleaning."""
    input:
        code=code_of("preflight"),
    output:
        report="logs/{run}/preflight/{node}.json",
    log:
        "logs/{run}/preflight/{node}.log",
    priority: 100
    params:
        settings=settings_of("pretrain"),
    shell:
        "t5repro preflight"
        " --settings {params.settings:q}"
        " --report {output.report:q}"
        " --log {log:q}"
