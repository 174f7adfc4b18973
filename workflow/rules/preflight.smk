"""Compile the step of pre-training for the TPU slice of the run file, before any other job.

READS     nothing but settings
WRITES    logs/{run}/preflight/{node}.json                  memory and arithmetic of one core
SETTINGS  pretrain.*, model.*, vocab.*, devices.*, seed; it runs if devices.slice is set
CODE      src/t5repro/train/preflight.py
"""


rule preflight:
    """Fail in minutes if a slice is too small, instead of after weeks of cleaning."""
    input:
        code=code_of("preflight"),
    output:
        report="<logs>/preflight/{node}.json",
    log:
        "<logs>/preflight/{node}.log",
    benchmark:
        "<logs>/preflight/{node}.tsv"
    resources:
        mem_mb=memory(8000),
        runtime=60,
    priority: 100
    params:
        settings=settings_of("pretrain"),
    shell:
        "t5repro stage preflight"
        " --settings {params.settings:q}"
        " --report {output.report:q}"
        " --log {log:q}"
