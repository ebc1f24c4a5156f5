// docs/accelerator.md holds the tables as the C++ descriptions are now. To update: bazel run //hls:accelerator_docs --
// "$PWD/docs/accelerator.md".

#include "hls/accelerator_docs.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace heddle::hls {
namespace {

TEST(AcceleratorDocsTest, TablesAreCurrent) {
  std::ifstream in("docs/accelerator.md");
  ASSERT_TRUE(in.good());
  const std::string page((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_EQ(WithCurrentTables(page), page);
  EXPECT_NE(page.find("`kernel_column_step`"), std::string::npos);
}

}  // namespace
}  // namespace heddle::hls
