# add_ltc_compiler_library(NAME sources... [DEPENDS tablegen-targets...])
#
# Adds the object library of one folder of lib/. Together, the object libraries
# form the shared library ltc_mlir_lowering, so that MLIR is linked only once.
# All of them use LtcSupport's precompiled headers.
function(add_ltc_compiler_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINKS" ${ARGN})
  add_library(${name} OBJECT ${ARG_UNPARSED_ARGUMENTS})
  # Hidden visibility would duplicate MLIR's implicit TypeIDs in this library,
  # and every `hasTrait<>` would silently return false.
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET default)
  target_compile_definitions(${name} PRIVATE ${LLVM_DEFINITIONS_LIST})
  if(ARG_LINKS)
    target_link_libraries(${name} PUBLIC ${ARG_LINKS})
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # libstdc++ disables this warning in stable_sort with a pragma, which clang
    # loses in precompiled headers.
    target_compile_options(${name} PRIVATE -Wno-deprecated-declarations)
  endif()
  if(name STREQUAL "LtcSupport")
    ltc_precompile_headers(${name} mlir_headers.h)
  else()
    ltc_precompile_headers(${name} REUSE_FROM LtcSupport)
  endif()
  # LtcCodegen's files are compiled one by one: some use MLIR's namespace and
  # some LLVM's, and both have classes of the same names.
  if(NOT name STREQUAL "LtcCodegen")
    ltc_compile_together(${name} 4)
  endif()
  set_property(GLOBAL APPEND PROPERTY LTC_COMPILER_LIBRARIES ${name})
endfunction()
