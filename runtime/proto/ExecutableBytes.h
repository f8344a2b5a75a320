//===- ExecutableBytes.h - An executable in its stored form -----*- C++ -*-===//
//
// The stored form is the message's bytes, followed by the field `checksum`. A
// correct checksum shows that the parts that a verifier can't check (the code
// of a kernel and its operand descriptions) are unmodified.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_EXECUTABLEBYTES_H
#define TORCH_LTC_RUNTIME_EXECUTABLEBYTES_H

#include "executable.pb.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/xxhash.h"

#include <string>

namespace torch_ltc::runtime {

/// Tag of field 15, wire type fixed64.
inline constexpr char kChecksumTag = 15 << 3 | 1;
inline constexpr size_t kChecksumBytes = 1 + sizeof(uint64_t);

inline std::string serializeExecutable(const Executable &executable) {
  std::string bytes = executable.SerializeAsString();
  char checksum[sizeof(uint64_t)];
  llvm::support::endian::write64le(checksum, llvm::xxh3_64bits(bytes));
  bytes += kChecksumTag;
  return bytes.append(checksum, sizeof(checksum));
}

inline bool hasRightChecksum(llvm::StringRef bytes) {
  if (bytes.size() < kChecksumBytes ||
      bytes[bytes.size() - kChecksumBytes] != kChecksumTag)
    return false;
  return llvm::support::endian::read64le(bytes.end() - sizeof(uint64_t)) ==
         llvm::xxh3_64bits(bytes.drop_back(kChecksumBytes));
}

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_EXECUTABLEBYTES_H
