//===- unraised_errors.h - Errors that no read has raised -------*- C++ -*-===//
//
// An op's error is raised by the read of a result. A process may end without
// such a read. Eager raises the error at the op, so the process ends with exit
// code 1, on which launchers (torchrun, Slurm) rely to restart or end a job.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_EVENTS_UNRAISED_ERRORS_H
#define TORCH_LTC_EVENTS_UNRAISED_ERRORS_H

#include <string>

namespace torch_ltc {

/// Must be called before the first step. Functions that libraries registered
/// earlier to run at the end of the process don't run if this process ends with
/// an unraised error.
void watchExitCode();

/// Logs an error that is noticed while the process ends. If the process would
/// end with exit code 0, it ends with 1.
void reportUnraisedError(const std::string &sentence);

} // namespace torch_ltc

#endif // TORCH_LTC_EVENTS_UNRAISED_ERRORS_H
