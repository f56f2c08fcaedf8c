#!/usr/bin/env bash
# Say whether a wheel runs on a PYNQ-Z2's Cortex-A9: check_wheel.sh FILE.whl
#
# Its tag, what its libraries were compiled for, the libraries that they need; for torch, whether it
# computes under emulation as numpy does.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${ARMV7_SYSROOT:-$here/../../.venv-armv7}
wheel=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=
bad() { echo "check_wheel.sh: $*" >&2; failed=1; }

case $wheel in
  *-cp311-cp311-linux_armv7l.whl) ;;
  *) bad "$(basename "$wheel"): expected a tag that ends in cp311-cp311-linux_armv7l" ;;
esac
python3 -m zipfile -e "$wheel" "$folder"
find "$folder" -name '*.so*' >"$folder/libraries"
[ -s "$folder/libraries" ] || bad "$wheel has no libraries"
while read -r library; do
  name=${library#"$folder"/}
  [[ $(arm-linux-gnueabihf-readelf --file-header "$library") =~ Machine:\ +ARM ]] ||
    { bad "$name is not for 32-bit Arm"; continue; }
  about=$(arm-linux-gnueabihf-readelf --arch-specific "$library")
  # An A9 has NEON and VFPv3, but neither fused multiply-add nor a division of integers.
  [[ $about =~ Tag_ABI_VFP_args:\ VFP ]] || bad "$name passes floats in integer registers (armel)"
  [[ ! $about =~ (VFPv4|Fused-MAC|FPv5|FP\ for\ ARMv8) ]] || bad "$name has ${BASH_REMATCH[1]} instructions"
  [[ ! $about =~ Tag_DIV_use:\ Allowed\ in ]] || bad "$name divides integers by instructions"
  [[ ! $about =~ Tag_CPU_arch:\ (v8|v9)[^$'\n']* ]] || bad "$name is for ${BASH_REMATCH[0]#*: }"
  for needed in $(arm-linux-gnueabihf-readelf --dynamic "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    [ -n "$(find "$folder" "$root/lib" "$root/usr/lib" -name "$needed" -print -quit)" ] ||
      bad "$name needs $needed, which neither the wheel nor the sysroot has"
  done
done <"$folder/libraries"
if [ -n "$failed" ]; then exit 1; fi

case $(basename "$wheel") in
  torch-*) PYTHONPATH=$folder "$here/python" -W ignore "$here/check_torch.py" ;;
esac
echo "$(basename "$wheel"): $(wc -l <"$folder/libraries") libraries, for a Cortex-A9"
