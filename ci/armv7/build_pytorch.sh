#!/usr/bin/env bash
# Build a PyTorch wheel for the PYNQ-Z2 (armv7l): build_pytorch.sh CHECKOUT [FOLDER]
#
# CHECKOUT is a clone of PyTorch with its submodules, at the version that ci/constraints.txt pins.
# Called again it goes on where it stopped. NOBODY HAS RUN THE BUILD ITSELF YET: README.md says what was.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)
stop() { echo "build_pytorch.sh: $*" >&2; exit 1; }

[ $# -ge 1 ] || stop "give the folder of a PyTorch checkout"
checkout=$(cd "$1" && pwd)
out=$(realpath -m "${2:-$project/.venv-armv7-torch}")
version=$(sed -n 's/^torch==//p' "$project/ci/constraints.txt")
export ARMV7_SYSROOT=${ARMV7_SYSROOT:-$project/.venv-armv7}

# ---- what must be there
[ -e "$ARMV7_SYSROOT/.installed" ] || stop "no sysroot; make armv7-sysroot"
found=$(sed 's/a0.*//' "$checkout/version.txt" 2>/dev/null || true)
[ "$found" = "$version" ] || stop "$checkout is version ${found:-unknown}; expected $version:" \
  "git checkout v$version && git submodule update --init --recursive"
[ -e "$checkout/third_party/sleef/CMakeLists.txt" ] || stop "no submodules in $checkout:" \
  "git submodule update --init --recursive"
for program in cmake ninja arm-linux-gnueabihf-g++; do
  command -v "$program" >/dev/null || stop "no $program on the PATH"
done
# CMake starts the Python that setup.py runs in, so the system must know how to start programs for Arm.
export QEMU_LD_PREFIX=$ARMV7_SYSROOT QEMU_CPU=cortex-a9
python=$ARMV7_SYSROOT/usr/bin/python3.11
"$python" -c 'import numpy, yaml' 2>/dev/null || stop "$python does not start, or has no yaml:" \
  "as root, apt install binfmt-support qemu-user-static, or systemctl restart systemd-binfmt"

# ---- tools of this PC, which the build for another processor runs
mkdir -p "$out"
if [ ! -e "$out/sleef/.done" ]; then
  cmake -S "$checkout/third_party/sleef" -B "$out/sleef" -G Ninja -DSLEEF_BUILD_TESTS=OFF
  cmake --build "$out/sleef"
  touch "$out/sleef/.done"
fi
if [ ! -e "$out/protoc/.done" ]; then
  cmake -S "$checkout/third_party/protobuf/cmake" -B "$out/protoc" -G Ninja \
    -Dprotobuf_BUILD_TESTS=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5
  cmake --build "$out/protoc" --target protoc
  touch "$out/protoc/.done"
fi
export NATIVE_BUILD_DIR=$out/sleef PROTOC=$out/protoc/protoc # toolchain.cmake hands them on

# ---- PyTorch. An A9 has no BLAS worth the name, 512 MB, two cores and no second machine.
export CMAKE_TOOLCHAIN_FILE=$here/toolchain.cmake CMAKE_BUILD_TYPE=Release
export BLAS=Eigen USE_LAPACK=0 USE_MKLDNN=0 USE_FBGEMM=0 USE_NNPACK=0 USE_XNNPACK=0
export USE_PYTORCH_QNNPACK=0 USE_KLEIDIAI=0 USE_FLASH_ATTENTION=0 USE_MEM_EFF_ATTENTION=0
export USE_CUDA=0 USE_ROCM=0 USE_XPU=0 USE_MPS=0 USE_DISTRIBUTED=0 USE_KINETO=0 USE_ITT=0
export USE_OPENMP=1 USE_NUMPY=1 BUILD_TEST=0
# Linking libtorch takes about 4 GB a job.
export MAX_JOBS=${MAX_JOBS:-$(nproc)}
export PYTORCH_BUILD_VERSION=$version PYTORCH_BUILD_NUMBER=1
# What compiles extensions inside setup.py.
export CC=arm-linux-gnueabihf-gcc CXX=arm-linux-gnueabihf-g++ LDSHARED="arm-linux-gnueabihf-gcc -shared"
cd "$checkout" # ninja builds what is missing in build/
"$python" setup.py bdist_wheel --dist-dir "$out"

exec "$here/check_wheel.sh" "$out/torch-$version"-*.whl
