//===- initialize.h - Entry point of the library ----------------*- C++ -*-===//

#ifndef TORCH_LTC_DEVICE_INITIALIZE_H
#define TORCH_LTC_DEVICE_INITIALIZE_H

namespace torch_ltc {

/// Registers the device, the executor and the kernels with PyTorch. Idempotent
/// and thread-safe; loads neither MLIR nor the disk cache. Throws c10::Error
/// if another lazy backend has been initialised in this process.
void initialize();
bool isInitialized();

/// Runs what is traced up to the last collective: other ranks may wait for it.
void finishCollectives();

/// Runs what is scheduled and ends the worker thread: before the interpreter
/// goes away.
void shutDown();

} // namespace torch_ltc

#endif // TORCH_LTC_DEVICE_INITIALIZE_H
