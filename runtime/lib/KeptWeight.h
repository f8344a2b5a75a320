//===- KeptWeight.h - A weight in a library's order -------------*- C++ -*-===//
//
// Libraries want a weight in an order of their own. Bringing it into that order
// takes a third of a small batch's inference, and is the same work at each run
// as long as nobody trains the weight. A weight that was the same at two runs
// is kept in that order; one that changes at each run never is.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_RUNTIME_KEPTWEIGHT_H
#define TORCH_LTC_RUNTIME_KEPTWEIGHT_H

#include "Arena.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace torch_ltc::runtime {

/// Contents are numbers as in `LtcRunArguments::parameter_contents`.
class KeptWeight {
public:
  KeptWeight() = default;
  KeptWeight(KeptWeight &&other) noexcept;
  KeptWeight &operator=(KeptWeight &&) = delete;
  ~KeptWeight();

  /// The weight in the library's order, or null.
  char *find(uint64_t contents) const {
    return memory && contents == keptContents ? memory->data() : nullptr;
  }

  /// Memory for `bytes` that the caller fills and then `keep`s, or null: these
  /// contents are new or unknown, or there is no memory. To be called at each
  /// run that didn't `find` them; frees what was kept of others.
  char *place(uint64_t contents, size_t bytes);

  /// `find` finds what was written to `place`.
  void keep(uint64_t contents) { keptContents = contents; }

  /// Of all that are kept in the process.
  static size_t totalBytes();

private:
  void release();

  std::unique_ptr<Arena> memory;
  uint64_t keptContents = 0;
  uint64_t lastContents = 0;
};

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_KEPTWEIGHT_H
