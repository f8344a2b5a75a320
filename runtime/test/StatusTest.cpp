//===- StatusTest.cpp -----------------------------------------------------===//

#include "torch_ltc-c/status.h"

#include <gtest/gtest.h>

#include <string>

TEST(Status, OwnsItsMessage) {
  std::string text = "the disk is full";
  LtcStatus status = ltcStatusCreate(text.c_str());
  text.assign(text.size(), 'x');
  EXPECT_STREQ(ltcStatusMessage(status), "the disk is full");
  ltcStatusDestroy(status);
  ltcStatusDestroy(nullptr);
}

TEST(Bytes, CopiesAndTerminates) {
  LtcBytes bytes = ltcBytesCreate("a\0b", 3);
  ASSERT_EQ(bytes.size, 3u);
  EXPECT_EQ(std::string(bytes.data, 4), std::string("a\0b\0", 4));
  ltcBytesDestroy(bytes);
}

TEST(Bytes, Empty) {
  LtcBytes bytes = ltcBytesCreate(nullptr, 0);
  ASSERT_NE(bytes.data, nullptr);
  EXPECT_EQ(bytes.data[0], '\0');
  ltcBytesDestroy(bytes);
  ltcBytesDestroy({nullptr, 0});
}
