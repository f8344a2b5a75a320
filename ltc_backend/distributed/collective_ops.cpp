//===- collective_ops.cpp - Collectives as ops of programs ----------------===//

#include "distributed/collective_ops.h"

#include "config/config.h"
#include "distributed/backend_call.h"
#include "distributed/collective_faults.h"
#include "distributed/groups.h"
#include "execution/step_queue.h"
#include "programs/host_calls.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <thread>

using namespace torch_ltc;
using at::IntArrayRef;
using at::Tensor;

namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// Number of bits for a collective's number in its chain.
constexpr int kBitsInChain = 40;

struct Begun {
  WorkPtr work;
  Tensor input; // if the backend still reads it
  Tensor output;
  CollectiveName name;
  bool isFromAnyRank = false;
  /// The thread whose running program owns the memory of the output.
  std::optional<std::thread::id> borrower = std::nullopt;
};

/// The collectives of this process, by number.
class Collectives {
public:
  int64_t last(int64_t chain) {
    std::scoped_lock lock(mutex);
    return lastOf(chain);
  }

  /// Claims `number`. Returns false if it has been used: only the first run of
  /// a collective has an effect.
  bool take(int64_t number) {
    std::scoped_lock lock(mutex);
    int64_t &last = lastOf(number >> kBitsInChain);
    if (number <= last)
      return false;
    last = number;
    return true;
  }

  void add(int64_t number, Begun collective) {
    std::scoped_lock lock(mutex);
    begun.emplace(number, std::move(collective));
  }

  /// Removes and returns the collectives that use the memory of the program
  /// that the calling thread runs.
  std::vector<Begun> removeBorrowing() {
    std::scoped_lock lock(mutex);
    std::vector<Begun> borrowing;
    for (auto it = begun.begin(); it != begun.end();) {
      if (it->second.borrower == std::this_thread::get_id()) {
        borrowing.push_back(std::move(it->second));
        it = begun.erase(it);
      } else {
        ++it;
      }
    }
    return borrowing;
  }

  std::optional<Begun> remove(int64_t number) {
    std::scoped_lock lock(mutex);
    auto found = begun.find(number);
    if (found == begun.end())
      return std::nullopt;
    Begun collective = std::move(found->second);
    begun.erase(found);
    return collective;
  }

  /// Keeps the output if an option runs each step twice: the second run reads
  /// the output instead of running the collective again.
  void keep(int64_t number, const Tensor &output) {
    if (!config().lockstep.get() && !config().detect_nan.get())
      return;
    std::scoped_lock lock(mutex);
    outputs.insert_or_assign(number, output.clone());
    constexpr size_t kMaxKept = 1024;
    while (outputs.size() > kMaxKept)
      outputs.erase(outputs.begin());
  }

  Tensor kept(int64_t number) {
    std::scoped_lock lock(mutex);
    auto found = outputs.find(number);
    TORCH_CHECK(found != outputs.end(), "the collective with number ", number,
                " of this process has run, and its result isn't kept");
    return found->second;
  }

  void setSource(int64_t number, int rank) {
    std::scoped_lock lock(mutex);
    sources[number] = rank;
  }

  int source(int64_t number) {
    std::scoped_lock lock(mutex);
    auto found = sources.find(number);
    return found == sources.end() ? -1 : found->second;
  }

private:
  int64_t &lastOf(int64_t chain) {
    return lastNumbers.try_emplace(chain, chain << kBitsInChain).first->second;
  }

  std::mutex mutex;
  std::map<int64_t, int64_t> lastNumbers; // by chain
  std::map<int64_t, Begun> begun;
  std::map<int64_t, Tensor> outputs;
  std::map<int64_t, int> sources; // of receive_any
};

Collectives &collectives() {
  static auto *instance = new Collectives;
  return *instance;
}

Begun beginCollective(const BackendCall &call, int64_t number,
                      const Tensor &input, const Tensor &output) {
  Begun begun{nullptr, input, output,
              nameCollective(call, number, input, output),
              call.kind == "receive_any"};
  checkRanksAgree(begun.name);
  beginNamed(begun.name, [&] { begun.work = begin(call, input, output); });
  return begun;
}

void finish(int64_t number, const Begun &collective) {
  waitNamed(collective.name, *collective.work);
  if (collective.isFromAnyRank)
    collectives().setSource(number, collective.work->sourceRank());
}

/// Whether the backend reads the input after `begin` has returned.
bool readsInputLater(std::string_view kind) {
  return kind != "all_reduce" && kind != "reduce" && kind != "broadcast";
}

void runCollective(const Tensor &order, const Tensor &input,
                   std::string_view kind, int64_t group, IntArrayRef numbers,
                   const Tensor &newOrder, const Tensor &output) {
  int64_t number = order.item<int64_t>() + 1;
  newOrder.fill_(number);
  if (!collectives().take(number)) {
    output.copy_(collectives().kept(number));
    return;
  }
  if (kind == "await") {
    int64_t awaited = input.item<int64_t>();
    if (std::optional<Begun> begun = collectives().remove(awaited))
      finish(awaited, *begun);
    collectives().keep(number, output);
    return;
  }
  finish(number,
         beginCollective({kind, group, numbers}, number, input, output));
  collectives().keep(number, output);
}

/// Runs op `collective` with the output directly in the program's buffer, which
/// saves a copy.
void hostCollective(const torch::jit::Stack &arguments,
                    at::TensorList outputs) {
  runCollective(arguments[0].toTensor(), arguments[1].toTensor(),
                arguments[2].toStringView(), arguments[3].toInt(),
                arguments[4].toIntVector(), outputs[0], outputs[1]);
}

