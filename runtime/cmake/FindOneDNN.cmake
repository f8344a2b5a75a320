# Finds oneDNN 3 for CPU with the GNU OpenMP runtime, as PyPI's
# `onednn-cpu-gomp` (library) and `onednn-devel-cpu-gomp` (headers) install it
# below the data prefix of the Python environment. This oneDNN shares
# libgomp.so.1, and so the thread pool, with PyTorch.
#
# Defines the imported target OneDNN::OneDNN and ONEDNN_LIBRARY_DIR. Set
# ONEDNN_PREFIX to search a different prefix. Where PyPI has no oneDNN (on
# AArch64), set ONEDNN_ARCHIVE to a libdnnl.a that was built with GCC's OpenMP;
# the runtime then contains it.

if(ONEDNN_ARCHIVE)
  find_path(ONEDNN_INCLUDE_DIR dnnl.hpp PATHS ${ONEDNN_PREFIX}/include
    NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  cmake_path(GET ONEDNN_ARCHIVE PARENT_PATH ONEDNN_LIBRARY_DIR)
  add_library(OneDNN::OneDNN STATIC IMPORTED GLOBAL)
  set_target_properties(OneDNN::OneDNN PROPERTIES
    IMPORTED_LOCATION ${ONEDNN_ARCHIVE}
    INTERFACE_INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE_DIR})
  return()
endif()

if(NOT ONEDNN_PREFIX)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_path('data'))"
    OUTPUT_VARIABLE ONEDNN_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE _result)
  if(NOT _result EQUAL 0)
    message(FATAL_ERROR "${Python_EXECUTABLE} can't tell its installation prefix; "
      "point -DPython_EXECUTABLE at a working Python 3.11.")
  endif()
endif()

find_path(ONEDNN_INCLUDE_DIR dnnl.hpp
  PATHS ${ONEDNN_PREFIX}/include NO_DEFAULT_PATH NO_CACHE)
# Looks for the versioned name, because the runtime package has no unversioned
# symlink.
find_file(ONEDNN_LIBRARY NAMES libdnnl.so.3
  PATHS ${ONEDNN_PREFIX}/lib ${ONEDNN_PREFIX}/lib64 NO_DEFAULT_PATH NO_CACHE)

if(NOT ONEDNN_INCLUDE_DIR OR NOT ONEDNN_LIBRARY)
  message(FATAL_ERROR
    "oneDNN 3 (dnnl.hpp and libdnnl.so.3) is not below ${ONEDNN_PREFIX}. "
    "Install it with\n"
    "  ${Python_EXECUTABLE} -m pip install onednn-cpu-gomp onednn-devel-cpu-gomp\n"
    "or pass -DONEDNN_PREFIX=<prefix with include/dnnl.hpp and lib/libdnnl.so.3>.")
endif()

get_filename_component(ONEDNN_LIBRARY_DIR ${ONEDNN_LIBRARY} DIRECTORY)
if(NOT TARGET OneDNN::OneDNN)
  add_library(OneDNN::OneDNN SHARED IMPORTED GLOBAL)
  set_target_properties(OneDNN::OneDNN PROPERTIES
    IMPORTED_LOCATION ${ONEDNN_LIBRARY}
    IMPORTED_SONAME libdnnl.so.3
    INTERFACE_INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE_DIR})
endif()
