//===- shared_library.h - Loads torch_ltc's libraries -----------*- C++ -*-===//

#ifndef TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H
#define TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H

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

/// Releases the resident pages of the libraries that `openLibrary` has loaded
/// and of the dependencies that it has brought: MLIR, LLVM, and oneDNN, which
/// generates its kernels at their first use. The pages are backed by files, and
/// are read again on demand.
void releaseLibraryPages();

/// Releases the pages of this library. To be called after the registrations of
/// `import torch`, which read most of its pages: a process that never has a
/// lazy tensor doesn't need them again.
void releaseOwnPages();

/// Returns the function `name` of `library`; throws std::runtime_error if this
/// version of the library doesn't have it.
void *findFunction(void *library, const char *name, const char *what);

} // namespace torch_ltc

#endif // TORCH_LTC_PROGRAMS_SHARED_LIBRARY_H
