//===- lazy_work.cpp - Result of a traced collective ----------------------===//

#include "distributed/lazy_work.h"

#include "distributed/traced_collective.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <deque>

using namespace torch_ltc;

/// The number of later messages that a thread sends before this class waits for
/// a message whose sender dropped the Work without waiting. Without a wait, the
/// message's copy would never be released; an immediate wait could deadlock,
/// because the receiver may send a message before it receives this one.
static constexpr size_t kMaxUnwaited = 64;

static void finishLater(std::function<void()> finish) {
  thread_local std::deque<std::function<void()>> unwaited;
  unwaited.push_back(std::move(finish));
  if (unwaited.size() <= kMaxUnwaited)
    return;
  finish = std::move(unwaited.front());
  unwaited.pop_front();
  finish();
}

LazyWork::LazyWork(std::vector<at::Tensor> outputs,
                   std::function<void()> finish, std::function<int()> source)
    : outputs(std::move(outputs)), finishOnce(std::move(finish)),
      source(std::move(source)) {}

// A caller that drops the Work without waiting (DDP does so with
// `delay_all_reduce_named_params`, torch 2.13) finds the results in the outputs
// later, so their readers must wait.
LazyWork::~LazyWork() {
  bool isReadable =
      std::any_of(outputs.begin(), outputs.end(), [](const at::Tensor &output) {
        return output.use_count() > 1;
      });
  if (!finishOnce || (!isReadable && !outputs.empty()))
    return;
  try {
    if (isReadable)
      synchronize();
    else
      finishLater(std::move(finishOnce));
  } catch (const std::exception &error) {
    TORCH_WARN("The results of a collective that nothing has waited for are "
               "lost: ",
               error.what());
  }
}

void LazyWork::synchronize() {
  if (auto finish = std::exchange(finishOnce, nullptr))
    finish();
}

bool LazyWork::wait(std::chrono::milliseconds timeout) {
  synchronize();
  if (timeout != kNoTimeout)
    waitForTracedCollectives(timeout);
  return true;
}

void LazyWork::blockCurrentStream() { synchronize(); }

bool LazyWork::isCompleted() {
  synchronize();
  runTracedCollectives("Work.is_completed");
  return true;
}

bool LazyWork::isSuccess() const { return true; }

std::exception_ptr LazyWork::exception() const { return nullptr; }

int LazyWork::sourceRank() const {
  TORCH_CHECK(source, "sourceRank() may only be called on work objects that "
                      "correspond to a recv or recv-from-any call.");
  return source();
}

std::vector<at::Tensor> LazyWork::result() {
  synchronize();
  return outputs;
}

c10::intrusive_ptr<c10::ivalue::Future> LazyWork::getFuture() {
  synchronize();
  auto future = c10::make_intrusive<c10::ivalue::Future>(
      c10::ListType::create(c10::TensorType::get()),
      std::vector<c10::Device>{{c10::DeviceType::Lazy, 0}});
  future->markCompleted(c10::IValue(outputs));
  return future;
}
