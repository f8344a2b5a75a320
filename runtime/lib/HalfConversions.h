//===- HalfConversions.h - float16 and bfloat16 routines for kernels ------===//
//
// LLVM calls these compiler-rt routines if the CPU has no instruction for a
// conversion. The libgcc of Debian 12 (GCC 12) lacks the routines for bfloat16.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_HALFCONVERSIONS_H
#define TORCH_LTC_RUNTIME_HALFCONVERSIONS_H

#include "llvm/ADT/StringRef.h"

namespace torch_ltc::runtime {

/// Address of the conversion routine `name` ("__truncsfbf2", ...), or null.
void *halfConversion(llvm::StringRef name);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_HALFCONVERSIONS_H
