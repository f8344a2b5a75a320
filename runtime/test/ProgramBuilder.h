//===- ProgramBuilder.h - Executables for the tests -----------------------===//

#ifndef TORCH_LTC_RUNTIME_TEST_PROGRAMBUILDER_H
#define TORCH_LTC_RUNTIME_TEST_PROGRAMBUILDER_H

#include "executable.pb.h"
#include "torch_ltc-c/runtime.h"

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace torch_ltc::runtime::test {

/// A tensor in host memory whose elements are read and written as double.
struct HostTensor {
  HostTensor() = default;
  HostTensor(DType dtype, std::vector<int64_t> sizes);

  DType dtype = FLOAT32;
  std::vector<int64_t> sizes;
  std::vector<char> bytes;

  int64_t numElements() const;
  double get(int64_t index) const;
  void set(int64_t index, double value);
  /// Fills the tensor with small integers, whose sums are exact in every dtype.
  void fillRandom(std::mt19937 &generator, int largest = 3);
};

/// Builds one executable message.
class ProgramBuilder {
public:
  ProgramBuilder();

  Executable message;

  // Each returns the index of the new buffer.
  uint32_t parameter(const HostTensor &tensor, const std::string &name = "");
  uint32_t output(const HostTensor &tensor);
  uint32_t scalar(ScalarKind kind);
  uint32_t constant(const std::string &bytes);
  /// Adds a buffer of `bytes` bytes at the end of the arena.
  uint32_t arena(uint64_t bytes);

  /// Adds a kernel; returns its index.
  uint32_t kernel(const std::string &symbol, const std::string &object);
  KernelCall *callKernel(uint32_t kernel, const std::vector<uint32_t> &buffers,
                         int64_t tripCount, int64_t grain);
  MatmulCall *matmul();
  ConvolutionCall *convolution();
  CopyCall *copy(uint32_t source, uint32_t destination, uint64_t bytes);
  FillCall *fill(uint32_t destination, uint64_t bytes);
  BoundsCheck *boundsCheck(uint32_t indices, const HostTensor &tensor,
                           int64_t lower, int64_t upper);
};

void setRef(BufferRef *ref, uint32_t buffer, uint64_t offset = 0);

/// Loads an executable message. Returns null and sets `error` on failure.
LtcExecutable loadProgram(const Executable &message, std::string *error);

/// Fills an idle arena of at least `bytes` bytes with 0xff (a NaN in every
/// float type, -1 in integers), so that the next run doesn't get zeros: fresh
/// memory is zero, which hides a command that reads memory before it is
/// written.
void poisonArenas(size_t bytes = size_t(8) << 20);

/// Loads and owns an executable; the test fails if it can't be loaded.
class Program {
public:
  explicit Program(const Executable &message);
  ~Program();
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  /// Runs the executable; returns "" or the error message.
  std::string run(const std::vector<void *> &parameters,
                  const std::vector<void *> &outputs, int numThreads = 2,
                  const std::vector<LtcScalar> &scalars = {},
                  int64_t *nanoseconds = nullptr,
                  const uint64_t *contents = nullptr);

  LtcExecutable executable;
};

} // namespace torch_ltc::runtime::test

#endif // TORCH_LTC_RUNTIME_TEST_PROGRAMBUILDER_H
