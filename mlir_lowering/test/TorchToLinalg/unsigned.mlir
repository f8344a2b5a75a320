// RUN: ltc-opt --ltc-mlir-convert-torch-to-linalg %s | FileCheck %s

// Types become signless; attributes mark unsigned parameters and results for
// code outside of the program that reads and writes their memory.
// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<3xi8> {torch_ltc.name = "image", torch_ltc.unsigned}
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<3xi8>)
// CHECK-SAME: -> (tensor<3xi8> {torch_ltc.unsigned}, tensor<3xi8>)
func.func @step(%image: !torch.vtensor<[3],ui8> {torch_ltc.name = "image"},
                %y: !torch.vtensor<[3],si8>)
    -> (!torch.vtensor<[3],ui8>, !torch.vtensor<[3],si8>) {
  return %image, %y : !torch.vtensor<[3],ui8>, !torch.vtensor<[3],si8>
}
