//===- SizeBinding.cpp - Sizes of a general executable --------------------===//

#include "SizeBinding.h"

#include "ArenaPlan.h"
#include "Diagnostics.h"
#include "ExecutableNumbers.h"
#include "NumberCode.h"

using namespace torch_ltc::runtime;

llvm::Error torch_ltc::runtime::verifyGeneralForm(Executable &executable) {
  const GeneralForm &form = executable.general();
  for (const auto &[i, number] : llvm::enumerate(form.numbers()))
    if (!isWellFormed(number, form.largest_sizes_size() + form.checks_size()))
      return failure("the code of number {0} isn't well-formed", i);
  bool hasBuffers = true;
  for (Command &command : *executable.mutable_commands())
    forEachPart(command, [&](const BufferRef &part) {
      hasBuffers &= part.buffer() < uint32_t(executable.buffers_size());
    });
  if (!hasBuffers)
    return failure(
        "a command refers to a buffer that doesn't exist: the program has {0}",
        executable.buffers_size());
  int places = 0;
  forEachNumber(executable, [&](int64_t &) { ++places; });
  if (places != form.places_size())
    return failure("{0} numbers may vary, but its general form has {1} places",
                   places, form.places_size());
  for (uint32_t place : form.places())
    if (place > uint32_t(form.numbers_size()))
      return failure("a place refers to number {0}, but the program has {1}",
                     place, form.numbers_size());
  for (uint32_t number : form.checks())
    if (number >= uint32_t(form.numbers_size()))
      return failure("a check refers to number {0}, but the program has {1}",
                     number, form.numbers_size());
  if (form.scalars_size() > executable.scalars_size())
    return failure("its general form has {0} scalars, but the program has {1}",
                   form.scalars_size(), executable.scalars_size());
  for (uint32_t number : form.scalars())
    if (number >= uint32_t(form.numbers_size()))
      return failure("a scalar refers to number {0}, but the program has {1}",
                     number, form.numbers_size());
  if (form.orders_size() % 2)
    return failure("its general form has {0} compared numbers",
                   form.orders_size());
  for (uint32_t number : form.orders())
    if (number >= uint32_t(form.numbers_size()))
      return failure("an order refers to number {0}, but the program has {1}",
                     number, form.numbers_size());
  for (const Kernel &kernel : executable.kernels())
    for (uint32_t number : kernel.numbers())
      if (number >= uint32_t(form.numbers_size()))
        return failure(
            "kernel '{0}' refers to number {1}, but the program has {2}",
            kernel.symbol(), number, form.numbers_size());
  return llvm::Error::success();
}

static llvm::Error checkRanges(llvm::StringRef name, const GeneralForm &form,
                               llvm::ArrayRef<int64_t> sizes) {
  if (int64_t(sizes.size()) != form.largest_sizes_size())
    return failure("Program '{0}' was bound to {1} sizes, but has {2}.", name,
                   sizes.size(), form.largest_sizes_size());
  for (const auto &[i, size] : llvm::enumerate(sizes))
    if (size < 0 || size > form.largest_sizes(int(i)))
      return failure("Size s{0} of program '{1}' is {2}: its general form is "
                     "for sizes from 0 to {3}.",
                     i, name, size, form.largest_sizes(int(i)));
  return llvm::Error::success();
}

llvm::Expected<std::vector<int64_t>>
torch_ltc::runtime::checkSizes(llvm::StringRef name, const GeneralForm &form,
                               const LtcSizes &given) {
  llvm::ArrayRef<int64_t> sizes(given.symbols, given.num_symbols);
  if (llvm::Error error = checkRanges(name, form, sizes))
    return error;
  if (int64_t(given.num_checked) != form.checks_size())
    return failure("Program '{0}' was bound to {1} checked sizes, but has {2}.",
                   name, given.num_checked, form.checks_size());
  std::vector<int64_t> known(sizes);
  known.insert(known.end(), given.checked, given.checked + given.num_checked);
  std::vector<int64_t> values;
  for (const auto &[i, number] : llvm::enumerate(form.numbers())) {
    std::optional<int64_t> value = evaluate(number, known);
    if (!value)
      return failure("Number {0} of program '{1}' can't be computed for the "
                     "sizes that it was bound to.",
                     i, name);
    values.push_back(*value);
  }
  for (const auto &[i, number] : llvm::enumerate(form.checks()))
    if (values[number] != given.checked[i])
      return failure("Program '{0}' isn't valid for these sizes: checked size "
                     "{1} is {2}, but must be {3}.",
                     name, i, given.checked[i], values[number]);
  return values;
}

llvm::Expected<BoundNumbers>
torch_ltc::runtime::bindSizes(Executable &executable, const GeneralForm &form,
                              const LtcSizes &given) {
  auto checked = checkSizes(executable.name(), form, given);
  if (!checked)
    return checked.takeError();
  const std::vector<int64_t> &values = *checked;
  for (int i = 0; i < form.orders_size(); i += 2)
    if (values[form.orders(i)] >= values[form.orders(i + 1)])
      return failure("Program '{0}' isn't valid for these sizes: it expects "
                     "that {1} is less than {2}.",
                     executable.name(), values[form.orders(i)],
                     values[form.orders(i + 1)]);
  int place = 0;
  forEachNumber(executable, [&](int64_t &number) {
    if (uint32_t index = form.places(place++))
      number = values[index - 1];
  });
  // Clear the result types, because they contain stand-ins.
  for (Command &command : *executable.mutable_commands())
    command.clear_result_types();
  BoundNumbers result;
  for (const Kernel &kernel : executable.kernels()) {
    result.tables.emplace_back();
    for (uint32_t number : kernel.numbers())
      result.tables.back().push_back(values[number]);
  }
  for (uint32_t number : form.scalars())
    result.scalars.push_back({.as_int = values[number]});
  planArena(executable, findLifetimes(executable));
  return result;
}
