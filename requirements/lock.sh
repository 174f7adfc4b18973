#!/bin/sh
# Write the lock files from pyproject.toml: the same releases on CPU, GPU and TPU hosts.
# A TPU host takes tensorflow-tpu, which ships the package `tensorflow` itself; tensorflow-text
# asks for `tensorflow`, so that one name is taken out of the TPU lock.
set -eu
cd "$(dirname "$0")/.."
compile() {
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" "$@"
}
compile --extra cpu --extra dev pyproject.toml -o requirements/cpu-gpu.txt
# What a run needs on a CPU: no Spark, export, tests or developers' tools (`make runtime`).
compile --extra runtime -c requirements/cpu-gpu.txt pyproject.toml -o requirements/runtime.txt
compile --extra gpu -c requirements/cpu-gpu.txt pyproject.toml -o requirements/cuda.txt
echo "tensorflow; python_version < '3'" > requirements/.override.txt
compile --extra tpu --extra dev -c requirements/cpu-gpu.txt --override requirements/.override.txt \
    pyproject.toml -o requirements/tpu.txt
rm requirements/.override.txt
for extra in jax jax-cuda; do
    compile --extra $extra -c requirements/cpu-gpu.txt pyproject.toml -o requirements/$extra.txt
done
# The TPU compiler is no part of the run's environment: `make preflight` gives it one of its own.
sed -n 's/^preflight = \[\(.*\)\]$/\1/p' pyproject.toml | tr -d '", ' | sed 's/jaxlib/\njaxlib/; s/libtpu/\nlibtpu/' |
    compile -c requirements/cpu-gpu.txt - -o requirements/preflight.txt
# Neither is what builds the documentation: `make docs`. The notebook runs in both environments, so
# their common packages have one version.
sed -n 's/^docs = \[\(.*\)\]$/\1/p' pyproject.toml | tr -d '" ' | tr ',' '\n' |
    compile -c requirements/cpu-gpu.txt - -o requirements/docs.txt
# What compares with peers, looks at pages, signs models, reads T5X or submits to SLURM comes on top of the environment
# (`make parity`, `make browser`, `make signing`, `make slurm`, `make t5x`).
extra() { sed -n "s/^$1 = \[\(.*\)\]$/\1/p" pyproject.toml | tr -d '" ' | tr ',' '\n'; }
for name in browser release signing slurm t5x; do
    extra $name | compile -c requirements/cpu-gpu.txt - -o requirements/$name.txt
done
# Transformers 4 takes earlier releases of two packages than the environment has. Torch imports triton if it
# is there, which ends a process that has imported TensorFlow: both bring LLVM.
sed -n 's/ \\$//; /^[a-z]/p' requirements/cpu-gpu.txt | grep -v '^\(tokenizers\|huggingface-hub\)==' > requirements/.others.txt
extra parity | compile --no-emit-package triton -c requirements/.others.txt - -o requirements/parity.txt
rm requirements/.others.txt
# PyPI's torch is built for CUDA and needs 2.7 GB of NVIDIA's libraries: it has a lock of its own, for where pip
# finds no torch built for CPUs. PyTorch's own index has that one; it is named for Python 3.11.
awk '/^[#a-z]/ {cuda = /^(torch|cuda|nvidia)[-=]/} cuda {print > "requirements/torch-cuda.txt"} !cuda' \
    requirements/parity.txt > requirements/.parity.txt
mv requirements/.parity.txt requirements/parity.txt
cat > requirements/torch-cpu.txt <<EOF
torch==$(sed -n 's/^torch==\([^ ]*\).*/\1/p' requirements/torch-cuda.txt)+cpu \\
    --hash=sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b
EOF
# Of TFDS only functions are called, so its dependencies are not needed; the dependencies of the next major version of
# transformers are in the locks already.
echo tensorflow-datasets==4.9.10 | compile --no-deps --no-header - >> requirements/parity.txt
printf '%s\n' transformers==5.23.0 huggingface-hub==2.4.0 tokenizers==0.23.3 |
    compile --no-deps - -o requirements/transformers-5.txt
