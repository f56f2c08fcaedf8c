#!/usr/bin/env bash
# Make a folder with an armhf Debian 12: Python 3.11, numpy, the C library, and pynq: sysroot.sh FOLDER.
# Called by `make armv7-sysroot`. It needs no root, and leaves the PC's own packages as they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

root=$1
python=${VENV:-.venv}/bin/python
suite=bookworm
# What pynq and this package import. pynq's other dependencies are not installed.
debian=(python3.11-minimal libpython3.11-stdlib libpython3.11-dev libstdc++6 python3-numpy python3-cffi
  python3-ipython python3-jsonschema python3-magic python3-nest-asyncio python3-setuptools
  python3-tqdm python3-yaml)
# Debian's are too old: grpcio (1.51) for pynq's stubs, setuptools for PyTorch. These have wheels.
wheels=(annotated-types grpcio packaging protobuf pydantic pydantic-core setuptools
  typing-extensions typing-inspection)

need() {
  command -v "$1" >/dev/null || { echo "armv7-sysroot: no $1; install $2" >&2; exit 1; }
}
need dpkg-deb dpkg
need apt-get apt
need arm-linux-gnueabihf-g++ g++-arm-linux-gnueabihf
command -v qemu-arm qemu-arm-static >/dev/null || need qemu-arm-static qemu-user-static

mirror=${ARMV7_MIRROR:-$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' \
  'Origin: Debian' "Codename: $suite" | head -n 1)}
if [ -z "$mirror" ]; then
  echo "armv7-sysroot: apt knows no Debian $suite; set ARMV7_MIRROR to the address of a mirror" >&2
  exit 1
fi

new=$root.new
rm -rf "$new"
trap 'rm -rf "$new"' EXIT
# A state of apt's own, in which nothing is installed: so it fetches all that the packages need.
state=$(realpath -m "$new/apt")
mkdir -p "$state"/{lists,archives}/partial
: >"$state/status"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keyring] $mirror $suite main" >"$state/sources.list"
apt=(apt-get -qq -o APT::Architecture=armhf -o APT::Architectures=armhf
  -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state"
  -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=-
  -o APT::Install-Recommends=false -o APT::Sandbox::User="$(id -un)")
"${apt[@]}" update
"${apt[@]}" install --download-only --yes "${debian[@]}"
for package in "$state"/archives/*.deb; do
  dpkg-deb --extract "$package" "$new"
done
rm -rf "$state"
# What Debian's alternatives would link.
ln -s blas/libblas.so.3 lapack/liblapack.so.3 "$new/usr/lib/arm-linux-gnueabihf/"

site=$new/usr/local/lib/python3.11/dist-packages
pip=("$python" -m pip --disable-pip-version-check install --quiet --no-deps --no-compile
  --target "$site" --constraint ci/constraints.txt)
"${pip[@]}" --only-binary=:all: --implementation cp --python-version 3.11 \
  --platform manylinux_2_17_armv7l --platform linux_armv7l "${wheels[@]}"
"${pip[@]}" --no-build-isolation pynq pynqmetadata pynqutils
# Bytecode is the same for every processor; the emulated Python would take a minute for it.
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' &&
  "$python" -m compileall -q -j 0 "$new"/usr/lib/python3* "$site" >/dev/null || true
touch "$new/.installed"
rm -rf "$root"
mv "$new" "$root"
