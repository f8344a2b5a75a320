//===- CombineProducts.cpp - Many small matrix products become few --------===//
//
// A recurrent layer multiplies by the same weight at each time step, and sums
// the weight's gradient over the steps. Independent products are combined into
// one:
//
//   a1 * b, a2 * b        -> rows of [a1; a2] * b
//   a1^T * b1 + a2^T * b2 -> [a1; a2]^T * [b1; b2]
//
// The operands are concatenated along their rows; if possible, the buffer plan
// allocates them adjacently, so that nothing is copied.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc/Kernels/Passes.h"
#include "torch_ltc/Kernels/Program.h"
#include "torch_ltc/Kernels/TargetCostModel.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include "llvm/ADT/MapVector.h"

#include <map>

namespace mlir::torch_ltc {
#define GEN_PASS_DEF_COMBINEPRODUCTS
#include "torch_ltc/Kernels/Passes.h.inc"

namespace {

/// A product of two matrices.
struct Product {
  mutable ltc::MatmulOp call; // ops' accessors aren't const

  Value a() const { return call.getA(); }
  Value b() const { return call.getB(); }
  RankedTensorType type() const {
    return cast<RankedTensorType>(call.getC().getType());
  }
  int64_t rows() const { return type().getDimSize(0); }
  int64_t columns() const { return type().getDimSize(1); }
  int64_t depth() const {
    return cast<RankedTensorType>(a().getType())
        .getDimSize(call.getTransposeA() ? 0 : 1);
  }
};

std::optional<Product> asProduct(Operation *op) {
  auto call = dyn_cast_or_null<ltc::MatmulOp>(op);
  auto isMatrix = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getRank() == 2;
  };
  if (!call || call.getBias() || !isMatrix(call.getA()) ||
      !isMatrix(call.getB()))
    return std::nullopt;
  return Product{call};
}

//===----------------------------------------------------------------------===//
// Joined operands
//===----------------------------------------------------------------------===//

/// Returns the value of which `value` is a contiguous part, and the number of
/// elements in front of that part.
std::pair<Value, int64_t> findWhole(Value value) {
  int64_t offset = 0;
  while (Operation *def = value.getDefiningOp()) {
    if (getRole(def) != OpRole::View)
      break;
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(def))
      offset += getSliceOffset(slice);
    value = getViewSource(def);
  }
  return {value, offset};
}

/// Returns the parts as one slice if they are adjacent slices of one value,
/// otherwise null.
Value joinSlices(OpBuilder &builder, Location loc, ArrayRef<Value> parts,
                 RankedTensorType type) {
  auto [whole, begin] = findWhole(parts[0]);
  int64_t end = begin;
  for (Value part : parts) {
    auto [other, offset] = findWhole(part);
    if (other != whole || offset != end)
      return {};
    end += cast<RankedTensorType>(part.getType()).getNumElements();
  }
  auto wholeType = cast<RankedTensorType>(whole.getType());
  if (wholeType.getRank() == 0)
    return {};
  if (wholeType.getRank() > 1) {
    ReassociationIndices all(
        llvm::to_vector<2>(llvm::seq<int64_t>(0, wholeType.getRank())));
    whole = tensor::CollapseShapeOp::create(
        builder, loc, whole, SmallVector<ReassociationIndices>{all});
  }
  Value range = tensor::ExtractSliceOp::create(
      builder, loc, whole,
      SmallVector<OpFoldResult>{builder.getIndexAttr(begin)},
      SmallVector<OpFoldResult>{builder.getIndexAttr(end - begin)},
      SmallVector<OpFoldResult>{builder.getIndexAttr(1)});
  return tensor::ExpandShapeOp::create(
      builder, loc, type, range, SmallVector<ReassociationIndices>{{0, 1}});
}

/// Concatenates the rows of all matrices.
Value joinRows(OpBuilder &builder, Location loc, ArrayRef<Value> parts) {
  auto type = cast<RankedTensorType>(parts[0].getType());
  int64_t rows = 0;
  for (Value part : parts)
    rows += cast<RankedTensorType>(part.getType()).getDimSize(0);
  auto joined =
      RankedTensorType::get({rows, type.getDimSize(1)}, type.getElementType());
  if (Value range = joinSlices(builder, loc, parts, joined))
    return range;
  return ltc::JoinOp::create(builder, loc, joined, parts);
}

