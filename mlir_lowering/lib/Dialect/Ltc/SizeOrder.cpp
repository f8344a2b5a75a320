//===- SizeOrder.cpp - Orders that a general program relies on ------------===//

#include "torch_ltc/Dialect/Ltc/SizeOrder.h"
#include "torch_ltc/Dialect/Ltc/Attributes.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

bool torch_ltc::isForAllSizes(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  return module && module->hasAttr(kGeneralAttr);
}

void torch_ltc::assumeOrder(Operation *op, int64_t lesser, int64_t greater) {
  if (!isForAllSizes(op))
    return;
  auto function = op->getParentOfType<FunctionOpInterface>();
  SmallVector<int64_t> orders(assumedOrders(function));
  orders.append({lesser, greater});
  function->setAttr(kOrdersAttr,
                    DenseI64ArrayAttr::get(op->getContext(), orders));
}

void torch_ltc::assumeOrder(Operation *op, SmallVector<int64_t> numbers) {
  llvm::sort(numbers);
  for (size_t i = 1; i < numbers.size(); ++i)
    if (numbers[i - 1] < numbers[i])
      assumeOrder(op, numbers[i - 1], numbers[i]);
}

ArrayRef<int64_t> torch_ltc::assumedOrders(Operation *function) {
  auto orders = function->getAttrOfType<DenseI64ArrayAttr>(kOrdersAttr);
  return orders ? orders.asArrayRef() : ArrayRef<int64_t>();
}
