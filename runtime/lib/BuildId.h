//===- BuildId.h - Identifiers of library builds ----------------*- C++ -*-===//

#ifndef TORCH_LTC_RUNTIME_BUILDID_H
#define TORCH_LTC_RUNTIME_BUILDID_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace torch_ltc::runtime {

/// The linker's build id of the ELF file at `path`, or a hash of the file's
/// contents if it has no build id, in hexadecimal; "none" if the file can't be
/// read. The file is mapped, never loaded.
std::string buildIdOfFile(llvm::StringRef path);

/// The build id of the library that contains this code.
std::string ownBuildId();

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_BUILDID_H