Value multiply(OpBuilder &builder, Location loc, ltc::MatmulOp like, Type type,
               Value a, Value b) {
  return ltc::MatmulOp::create(builder, loc, type, a, b, /*bias=*/Value(),
                               like.getTransposeA(), like.getTransposeB());
}

//===----------------------------------------------------------------------===//
// Sums of products
//===----------------------------------------------------------------------===//

bool isAddition(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || generic.getNumDpsInputs() != 2 ||
      generic.getNumDpsInits() != 1 ||
      !llvm::all_of(generic.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return false;
  Block &body = *generic.getBody();
  if (body.getOperations().size() != 2)
    return false;
  Operation &sum = body.front();
  return isa<arith::AddFOp, arith::AddIOp>(sum) &&
         body.getTerminator()->getOperand(0) == sum.getResult(0) &&
         llvm::all_of(sum.getOperands(),
                      [&](Value operand) {
                        return llvm::is_contained(generic.getRegionInputArgs(),
                                                  operand);
                      }) &&
         sum.getOperand(0) != sum.getOperand(1);
}

bool isInnerAddition(Operation *op) {
  return isAddition(op) && op->hasOneUse() &&
         isAddition(*op->getUsers().begin());
}

struct Sum {
  SmallVector<Value> terms;
  SmallVector<Operation *> additions; ///< users before producers
};

Sum collectSum(Operation *root) {
  Sum sum;
  SmallVector<Value> open{root->getResult(0)};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *def = value.getDefiningOp();
    if (def != root && !isInnerAddition(def)) {
      sum.terms.push_back(value);
      continue;
    }
    sum.additions.push_back(def);
    open.append({def->getOperand(1), def->getOperand(0)});
  }
  return sum;
}

/// Whether the term is a product that sums over its operands' rows, and copying
/// the operands to join them costs at most about as much as writing and adding
/// another result.
bool isJoinable(Value term) {
  auto product = asProduct(term.getDefiningOp());
  if (!product || !term.hasOneUse() || !product->call.getTransposeA() ||
      product->call.getTransposeB())
    return false;
  int64_t m = product->rows(), n = product->columns();
  return product->depth() * (m + n) <= 4 * m * n;
}

void combineSum(Operation *root) {
  Sum sum = collectSum(root);
  SmallVector<Value> rest;
  SmallVector<Product> products;
  for (Value term : sum.terms) {
    if (isJoinable(term))
      products.push_back(*asProduct(term.getDefiningOp()));
    else
      rest.push_back(term);
  }
  if (products.size() < 2)
    return;
  // Sort by the position at which the larger operand is defined: other products
  // of the same matrices can then share the joined operand.
  bool byLeft = products[0].rows() >= products[0].columns();
  auto position = [&](const Product &product) {
    return (byLeft ? product.a() : product.b()).getDefiningOp();
  };
  llvm::stable_sort(products, [&](const Product &x, const Product &y) {
    Operation *first = position(x), *second = position(y);
    if (!first || !second)
      return !first && second;
    return first->isBeforeInBlock(second);
  });
  OpBuilder builder(root);
  SmallVector<Value> lefts, rights;
  for (Product &product : products) {
    lefts.push_back(product.a());
    rights.push_back(product.b());
  }
  SmallVector<Location> locations;
  for (Product &product : products)
    locations.push_back(product.call.getLoc());
  Location loc = FusedLoc::get(root->getContext(), locations);
  Value left = joinRows(builder, loc, lefts);
  Value right = joinRows(builder, loc, rights);
  Value result =
      multiply(builder, loc, products[0].call, products[0].type(), left, right);
  for (Value term : rest) {
    Operation *addition = builder.clone(*root);
    addition->setOperand(0, result);
    addition->setOperand(1, term);
    result = addition->getResult(0);
  }
  root->getResult(0).replaceAllUsesWith(result);
  for (Operation *addition : sum.additions)
    addition->erase();
  for (Product &product : products)
    product.call.erase();
}

void combineSums(Block &block) {
  SmallVector<Operation *> roots;
  for (Operation &op : block)
    if (isAddition(&op) && !isInnerAddition(&op))
      roots.push_back(&op);
  for (Operation *root : roots)
    combineSum(root);
}

