//===- MemoryCommands.cpp - Copies and zero fills -------------------------===//

#include "Parallel.h"
#include "PreparedCommand.h"

#include <cstring>

using namespace torch_ltc::runtime;

namespace {

/// Minimum number of bytes for which waking a second thread pays off. One
/// thread copies them in about 25 microseconds at 10 GB/s.
constexpr int64_t kBytesForThread = 256 << 10;
constexpr int64_t kCacheLine = 64;

class CopyCommand : public PreparedCommand {
public:
  CopyCommand(const CopyCall &call, int numThreads)
      : call(call),
        threads(threadsFor(call.bytes(), kBytesForThread, numThreads)) {}

  llvm::Error run(const RunContext &context) override {
    if (!call.bytes())
      return llvm::Error::success();
    const char *source = context.resolve(call.source());
    char *destination = context.resolve(call.destination());
    parallelFor(call.bytes(), threads, kCacheLine,
                [=](int64_t begin, int64_t end) {
                  std::memcpy(destination + begin, source + begin, end - begin);
                });
    return llvm::Error::success();
  }

  Team team() const override {
    return teamFor(threads, call.bytes(), kBytesForThread);
  }

private:
  const CopyCall &call;
  int threads;
};

class FillCommand : public PreparedCommand {
public:
  FillCommand(const FillCall &call, int numThreads)
      : call(call),
        threads(threadsFor(call.bytes(), kBytesForThread, numThreads)) {}

  llvm::Error run(const RunContext &context) override {
    if (!call.bytes())
      return llvm::Error::success();
    char *destination = context.resolve(call.destination());
    parallelFor(call.bytes(), threads, kCacheLine,
                [=](int64_t begin, int64_t end) {
                  std::memset(destination + begin, 0, end - begin);
                });
    return llvm::Error::success();
  }

  Team team() const override {
    return teamFor(threads, call.bytes(), kBytesForThread);
  }

private:
  const FillCall &call;
  int threads;
};

} // namespace

llvm::Expected<PreparedCommandPtr>
torch_ltc::runtime::prepareCopy(const Command &command,
                                const Preparation &preparation) {
  return std::make_unique<CopyCommand>(command.copy(), preparation.numThreads);
}

llvm::Expected<PreparedCommandPtr>
torch_ltc::runtime::prepareFill(const Command &command,
                                const Preparation &preparation) {
  return std::make_unique<FillCommand>(command.fill(), preparation.numThreads);
}
