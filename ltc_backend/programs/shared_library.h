//===- shared_library.h - Our own libraries, loaded on demand ---*- C++ -*-===//

#ifndef TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H
#define TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H

#include <cstdint>
#include <string>

namespace torch_ltc {

/// The file of this library.
std::string backendLibraryPath();

/// The library of that name in the folder of this one.
std::string siblingLibraryPath(const std::string &name);

/// Loads a library for the lifetime of the process. `what` ("compiler") is its
/// name in the std::runtime_error, which contains instructions, if it can't be
/// loaded.
void *openLibrary(const std::string &path, const char *what);

/// Whether the library at `address` (dl_phdr_info's dlpi_addr) was loaded by
/// `openLibrary`: directly, or as a dependency that wasn't loaded before.
bool isBroughtByOurs(uintptr_t address);

/// A function of it; throws std::runtime_error if the library's version doesn't
/// have it.
void *findFunction(void *library, const char *name, const char *what);

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H