//===----------------------------------------------------------------------===//
// Products with a common matrix
//===----------------------------------------------------------------------===//

using Products = SmallVector<Product, 4>;

/// Groups the products by the length of the longest chain of products on which
/// each depends: those with equal lengths are independent of each other.
std::map<int, Products> splitByDependence(Block &block, Products &products) {
  DenseSet<Operation *> members;
  for (Product &product : products)
    members.insert(product.call);
  DenseMap<Operation *, int> waits;
  std::map<int, Products> result;
  for (Operation &op : block) {
    int most = 0;
    for (Value value : valuesRead(&op))
      if (Operation *def = value.getDefiningOp())
        most = std::max(most, waits.lookup(def) + int(members.contains(def)));
    waits[&op] = most;
    if (members.contains(&op))
      result[most].push_back(Product{cast<ltc::MatmulOp>(op)});
  }
  return result;
}

void combineRows(Products &products) {
  ltc::MatmulOp last = products.back().call;
  OpBuilder builder(last);
  SmallVector<Value> lefts;
  SmallVector<Location> locations;
  int64_t rows = 0;
  for (Product &product : products) {
    lefts.push_back(product.a());
    locations.push_back(product.call.getLoc());
    rows += product.rows();
  }
  Location loc = FusedLoc::get(last->getContext(), locations);
  int64_t columns = products[0].columns();
  auto type = RankedTensorType::get({rows, columns},
                                    products[0].type().getElementType());
  Value joined = joinRows(builder, loc, lefts);
  Value whole = multiply(builder, loc, last, type, joined, products[0].b());
  int64_t row = 0;
  for (Product &product : products) {
    auto index = [&](int64_t value) {
      return OpFoldResult(builder.getIndexAttr(value));
    };
    Value part = tensor::ExtractSliceOp::create(
        builder, product.call.getLoc(), product.type(), whole,
        SmallVector<OpFoldResult>{index(row), index(0)},
        SmallVector<OpFoldResult>{index(product.rows()), index(columns)},
        SmallVector<OpFoldResult>{index(1), index(1)});
    row += product.rows();
    product.call.getC().replaceAllUsesWith(part);
  }
  for (Product &product : products)
    product.call.erase();
}

/// Whether a product is so small that its threads mostly wait for each other,
/// but has enough columns to gain from a combination.
bool isSmall(Product product) {
  if (product.columns() < TargetCostModel::combinedColumns)
    return false;
  // In a program for all sizes, the number of rows may be a stand-in, so only
  // the work for one row counts.
  if (product.call->getParentOfType<ModuleOp>()->hasAttr(kGeneralAttr))
    return product.columns() * product.depth() <=
           TargetCostModel::smallProductOfRow;
  return product.rows() * product.columns() * product.depth() <=
         TargetCostModel::smallProduct;
}

LogicalResult combineProductsWithOneMatrix(Block &block) {
  llvm::MapVector<std::pair<Value, unsigned>, Products> byMatrix;
  for (Operation &op : block)
    if (auto product = asProduct(&op))
      if (!product->call.getTransposeA() && isSmall(*product))
        byMatrix[{product->b(), unsigned(product->call.getTransposeB())}]
            .push_back(*product);
  for (auto &[matrix, products] : byMatrix) {
    if (products.size() < 2)
      continue;
    bool isChanged = false;
    // A combined product is at the place of its group's last product, and users
    // of the other products may precede it. Sort the block once, after the loop
    // over the groups. They can't depend on each other in a cycle, because the
    // products on which a group depends are in groups with shorter chains
    // (splitByDependence).
    for (auto &[number, group] : splitByDependence(block, products)) {
      if (group.size() < 2)
        continue;
      combineRows(group);
      isChanged = true;
    }
    if (isChanged && !sortTopologically(&block))
      return block.getParentOp()->emitError(
          "combined products depend on each other in a cycle");
  }
  return success();
}

class CombineProducts : public impl::CombineProductsBase<CombineProducts> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> program = findProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    Block &block = program->getBody().front();
    combineSums(block);
    if (failed(combineProductsWithOneMatrix(block)))
      return signalPassFailure();
  }
};

} // namespace
} // namespace mlir::torch_ltc
