// RUN: ltc-capi-program-test 2>&1 | FileCheck %s
// RUN: ltc-capi-program-test 2>/dev/null | ltc-opt -o /dev/null

#include "torch_ltc-c/lowering.h"

#include <stdio.h>
#include <stdlib.h>

static void check(LtcStatus status) {
  if (!status)
    return;
  fprintf(stderr, "unexpected: %s\n", ltcStatusMessage(status));
  exit(1);
}

static void expectError(LtcStatus status) {
  if (!status) {
    fprintf(stderr, "no error\n");
    exit(1);
  }
  fprintf(stderr, "error: %s\n", ltcStatusMessage(status));
  ltcStatusDestroy(status);
}

static const int64_t kSizes[] = {2, 3};

static LtcTensorType matrix(LtcDType dtype) {
  LtcTensorType type = {dtype, 2, kSizes};
  return type;
}

static void printStep(LtcCompiler compiler) {
  LtcProgram program;
  check(ltcProgramCreate(compiler, "step", &program));
  LtcTensorType f32 = matrix(LTC_DTYPE_FLOAT32);
  LtcValue weight = ltcProgramAddTensorParameter(program, f32, "weight", 1);
  LtcValue mask = ltcProgramAddTensorParameter(
      program, matrix(LTC_DTYPE_BOOL), NULL, 0);
  LtcValue rate = ltcProgramAddFloatParameter(program);
  LtcLocation here = {"train.py", 12, "encoder.0", 0};

  LtcValue one = ltcProgramConstantInt(program, 1);
  LtcValue other =
      ltcProgramNumberToTensor(program, rate, LTC_DTYPE_FLOAT32, &here);
  LtcValue addOperands[] = {weight, other, ltcProgramConstantInt(program, 1)};
  LtcValue sum;
  check(ltcProgramAppend(program, "aten.add.Tensor", addOperands, 3, &f32, 1,
                         &here, &sum));
  if (addOperands[2].id != one.id)
    fprintf(stderr, "equal constants have different values\n");

  LtcValue sizes[] = {ltcProgramConstantInt(program, 3),
                      ltcProgramConstantInt(program, 2)};
  LtcValue viewOperands[] = {sum, ltcProgramList(program, LTC_LIST_INT, sizes, 2)};
  const int64_t viewSizes[] = {3, 2};
  LtcTensorType viewType = {LTC_DTYPE_FLOAT32, 2, viewSizes};
  LtcValue view;
  check(ltcProgramAppend(program, "aten.view", viewOperands, 2, &viewType, 1,
                         NULL, &view));

  const int64_t rowSizes[] = {3};
  LtcTensorType rowTypes[] = {{LTC_DTYPE_FLOAT32, 1, rowSizes},
                              {LTC_DTYPE_FLOAT32, 1, rowSizes}};
  LtcValue unbindOperands[] = {sum, ltcProgramConstantInt(program, 0)};
  LtcValue rows[2];
  check(ltcProgramAppend(program, "aten.unbind.int", unbindOperands, 2,
                         rowTypes, 2, NULL, rows));

  LtcValue gradOperands[] = {weight, sum};
  LtcValue grad;
  check(ltcProgramAppend(program, "aten.silu_backward", gradOperands, 2, &f32,
                         1, NULL, &grad));
  LtcValue custom;
  check(ltcProgramAppend(program, "mylib.scale", gradOperands, 2, &f32, 1,
                         NULL, &custom));

  const char bools[] = {1, 0, 1};
  const int64_t threes[] = {3};
  LtcTensorType boolType = {LTC_DTYPE_BOOL, 1, threes};
  LtcValue literal = ltcProgramConstantTensor(program, boolType, bools, 3);

  LtcValue outputs[] = {view, rows[1], grad, custom, literal, mask};
  const int64_t updated[] = {-1, -1, 0, -1, -1, -1};
  check(ltcProgramSetOutputs(program, outputs, updated, 6));
  LtcBytes text;
  LtcStageOptions raw = {.stage = "torch-raw"};
  check(ltcProgramStage(program, &raw, &text));
  fputs(text.data, stdout);
  ltcBytesDestroy(text);
  LtcStageOptions unknown = {.stage = "machine code"};
  expectError(ltcProgramStage(program, &unknown, &text));
  ltcProgramDestroy(program);
}

static void printErrors(LtcCompiler compiler) {
  LtcProgram program;
  check(ltcProgramCreate(compiler, "wrong", &program));
  LtcTensorType f32 = matrix(LTC_DTYPE_FLOAT32);
  LtcValue input = ltcProgramAddTensorParameter(program, f32, NULL, 0);
  LtcLocation here = {"train.py", 14, NULL, 0};
  LtcValue operands[] = {input, input, input};
  LtcValue result;
  expectError(ltcProgramAppend(program, "aten.add.Tensor", operands, 3, &f32,
                               1, &here, &result));
  expectError(ltcProgramAppend(program, "aten.relu", operands, 2, &f32, 1,
                               &here, &result));
  LtcValue unknown = {77};
  expectError(
      ltcProgramAppend(program, "aten.relu", &unknown, 1, &f32, 1, NULL, &result));
  ltcProgramDestroy(program);
}

int main(void) {
  LtcCompiler compiler;
  check(ltcCompilerCreate(&compiler));
  printStep(compiler);
  fflush(stdout);
  printErrors(compiler);
  ltcCompilerDestroy(compiler);
  return 0;
}

// CHECK: error: unknown stage 'machine code'
// CHECK: func.func @step(
// CHECK-SAME: !torch.vtensor<[2,3],f32> {torch_ltc.donatable, torch_ltc.name = "weight"}
// CHECK-SAME: !torch.vtensor<[2,3],i1>
// CHECK-SAME: !torch.float
// CHECK-SAME: {torch_ltc.updates = 0 : i64}
// CHECK: %[[ONE:.*]] = torch.constant.int 1
// CHECK: %[[RATE:.*]] = torch.prim.NumToTensor.Scalar %{{.*}} : !torch.float -> !torch.vtensor<[],f32>
// CHECK: torch.aten.add.Tensor %{{.*}}, %[[RATE]], %[[ONE]]
// CHECK: torch.aten.view {{.*}} -> !torch.vtensor<[3,2],f32>
// CHECK: torch.aten.unbind.int {{.*}} -> !torch.list<vtensor>
// CHECK: torch.prim.ListUnpack {{.*}} -> !torch.vtensor<[3],f32>, !torch.vtensor<[3],f32>
// CHECK: torch.operator "torch.aten.silu_backward"
// CHECK: torch.operator "torch.mylib.scale"
// CHECK: torch.vtensor.literal(dense<[true, false, true]> : tensor<3xi1>)
// CHECK: return
// CHECK: error: 'torch.aten.add.Tensor' op operand #2 must be torch number{{.*}}(train.py:14)
// CHECK: error: 'torch.aten.relu' op requires a single operand (train.py:14)
// CHECK: error: value 77 is not a value of the program
