# Cross-compiles for AArch64 Linux with this machine's clang, lld and LLVM tools.
# LTC_SYSROOT is a folder of Debian's arm64 packages (tools/dev/aarch64.py).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
if(NOT LTC_SYSROOT)
  set(LTC_SYSROOT $ENV{LTC_SYSROOT})
endif()
# CMake's own test projects read this file again.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LTC_SYSROOT)
set(CMAKE_SYSROOT ${LTC_SYSROOT})

set(LTC_HOST_LLVM /usr/lib/llvm-22)
set(CMAKE_C_COMPILER ${LTC_HOST_LLVM}/bin/clang)
set(CMAKE_CXX_COMPILER ${LTC_HOST_LLVM}/bin/clang++)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -fuse-ld=lld)
endforeach()

# Programs of this machine, but headers and libraries of the other one.
set(CMAKE_FIND_ROOT_PATH ${LTC_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
