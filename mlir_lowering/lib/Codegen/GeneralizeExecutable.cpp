//===- GeneralizeExecutable.cpp - Numbers of a general form ---------------===//

#include "GeneralizeExecutable.h"
#include "ExecutableNumbers.h"
#include "NumberCodes.h"

#include "torch_ltc/Kernels/KernelSchedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <limits>
#include <set>

using namespace mlir::torch_ltc;
using llvm::ArrayRef;
namespace runtime = ::torch_ltc::runtime;

namespace {

/// The numbers of a general form, without duplicate codes.
class NumberTable {
public:
  explicit NumberTable(runtime::GeneralForm &form) : form(form) {}

  unsigned add(const NumberCode &code) {
    auto [entry, isNew] = indices.try_emplace(code, form.numbers_size());
    if (isNew)
      form.add_numbers()->mutable_code()->Add(code.begin(), code.end());
    return entry->second;
  }

private:
  runtime::GeneralForm &form;
  std::map<NumberCode, unsigned> indices;
};

/// Serializes an executable without its numbers, names and kernels.
std::string structureOf(runtime::Executable executable) {
  runtime::forEachNumber(executable, [](int64_t &number) { number = 0; });
  executable.set_arena_bytes(0);
  executable.clear_kernels();
  for (runtime::Buffer &buffer : *executable.mutable_buffers())
    if (buffer.has_arena_offset())
      buffer.set_arena_offset(0);
  for (runtime::Command &command : *executable.mutable_commands()) {
    command.clear_name();
    command.clear_result_types();
  }
  return executable.SerializeAsString();
}

/// Marks the grain of a call of kernel 0; `kGrainMark` + i marks that of kernel
/// i. Likewise for the trip counts of kernels with blocks.
constexpr int64_t kGrainMark = std::numeric_limits<int64_t>::min();
constexpr int64_t kTripMark = kGrainMark + (int64_t(1) << 32);

void markNumbers(runtime::Executable &executable,
                 const BlocksOfKernels &blocks) {
  for (runtime::Command &command : *executable.mutable_commands())
    if (command.has_kernel()) {
      const unsigned kernel = command.kernel().kernel();
      command.mutable_kernel()->set_grain(kGrainMark + kernel);
      if (blocks.contains(kernel))
        command.mutable_kernel()->set_trip_count(kTripMark + kernel);
    }
  for (unsigned kernel : llvm::make_first_range(blocks))
    executable.mutable_kernels(int(kernel))->set_trip_count(kTripMark + kernel);
}

void append(NumberCode &code, ArrayRef<int64_t> more) {
  llvm::append_range(code, more);
}

/// The code for the formula of Scheduler::getGrain.
NumberCode grainOf(const NumberCode &work, const NumberCode &iterations) {
  using namespace runtime;
  NumberCode code = {CONSTANT, kWorkOfThread};
  llvm::append_range(code, work);
  llvm::append_range(code, iterations);
  append(code, {CONSTANT, 1, MAXIMUM, FLOOR_DIVIDE, CONSTANT, 1, MAXIMUM,
                FLOOR_DIVIDE, CONSTANT, 1, MAXIMUM});
  llvm::append_range(code, work);
  append(code, {CONSTANT, 2 * kWorkOfThread, FLOOR_DIVIDE, CONSTANT, 1, MINIMUM,
                MULTIPLY});
  llvm::append_range(code, iterations);
  append(code, {CONSTANT, 2, FLOOR_DIVIDE, CONSTANT, 1, MINIMUM, MULTIPLY});
  return code;
}

class ExecutableGeneralizer {
public:
  ExecutableGeneralizer(
      const std::array<runtime::Executable *, kNumSamples> &samples,
      ArrayRef<SizeSamples> work, const BlocksOfKernels &blocks,
      NumberFitter &fitter)
      : samples(samples), work(work), blocks(blocks), fitter(fitter),
        general(*samples[0]), form(*general.mutable_general()), table(form),
        tripCounts(general.kernels_size()) {
    for (size_t kernel = 0; kernel < tripCounts.size(); ++kernel)
      for (unsigned s = 0; s < kNumSamples; ++s)
        tripCounts[kernel][s] = samples[s]->kernels(int(kernel)).trip_count();
  }

