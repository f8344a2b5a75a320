//===- KernelLinker.h - From ELF objects to callable kernels --------------===//

#ifndef TORCH_LTC_RUNTIME_KERNELLINKER_H
#define TORCH_LTC_RUNTIME_KERNELLINKER_H

#include "executable.pb.h"

#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace llvm::orc {
class JITDylib;
}

namespace torch_ltc::runtime {

/// Signature of every kernel; see `Kernel.symbol` in executable.proto.
using KernelFunction = void (*)(void *const *buffers, int64_t begin,
                                int64_t end);

/// The linked kernels of one executable. The destructor unmaps their code.
class KernelLibrary {
public:
  /// Links the objects of `kernels`. Resolves calls to the C library, to libm,
  /// to libmvec's vector functions (`_ZGV...`) and to the half precision
  /// conversions that LLVM emits; any other undefined symbol is an error that
  /// names it.
  static llvm::Expected<std::unique_ptr<KernelLibrary>>
  link(const google::protobuf::RepeatedPtrField<Kernel> &kernels);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;

  KernelFunction function(size_t index) const { return functions[index]; }

private:
  KernelLibrary() = default;

  llvm::orc::JITDylib *library = nullptr;
  std::vector<KernelFunction> functions;
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_KERNELLINKER_H
