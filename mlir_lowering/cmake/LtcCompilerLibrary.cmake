# add_ltc_compiler_library(NAME sources... [DEPENDS tablegen-targets...])
#
# One object library for each folder of lib/. Together they form the shared
# library ltc_mlir_lowering, so that MLIR is linked only once. All of them share
# LtcSupport's precompiled headers.
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
    # In libstdc++'s stable_sort; with precompiled headers, clang loses the pragma
    # there that disables the warning.
    target_compile_options(${name} PRIVATE -Wno-deprecated-declarations)
  endif()
  if(name STREQUAL "LtcSupport")
    ltc_precompile_headers(${name} mlir_headers.h)
  else()
    ltc_precompile_headers(${name} REUSE_FROM LtcSupport)
  endif()
  # LtcCodegen's files use MLIR's namespace or LLVM's, with the same names.
  if(NOT name STREQUAL "LtcCodegen")
    ltc_compile_together(${name} 4)
  endif()
  set_property(GLOBAL APPEND PROPERTY LTC_COMPILER_LIBRARIES ${name})
endfunction()
