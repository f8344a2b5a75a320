//===- portable_trace.h - Traces for other compilers ------------*- C++ -*-===//

#ifndef TORCH_LTC_EVENTS_PORTABLE_TRACE_H
#define TORCH_LTC_EVENTS_PORTABLE_TRACE_H

namespace torch_ltc {

/// Between these calls, programs are traced for other compilers: with formulas
/// instead of PyTorch's kernels. Applies to the whole process, because backward
/// passes run on autograd's threads. The calls nest.
void enterPortableTrace();
void leavePortableTrace();
bool isPortableTrace();

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_PORTABLE_TRACE_H
