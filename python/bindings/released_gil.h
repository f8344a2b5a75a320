//===- released_gil.h - A scope without the GIL -----------------*- C++ -*-===//

#ifndef TORCH_LTC_BINDINGS_RELEASED_GIL_H
#define TORCH_LTC_BINDINGS_RELEASED_GIL_H

#include "bindings.h"

namespace torch_ltc {

/// Releases the GIL for its lifetime. Also a guard for pybind11::call_guard.
///
/// pybind11 3.1's gil_scoped_release does the same, but aborts the process if a
/// daemon thread is in the scope while the interpreter finalizes: Python up to
/// 3.13 unwinds such a thread when it acquires the GIL, but no exception may
/// leave the destructor of gil_scoped_release.
class ReleasedGil {
public:
  ReleasedGil() : thread(PyEval_SaveThread()) {}
  ~ReleasedGil() noexcept(false) { PyEval_RestoreThread(thread); }
  ReleasedGil(const ReleasedGil &) = delete;
  ReleasedGil &operator=(const ReleasedGil &) = delete;

private:
  PyThreadState *thread;
};

} // namespace torch_ltc

#endif // TORCH_LTC_BINDINGS_RELEASED_GIL_H
