//===- shared_library.h - Loads torch_ltc's libraries -----------*- C++ -*-===//

#ifndef TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H
#define TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H

#include <cstdint>
#include <string>

namespace torch_ltc {

/// The path of this library.
std::string backendLibraryPath();

/// The path of the library `name` in the folder of this library.
std::string siblingLibraryPath(const std::string &name);

/// Loads a library for the lifetime of the process. If that fails, throws
/// std::runtime_error with instructions; the message names the library as
/// `what` ("compiler").
void *openLibrary(const std::string &path, const char *what);

/// Whether the library at `address` (dl_phdr_info's dlpi_addr) was loaded by
/// `openLibrary`: directly, or as a dependency that wasn't loaded before.
bool isBroughtByOurs(uintptr_t address);

/// Returns the function `name` of `library`; throws std::runtime_error if this
/// version of the library doesn't have it.
void *findFunction(void *library, const char *name, const char *what);

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H
