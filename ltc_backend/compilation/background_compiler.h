//===- background_compiler.h - Compilations beside the steps ----*- C++ -*-===//
//
// Tier `auto`: a thread that makes programs while their steps run op by op with
// torch's CPU kernels. It yields to the threads that compute.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_BACKGROUND_COMPILER_H
#define TORCH_LTC_COMPILATION_BACKGROUND_COMPILER_H

#include <functional>

namespace torch_ltc {

/// Runs `job`, which doesn't throw, after those given before.
void compileInBackground(std::function<void()> job);

/// Waits until nothing is left to compile.
void waitForBackgroundCompilations();

/// Drops what waits and ends the thread after a running job, which its owner
/// has cancelled.
void shutDownBackgroundCompiler();

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_BACKGROUND_COMPILER_H
