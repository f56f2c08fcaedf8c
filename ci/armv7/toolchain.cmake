# cmake -DCMAKE_TOOLCHAIN_FILE=ci/armv7/toolchain.cmake: for a Cortex-A9 under Debian 12, with the
# headers and libraries of `make armv7-sysroot`. Programs that a build runs are emulated.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_CXX_COMPILER arm-linux-gnueabihf-g++)

if(DEFINED ENV{ARMV7_SYSROOT})
  set(ARMV7_SYSROOT "$ENV{ARMV7_SYSROOT}")
else()
  get_filename_component(ARMV7_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../../.venv-armv7" ABSOLUTE)
endif()

# NEON computes floats as IEEE 754 has them, but for subnormal numbers; GCC uses it for floats only
# under -ffast-math, and for integers always.
set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-a9 -mfpu=neon -mfloat-abi=hard")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")

set(CMAKE_FIND_ROOT_PATH "${ARMV7_SYSROOT}" /usr/arm-linux-gnueabihf)
set(CMAKE_LIBRARY_ARCHITECTURE arm-linux-gnueabihf)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

find_program(ARMV7_EMULATOR NAMES qemu-arm qemu-arm-static)
set(CMAKE_CROSSCOMPILING_EMULATOR "${ARMV7_EMULATOR};-cpu;cortex-a9;-L;${ARMV7_SYSROOT}")

# Tools that build_pytorch.sh has built for this PC.
if(DEFINED ENV{NATIVE_BUILD_DIR})
  set(NATIVE_BUILD_DIR "$ENV{NATIVE_BUILD_DIR}" CACHE PATH "of SLEEF")
  set(CAFFE2_CUSTOM_PROTOC_EXECUTABLE "$ENV{PROTOC}" CACHE FILEPATH "protoc")
endif()
