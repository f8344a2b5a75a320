//===- lazy_work.h - Result of a traced collective --------------*- C++ -*-===//
//
// Waiting for a LazyWork only traces a wait, on which the readers of the
// outputs depend; the calling thread continues, unless it waits with a timeout.
//
//===----------------------------------------------------------------------===//

#ifndef TORCH_LTC_DISTRIBUTED_LAZY_WORK_H
#define TORCH_LTC_DISTRIBUTED_LAZY_WORK_H

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>

namespace torch_ltc {

class LazyWork final : public c10d::Work {
public:
  /// `finish` sets the values of `outputs`. `source` returns the rank that sent
  /// them.
  LazyWork(std::vector<at::Tensor> outputs, std::function<void()> finish,
           std::function<int()> source = nullptr);
  ~LazyWork() override;

  /// Runs the traced collectives and returns true: a caller that polls this in
  /// a loop would otherwise never see true.
  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  void blockCurrentStream() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

private:
  std::vector<at::Tensor> outputs;
  std::function<void()> finishOnce;
  std::function<int()> source;
};

} // namespace torch_ltc

#endif // TORCH_LTC_DISTRIBUTED_LAZY_WORK_H
