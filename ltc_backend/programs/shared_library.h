//===- shared_library.h - Libraries of ours, loaded when needed -*- C++ -*-===//

#ifndef TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H
#define TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H

#include <cstdint>
#include <string>

namespace torch_ltc {

/// The file of this library.
std::string backendLibraryPath();

/// The library of that name beside this one.
std::string siblingLibraryPath(const std::string &name);

/// Loads a library for as long as the process lives. `what` ("compiler") is its
/// name in the std::runtime_error that says what to do if it can't be loaded.
void *openLibrary(const std::string &path, const char *what);

/// Whether the library at `address` (dl_phdr_info's dlpi_addr) came with one
/// that `openLibrary` loaded: itself, or one that it needs and nobody had
/// loaded.
bool isBroughtByOurs(uintptr_t address);

/// A function of it; std::runtime_error if it is of a version without it.
void *findFunction(void *library, const char *name, const char *what);

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H
