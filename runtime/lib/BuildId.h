//===- BuildId.h - What tells two builds of a library apart -----*- C++ -*-===//

#ifndef TORCH_LTC_RUNTIME_BUILDID_H
#define TORCH_LTC_RUNTIME_BUILDID_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace torch_ltc::runtime {

/// The linker's build id of the ELF file at `path`, or a hash of its content
/// if it has none, hexadecimal; "none" if it can't be read. The file is
/// mapped, never loaded.
std::string buildIdOfFile(llvm::StringRef path);

/// The same of the library that this code is in.
std::string ownBuildId();

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_BUILDID_H