  std::string run(const std::vector<std::vector<NumberCode>> &tables,
                  const GeneralNumbers &given);
  std::string addOrders(ArrayRef<SizeSamples> orders);
  void addAssumedEqual();

private:
  /// Returns the index of the code for a number or a marked one, or nullopt if
  /// no known expression has its values.
  std::optional<unsigned> fit(const SizeSamples &number);
  std::optional<NumberCode> fitGrain(unsigned kernel);
  std::optional<NumberCode> fitTripCount(unsigned kernel);
  bool isGrain(int64_t number) const {
    return number < kGrainMark + general.kernels_size();
  }
  bool isMarked(int64_t number) const {
    return number < kTripMark + general.kernels_size();
  }

  const std::array<runtime::Executable *, kNumSamples> &samples;
  ArrayRef<SizeSamples> work;
  const BlocksOfKernels &blocks;
  NumberFitter &fitter;
  runtime::Executable &general;
  runtime::GeneralForm &form;
  NumberTable table;
  std::vector<SizeSamples> tripCounts; ///< by kernel
};

std::optional<NumberCode> ExecutableGeneralizer::fitGrain(unsigned kernel) {
  auto codeOf = [&](const SizeSamples &number) -> std::optional<NumberCode> {
    if (llvm::all_equal(number))
      return constant(number[0]);
    return fitter.fitEstimate(number);
  };
  std::optional<NumberCode> workCode = codeOf(work[kernel]),
                            iterationsCode = blocks.contains(kernel)
                                                 ? fitTripCount(kernel)
                                                 : codeOf(tripCounts[kernel]);
  if (!workCode || !iterationsCode)
    return std::nullopt;
  return grainOf(*workCode, *iterationsCode);
}

std::optional<NumberCode> ExecutableGeneralizer::fitTripCount(unsigned kernel) {
  const KernelBlocks &own = blocks.at(kernel);
  const SizeSamples &number = tripCounts[kernel];
  SizeSamples others; // the iterations of the other axes
  bool isMultiple = true;
  for (unsigned s = 0; s < kNumSamples && isMultiple; ++s) {
    isMultiple = own.count[s] && number[s] % own.count[s] == 0;
    if (isMultiple)
      others[s] = number[s] / own.count[s];
  }
  if (isMultiple && llvm::all_equal(others))
    return scaled(own.code, others[0]);
  if (std::optional<NumberCode> code =
          isMultiple ? fitter.fit(others) : std::nullopt)
    return apply(runtime::MULTIPLY, own.code, *code);
  std::optional<NumberCode> code = fitter.fit(number);
  if (code && own.replacement && !replaceCode(*code, *own.replacement))
    fitter.assumeEqual(*own.replacement);
  return code;
}

std::optional<unsigned> ExecutableGeneralizer::fit(const SizeSamples &number) {
  std::optional<NumberCode> code;
  if (isGrain(number[0])) {
    code = fitGrain(number[0] - kGrainMark);
    if (!code) // the kernel's work isn't known, so it isn't split
      code = NumberCode{runtime::CONSTANT, 0};
  } else if (isMarked(number[0])) {
    code = fitTripCount(number[0] - kTripMark);
  } else if (llvm::all_equal(number)) {
    code = NumberCode{runtime::CONSTANT, number[0]};
  } else {
    code = fitter.fit(number);
  }
  return code ? std::optional(table.add(*code)) : std::nullopt;
}

std::string
ExecutableGeneralizer::run(const std::vector<std::vector<NumberCode>> &tables,
                           const GeneralNumbers &given) {
  std::array<std::vector<int64_t>, kNumSamples> numbers;
  for (unsigned s = 0; s < kNumSamples; ++s) {
    markNumbers(*samples[s], blocks);
    runtime::forEachNumber(
        *samples[s], [&](int64_t &number) { numbers[s].push_back(number); });
  }
  for (size_t i = 0; i < numbers[0].size(); ++i) {
    SizeSamples number;
    for (unsigned s = 0; s < kNumSamples; ++s)
      number[s] = numbers[s][i];
    if (llvm::all_equal(number) && !isMarked(number[0])) {
      form.add_places(0);
      continue;
    }
    std::optional<unsigned> index = fit(number);
    if (!index)
      return "a number of a command is " + unknownNumber(number);
    form.add_places(1 + *index);
  }
  for (auto [kernel, codes] :
       llvm::zip_equal(*general.mutable_kernels(), tables))
    for (const NumberCode &code : codes)
      kernel.add_numbers(table.add(code));
  for (auto [i, number] : llvm::enumerate(given.checked)) {
    std::optional<unsigned> index = fit(number);
    // A number without an expression becomes a symbol, which the check compares
    // with itself. This suffices, because no other number is computed from it.
    if (!index)
      index = table.add({runtime::SYMBOL, int64_t(given.standIns.size() + i)});
    form.add_checks(*index);
  }
  for (const FloatSamples &number : given.scalars) {
    std::optional<NumberCode> code = fitter.fitFloat(number, 64);
    if (!code)
      return "a float is " + unknownNumber(number);
    form.add_scalars(table.add(*code));
  }
  // Remove names that contain sizes. The runtime derives some names from the
  // call instead.
  for (int i = 0; i < general.commands_size(); ++i) {
    runtime::Command &command = *general.mutable_commands(i);
    if (command.name() != samples[1]->commands(i).name())
      command.clear_name();
  }
  // Remove the marks. All other numbers remain those of the first sample.
  for (runtime::Command &command : *general.mutable_commands())
    if (command.has_kernel()) {
      command.mutable_kernel()->set_grain(0);
      command.mutable_kernel()->set_trip_count(
          tripCounts[command.kernel().kernel()][0]);
    }
  for (unsigned kernel : llvm::make_first_range(blocks))
    general.mutable_kernels(int(kernel))->set_trip_count(tripCounts[kernel][0]);
  return "";
}

std::string ExecutableGeneralizer::addOrders(ArrayRef<SizeSamples> orders) {
  std::set<std::pair<unsigned, unsigned>> known;
  for (size_t i = 0; i < orders.size(); i += 2) {
    const SizeSamples &lesser = orders[i], &greater = orders[i + 1];
    if (llvm::all_equal(lesser) && llvm::all_equal(greater))
      continue;
    std::array<unsigned, 2> indices;
    for (unsigned k = 0; k < 2; ++k) {
      std::optional<unsigned> index = fit(orders[i + k]);
      if (!index)
        return "a compared number is " + unknownNumber(orders[i + k]);
      indices[k] = *index;
    }
    if (!known.emplace(indices[0], indices[1]).second)
      continue;
    form.add_orders(indices[0]);
    form.add_orders(indices[1]);
  }
  return "";
}

/// Equal integers: each is below the other one plus 1.
void ExecutableGeneralizer::addAssumedEqual() {
  std::set<std::pair<unsigned, unsigned>> known;
  for (const auto &[a, b] : fitter.assumedEqual()) {
    if (!known.emplace(table.add(a), table.add(b)).second)
      continue;
    for (const auto &[lesser, greater] : {std::pair(a, b), std::pair(b, a)}) {
      NumberCode limit = greater;
      append(limit, {runtime::CONSTANT, 1, runtime::ADD});
      form.add_orders(table.add(lesser));
      form.add_orders(table.add(limit));
    }
  }
}

} // namespace

std::string mlir::torch_ltc::generalizeExecutable(
    const std::array<runtime::Executable *, kNumSamples> &samples,
    const GeneralNumbers &given,
    const std::vector<std::vector<NumberCode>> &tables,
    ArrayRef<SizeSamples> work, ArrayRef<SizeSamples> orders,
    const BlocksOfKernels &blocks, NumberFitter &fitter) {
  std::string structure = structureOf(*samples[0]);
  for (runtime::Executable *other : llvm::drop_begin(samples))
    if (structureOf(*other) != structure)
      return "its commands, buffers or constants depend on the sizes";
  runtime::GeneralForm &form = *samples[0]->mutable_general();
  for (const SizeSamples &sizes : given.standIns)
    form.add_largest_sizes(*llvm::min_element(sizes));
  ExecutableGeneralizer generalizer(samples, work, blocks, fitter);
  std::string error = generalizer.run(tables, given);
  generalizer.addAssumedEqual();
  return error.empty() ? generalizer.addOrders(orders) : error;
}