/// Begins a collective whose output is in the program's memory. The backend
/// uses that memory until `hostFinish` or, after a failed run,
/// `finishBorrowing` has waited for the collective.
void hostBegin(const torch::jit::Stack &arguments, at::TensorList outputs) {
  int64_t number = arguments[0].toTensor().item<int64_t>() + 1;
  outputs[0].fill_(number);
  if (!collectives().take(number))
    return;
  std::vector<int64_t> numbers = arguments[4].toIntVector();
  BackendCall call{arguments[2].toStringView(), arguments[3].toInt(), numbers};
  Begun begun =
      beginCollective(call, number, arguments[1].toTensor(), outputs[1]);
  begun.borrower = std::this_thread::get_id();
  collectives().add(number, std::move(begun));
}

void hostFinish(const torch::jit::Stack &arguments, at::TensorList outputs) {
  int64_t number = arguments[0].toTensor().item<int64_t>();
  const Tensor &output = outputs[0];
  std::optional<Begun> begun = collectives().remove(number);
  if (!begun) {
    output.copy_(collectives().kept(number));
    return;
  }
  finish(number, *begun);
  if (output.data_ptr() != begun->output.data_ptr())
    output.copy_(begun->output);
  collectives().keep(number, output);
}

/// Waits for the collectives that use the memory of a failed run, because that
/// memory is about to be released.
void finishBorrowing() {
  StepPause pause;
  for (const Begun &begun : collectives().removeBorrowing())
    try {
      begun.work->wait();
    } catch (const std::exception &) {
      // The run's own error is raised instead.
    }
}

std::tuple<Tensor, Tensor> collective(const Tensor &order, const Tensor &input,
                                      c10::string_view kind, int64_t group,
                                      IntArrayRef numbers, IntArrayRef size) {
  Tensor newOrder = at::empty_like(order);
  Tensor output = at::empty(size, input.options());
  runCollective(order, input, kind, group, numbers, newOrder, output);
  return {newOrder, output};
}

Tensor collectiveStart(const Tensor &order, const Tensor &input,
                       c10::string_view kind, int64_t group,
                       IntArrayRef numbers, IntArrayRef size) {
  int64_t number = order.item<int64_t>() + 1;
  if (collectives().take(number)) {
    // Copies an input that the backend reads later: the program may reuse the
    // input's memory for another value once the command has ended.
    Tensor read = readsInputLater(kind) ? input.clone() : input;
    Begun begun = beginCollective({kind, group, numbers}, number, read,
                                  at::empty(size, input.options()));
    if (!readsInputLater(kind))
      begun.input = Tensor();
    collectives().add(number, std::move(begun));
  }
  return at::full_like(order, number);
}

Tensor collectiveWait(const Tensor &, const Tensor &started, IntArrayRef,
                      int64_t) {
  int64_t number = started.item<int64_t>();
  std::optional<Begun> begun = collectives().remove(number);
  if (!begun)
    return collectives().kept(number).clone();
  finish(number, *begun);
  collectives().keep(number, begun->output);
  return begun->output;
}

std::tuple<Tensor, Tensor> collectiveMeta(const Tensor &order,
                                          const Tensor &input, c10::string_view,
                                          int64_t, IntArrayRef,
                                          IntArrayRef size) {
  return {at::empty_like(order), at::empty(size, input.options())};
}

Tensor collectiveStartMeta(const Tensor &order, const Tensor &,
                           c10::string_view, int64_t, IntArrayRef,
                           IntArrayRef) {
  return at::empty_like(order);
}

Tensor collectiveWaitMeta(const Tensor &order, const Tensor &, IntArrayRef size,
                          int64_t dtype) {
  return at::empty(size, order.options().dtype(at::ScalarType(dtype)));
}

TORCH_LIBRARY_FRAGMENT(torch_ltc, library) {
  library.def("collective(Tensor order, Tensor input, str kind, int group, "
              "int[] numbers, int[] size) -> (Tensor, Tensor)");
  library.def("collective_start(Tensor order, Tensor input, str kind, int "
              "group, int[] numbers, int[] size) -> Tensor");
  library.def("collective_wait(Tensor order, Tensor started, int[] size, int "
              "dtype) -> Tensor");
  // Only compiled programs contain these two ops (pass OverlapCollectives).
  library.def("collective_begin(Tensor order, Tensor input, str kind, int "
              "group, int[] numbers, int[] size) -> (Tensor, Tensor)");
  library.def("collective_finish(Tensor started, Tensor? input, Tensor output) "
              "-> Tensor");
  auto onCpu = c10::DispatchKey::CPU, onMeta = c10::DispatchKey::Meta;
  library.impl("collective", torch::dispatch(onCpu, TORCH_FN(collective)));
  library.impl("collective_start",
               torch::dispatch(onCpu, TORCH_FN(collectiveStart)));
  library.impl("collective_wait",
               torch::dispatch(onCpu, TORCH_FN(collectiveWait)));
  library.impl("collective", torch::dispatch(onMeta, TORCH_FN(collectiveMeta)));
  library.impl("collective_start",
               torch::dispatch(onMeta, TORCH_FN(collectiveStartMeta)));
  library.impl("collective_wait",
               torch::dispatch(onMeta, TORCH_FN(collectiveWaitMeta)));
}

} // namespace

int64_t torch_ltc::lastCollective(int64_t chain) {
  return collectives().last(chain);
}

int torch_ltc::sourceOfCollective(int64_t number) {
  return collectives().source(number);
}

void torch_ltc::registerHostCollective() {
  setHostKernel("torch_ltc::collective", hostCollective);
  setHostKernel("torch_ltc::collective_begin", hostBegin);
  setHostKernel("torch_ltc::collective_finish", hostFinish);
  setAfterFailure(finishBorrowing);
}
