//===- StepQueueTest.cpp - Order and errors of scheduled steps ------------===//

#include "execution/step_queue.h"

#include "config/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <thread>

using namespace torch_ltc;

namespace {

/// A program with one output, which a function writes.
class FunctionProgram final : public Program {
public:
  using Function = std::function<void(float *parameter, float *output)>;

  explicit FunctionProgram(Function function) : function(std::move(function)) {
    outputs.resize(1);
    name = std::string(32, '0');
  }
  void run(c10::ArrayRef<void *> parameters, c10::ArrayRef<DynamicScalar>,
           c10::ArrayRef<void *> outputs, const RunConditions &) override {
    function(parameters.empty() ? nullptr : static_cast<float *>(parameters[0]),
             static_cast<float *>(outputs[0]));
  }

private:
  Function function;
};

ScheduledStep makeStep(std::shared_ptr<FunctionProgram> program) {
  ScheduledStep step;
  step.program = std::move(program);
  step.outputs.push_back(Buffer::deferred(sizeof(float)));
  return step;
}

ScheduledStep makeStep(FunctionProgram::Function function) {
  return makeStep(std::make_shared<FunctionProgram>(std::move(function)));
}

float contents(const BufferPtr &buffer) {
  return *static_cast<const float *>(buffer->data());
}

class StepQueueTest : public testing::Test {
protected:
  void TearDown() override { waitForScheduledSteps(); }
};

TEST_F(StepQueueTest, RunsInTheOrderOfScheduling) {
  std::vector<int> order; // only the worker writes it
  for (int i = 0; i < 20; ++i)
    scheduleStep(
        makeStep([&order, i](float *, float *) { order.push_back(i); }));
  EXPECT_EQ(waitForScheduledSteps(), nullptr);
  ASSERT_EQ(order.size(), 20u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(StepQueueTest, CallerContinues) {
  std::latch mayEnd(1);
  ScheduledStep step = makeStep([&](float *, float *out) {
    mayEnd.wait();
    *out = 3;
  });
  CompletionPtr completion = step.completion;
  BufferPtr output = step.outputs[0];
  scheduleStep(std::move(step));
  EXPECT_FALSE(completion->isDone());
  mayEnd.count_down();
  EXPECT_EQ(completion->wait(), nullptr);
  EXPECT_EQ(contents(output), 3);
}

TEST_F(StepQueueTest, IsFullAtTheLimit) {
  std::latch mayEnd(1);
  int64_t most = config().max_steps_in_flight.get();
  for (int64_t i = 0; i < most; ++i) {
    EXPECT_FALSE(isQueueFull());
    scheduleStep(makeStep([&](float *, float *) { mayEnd.wait(); }));
  }
  EXPECT_TRUE(isQueueFull());
  mayEnd.count_down();
  waitForRoomInQueue();
  EXPECT_FALSE(isQueueFull());
}

TEST_F(StepQueueTest, ErrorOfAStepReachesItsReaders) {
  ScheduledStep failing =
      makeStep([](float *, float *) { throw std::runtime_error("no more"); });
  CompletionPtr failed = failing.completion;
  ScheduledStep reader = makeStep([](float *, float *out) { *out = 1; });
  reader.parameters.push_back(failing.outputs[0]);
  reader.producers.push_back(failed);
  CompletionPtr read = reader.completion;
  ScheduledStep unrelated = makeStep([](float *, float *out) { *out = 2; });
  CompletionPtr other = unrelated.completion;
  BufferPtr output = unrelated.outputs[0];
  scheduleStep(std::move(failing));
  scheduleStep(std::move(reader));
  scheduleStep(std::move(unrelated));

  ASSERT_NE(failed->wait(), nullptr);
  EXPECT_EQ(read->wait(), failed->wait()) << "the same error, not another one";
  EXPECT_EQ(other->wait(), nullptr);
  EXPECT_EQ(contents(output), 2);
  EXPECT_NE(failed->wait()->report().find("no more"), std::string::npos);
}

TEST_F(StepQueueTest, WaitingReturnsTheFirstUnraisedErrorOnce) {
  for (const char *text : {"first", "second"})
    scheduleStep(
        makeStep([text](float *, float *) { throw std::runtime_error(text); }));
  StepErrorPtr error = waitForScheduledSteps();
  ASSERT_NE(error, nullptr);
  EXPECT_NE(error->report().find("first"), std::string::npos);
  EXPECT_EQ(waitForScheduledSteps(), nullptr);
}

TEST_F(StepQueueTest, UpdateOfAFailedStepKeepsTheOldValue) {
  BufferPtr old = Buffer::allocate(sizeof(float));
  *static_cast<float *>(old->data()) = 5;
  auto program = std::make_shared<FunctionProgram>(
      [](float *, float *) { throw std::runtime_error("out of range"); });
  program->outputs[0].updatedParameter = 0;
  ScheduledStep step = makeStep(program);
  step.parameters.push_back(old);
  step.producers.push_back(nullptr);
  CompletionPtr results = step.completion, updates = step.updatesCompletion;
  BufferPtr output = step.outputs[0];
  scheduleStep(std::move(step));

  EXPECT_NE(results->wait(), nullptr);
  EXPECT_EQ(updates->waitFor(output.get()), nullptr)
      << "reading the tensor isn't an error";
  EXPECT_EQ(contents(output), 5);
  StepErrorPtr reason = updates->oldValueError(output.get());
  ASSERT_NE(reason, nullptr);
  reason->report();
  EXPECT_EQ(updates->oldValueError(output.get()), nullptr) << "raised once";
}

TEST_F(StepQueueTest, OverwrittenParameterHasNoOldValue) {
  BufferPtr old = Buffer::allocate(sizeof(float));
  auto program = std::make_shared<FunctionProgram>(
      [](float *, float *) { throw std::runtime_error("too late"); });
  program->outputs[0] = {.place = OutputPlace::Donated, .updatedParameter = 0};
  program->numDonated = 1;
  ScheduledStep step = makeStep(program);
  step.parameters.push_back(old);
  step.producers.push_back(nullptr);
  step.outputs[0] = old;
  CompletionPtr updates = step.updatesCompletion;
  scheduleStep(std::move(step));
  EXPECT_NE(updates->wait(), nullptr);
  ASSERT_NE(waitForScheduledSteps(), nullptr);
}

TEST_F(StepQueueTest, ThreadsScheduleIndependently) {
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i)
        scheduleStep(makeStep([&](float *, float *) { ++sum; }));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(waitForScheduledSteps(), nullptr);
  EXPECT_EQ(sum, 100);
}

ScheduledStep makeStep(int64_t chain, FunctionProgram::Function function) {
  ScheduledStep step = makeStep(std::move(function));
  step.chain = chain;
  return step;
}

TEST_F(StepQueueTest, PausedChainDoesNotBlockOthers) {
  std::latch hasPaused(1), mayEnd(1);
  ScheduledStep waiting = makeStep(1, [&](float *, float *) {
    StepPause pause;
    hasPaused.count_down();
    mayEnd.wait();
  });
  CompletionPtr paused = waiting.completion;
  scheduleStep(std::move(waiting));
  hasPaused.wait();
  ScheduledStep step = makeStep(2, [](float *, float *) {});
  CompletionPtr completion = step.completion;
  scheduleStep(std::move(step));
  EXPECT_EQ(completion->wait(), nullptr);
  EXPECT_FALSE(paused->isDone());
  mayEnd.count_down();
  EXPECT_EQ(waitForScheduledSteps(), nullptr);
}

TEST_F(StepQueueTest, ChainsComputeOneAtATime) {
  std::atomic<int> running{0}, most{0};
  for (int i = 0; i < 60; ++i)
    scheduleStep(makeStep(1 + i % 3, [&](float *, float *) {
      most = std::max(most.load(), ++running);
      --running;
      StepPause pause;
    }));
  EXPECT_EQ(waitForScheduledSteps(), nullptr);
  EXPECT_EQ(most, 1);
}

TEST_F(StepQueueTest, StepWaitsForReadersOfWhatItOverwrites) {
  BufferPtr shared = Buffer::allocate(sizeof(float));
  *static_cast<float *>(shared->data()) = 5;
  std::latch hasPaused(1), mayEnd(1);
  ScheduledStep reader = makeStep(1, [&](float *parameter, float *output) {
    {
      StepPause pause;
      hasPaused.count_down();
      mayEnd.wait();
    }
    *output = *parameter;
  });
  reader.parameters.push_back(shared);
  reader.producers.push_back(nullptr);
  BufferPtr read = reader.outputs[0];
  scheduleStep(std::move(reader));
  hasPaused.wait();

  auto program = std::make_shared<FunctionProgram>(
      [](float *, float *output) { *output = 7; });
  program->outputs[0] = {.place = OutputPlace::Donated, .updatedParameter = 0};
  program->numDonated = 1;
  ScheduledStep writer = makeStep(program);
  writer.chain = 2;
  writer.parameters.push_back(shared);
  writer.producers.push_back(nullptr);
  writer.outputs[0] = shared;
  CompletionPtr written = writer.completion;
  scheduleStep(std::move(writer));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(written->isDone());
  mayEnd.count_down();
  EXPECT_EQ(waitForScheduledSteps(), nullptr);
  EXPECT_EQ(contents(read), 5);
  EXPECT_EQ(contents(shared), 7);
}

TEST_F(StepQueueTest, ProgramWhoseRunIsPausedIsNotRunAgain) {
  std::atomic<int> runs{0};
  std::latch hasPaused(1), mayEnd(1);
  auto program = std::make_shared<FunctionProgram>([&](float *, float *) {
    if (runs++)
      return;
    StepPause pause;
    hasPaused.count_down();
    mayEnd.wait();
  });
  for (int64_t chain : {1, 2}) {
    ScheduledStep step = makeStep(program);
    step.chain = chain;
    scheduleStep(std::move(step));
    hasPaused.wait();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(runs, 1);
  mayEnd.count_down();
  EXPECT_EQ(waitForScheduledSteps(), nullptr);
  EXPECT_EQ(runs, 2);
}

} // namespace
