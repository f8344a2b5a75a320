// RUN: ltc-opt %s | ltc-opt | FileCheck %s

// CHECK: test.places = [#ltc.place<parameter 3>, #ltc.place<output 0>, #ltc.place<arena 4096 + 128, bytes = 1024, live = 3 to 7>]
// CHECK-SAME: test.schedule = #ltc.schedule<axes = [<[0, 1] : 65536>], outer = [], split = 0, block = 1024, stored = [0], nests = [<axes = [0], unrolled = [], members = [0]>], iterations = 64, grain = 25>
// CHECK-SAME: test.tiled = #ltc.schedule<axes = [<[0] : 64>, <[1] : 128>], outer = [], split = 1, block = 32, tile = 0, stored = [0], nests = [<axes = [0, 1], unrolled = [], members = [0]>], iterations = 8, grain = 0>
module attributes {
  test.schedule = #ltc.schedule<axes = [<[0, 1] : 65536>], outer = [], split = 0, block = 1024, stored = [0],
    nests = [<axes = [0], unrolled = [], members = [0]>], iterations = 64, grain = 25>,
  test.tiled = #ltc.schedule<axes = [<[0] : 64>, <[1] : 128>], outer = [], split = 1, block = 32, tile = 0, stored = [0],
    nests = [<axes = [0, 1], unrolled = [], members = [0]>], iterations = 8, grain = 0>,
  test.places = [#ltc.place<parameter 3>, #ltc.place<output 0>,
            #ltc.place<arena 4096 + 128, bytes = 1024, live = 3 to 7>]
} {}
