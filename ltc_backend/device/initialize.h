//===- initialize.h - Entry point of the library ----------------*- C++ -*-===//

#ifndef TORCH_LTC_DEVICE_INITIALIZE_H
#define TORCH_LTC_DEVICE_INITIALIZE_H

namespace torch_ltc {

/// Registers the device, the executor and the kernels with PyTorch. Idempotent
/// and thread-safe; loads neither MLIR nor the disk cache. Throws c10::Error if
/// another lazy backend has been initialized in this process.
void initialize();
bool isInitialized();
/// Whether the process was forked from one that had run steps.
bool isInBadFork();

/// If the traced ops include a collective, runs them and waits for them,
/// because other ranks may wait for the collective. Logs an error as a warning.
void finishCollectives();

/// Runs scheduled steps, cancels compilations and ends the background threads.
/// To be called before the interpreter exits.
void shutDown();

} // namespace torch_ltc

#endif // TORCH_LTC_DEVICE_INITIALIZE_H
