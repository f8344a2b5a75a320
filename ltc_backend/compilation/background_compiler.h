//===- background_compiler.h - Compilation in the background ----*- C++ -*-===//
//
// In tier `auto`, a background thread compiles programs while their steps run
// op by op with torch's CPU kernels. Its priority is lower than that of the
// threads that compute.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_COMPILATION_BACKGROUND_COMPILER_H
#define TORCH_LTC_COMPILATION_BACKGROUND_COMPILER_H

#include <functional>

namespace torch_ltc {

/// Runs `job` on the background thread after earlier jobs. `job` must not
/// throw.
void compileInBackground(std::function<void()> job);

bool isCompilingInBackground();

/// Waits until all jobs are done.
void waitForBackgroundCompilations();

/// Drops waiting jobs and ends the thread after the running job, which the
/// caller must have cancelled.
void shutDownBackgroundCompiler();

} // namespace torch_ltc

#endif // TORCH_LTC_COMPILATION_BACKGROUND_COMPILER_H
