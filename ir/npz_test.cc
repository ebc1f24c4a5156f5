#include "ir/npz.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "testbench/data_path.h"

namespace heddle::ir {
namespace {

constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt8,   ElementType::kUint8,
                                  ElementType::kInt16,   ElementType::kUint16,  ElementType::kInt32,  ElementType::kUint32,
                                  ElementType::kInt64,   ElementType::kUint64,  ElementType::kBool};

Tensor Random(ElementType type, Shape shape, std::mt19937_64& random) {
  Tensor tensor(type, std::move(shape));
  for (int64_t i = 0; i < tensor.bytes(); ++i) tensor.data()[i] = static_cast<std::byte>(type == ElementType::kBool ? random() % 2 : random());
  return tensor;
}

std::vector<NamedTensor> Several() {
  std::mt19937_64 random(5);
  std::vector<NamedTensor> tensors;
  for (ElementType type : kTypes) tensors.push_back({"t/" + std::string(ElementTypeName(type)), Random(type, {2, 3, 4}, random)});
  tensors.push_back({"scalar", Tensor::Of<float>({}, {1.5f})});
  tensors.push_back({"vector", Tensor::Of<int64_t>({3}, {1, 2, 3})});
  tensors.push_back({"empty", Tensor(ElementType::kInt8, {0, 5})});
  return tensors;
}

TEST(Npy, EveryTypeRoundTrips) {
  for (const NamedTensor& named : Several()) {
    const std::string bytes = WriteNpy(named.tensor);
    auto back = ReadNpy(bytes);
    ASSERT_TRUE(back.ok()) << named.name << back.status();
    EXPECT_TRUE(*back == named.tensor) << named.name;
    EXPECT_EQ((bytes.size() - static_cast<size_t>(named.tensor.bytes())) % 64, 0u);
  }
}

std::string Npy(std::string header, const std::string& data, char version = 1) {
  header += "\n";
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(header.size() >> (8 * i));
  return out + header + data;
}

TEST(Npy, ReadsFortranOrderOtherByteOrderAndLaterVersions) {
  const std::string data("\1\0\2\0\3\0\4\0\5\0\6\0", 12);
  auto c = ReadNpy(Npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", data));
  auto f = ReadNpy(Npy("{\"shape\":(2L,3L),\"fortran_order\":True,\"descr\":\"<i2\"}", data, 2));
  auto swapped = ReadNpy(Npy("{'descr': '>i2', 'fortran_order': False, 'shape': (6,), }", data, 3));
  ASSERT_TRUE(c.ok() && f.ok() && swapped.ok()) << c.status() << f.status() << swapped.status();
  EXPECT_TRUE(*c == Tensor::Of<int16_t>({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(*f == Tensor::Of<int16_t>({2, 3}, {1, 3, 5, 2, 4, 6}));
  EXPECT_TRUE(*swapped == Tensor::Of<int16_t>({6}, {256, 512, 768, 1024, 1280, 1536}));
}

TEST(Npy, RefusesWhatItIsNot) {
  const auto code = [](const std::string& bytes) { return ErrorCode(ReadNpy(bytes).status()); };
  EXPECT_EQ(code(""), "E-INPUT-101");
  EXPECT_EQ(code(Npy("{'descr': '<f2', 'fortran_order': False, 'shape': (1,), }", "ab")), "E-INPUT-102");
  EXPECT_EQ(code(Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd")), "E-INPUT-101");
  EXPECT_EQ(code(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcd")), "E-INPUT-103");
  EXPECT_EQ(code(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", "abcd")), "E-INPUT-103");
  EXPECT_EQ(code(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "abcd")), "E-INPUT-101");
  EXPECT_EQ(code(Npy("{'descr': '<f4', 'shape': (1,), }", "abcd")), "E-INPUT-101");
}

TEST(Npz, RoundTripsAndIsDeterministic) {
  auto bytes = WriteNpz(Several());
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, *WriteNpz(Several()));
  auto back = ReadNpz(*bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  const auto expected = Several();
  ASSERT_EQ(back->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*back)[i].name, expected[i].name);
    EXPECT_TRUE((*back)[i].tensor == expected[i].tensor);
  }
  EXPECT_EQ(ErrorCode(ReadNpz(*bytes, 100).status()), "E-INPUT-113");
}

TEST(Npz, DamageIsACodedError) {
  const uint64_t seed = 77;
  std::mt19937_64 random(seed);
  const std::string bytes = *WriteNpz(Several());
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = bytes;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0: damaged.resize(at + 1); break;
        case 1: damaged[at] = static_cast<char>(random()); break;
        case 2: damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 60)); break;
        default:  // a length or offset field becomes extreme
          for (size_t k = at; k < std::min(damaged.size(), at + 4); ++k) damaged[k] = static_cast<char>(random() % 2 ? 0xff : 0x7f);
      }
    }
    auto read = ReadNpz(damaged);
    EXPECT_TRUE(read.ok() || ErrorCode(read.status()).starts_with("E-INPUT-1")) << read.status() << " seed " << seed << " case " << i;
  }
}

TEST(Npz, ReadsWhatNumpyWrites) {
  const auto path = testbench::DataPath("minilm/golden.npz");
  HEDDLE_SKIP_WITHOUT_DATA(path);
  auto tensors = ReadNpzFile(*path);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_GT(tensors->size(), 1u);
  for (const NamedTensor& named : *tensors) EXPECT_GT(named.tensor.elements(), 0) << named.name;
}

// numpy reads what we write, and we read its compressed and Fortran-ordered forms.
TEST(Npz, AgreesWithNumpy) {
  const char* venv = std::getenv("HEDDLE_VENV");
  if (!venv || !*venv) GTEST_SKIP() << "HEDDLE_VENV names no Python environment with numpy";
  const std::filesystem::path folder = testing::TempDir();
  ASSERT_TRUE(WriteNpzFile(folder / "ours.npz", Several()).ok());
  std::ofstream(folder / "copy.py") << "import numpy as np, sys\n"
                                       "z = np.load(sys.argv[1])\n"
                                       "np.savez_compressed(sys.argv[2], **{k: np.asfortranarray(z[k]) for k in z.files})\n"
                                       "np.savez(sys.argv[3], **{k: z[k] for k in z.files})\n";
  const std::string command = fmt::format("'{0}/bin/python' '{1}/copy.py' '{1}/ours.npz' '{1}/packed.npz' '{1}/plain.npz'", venv, folder.string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto expected = Several();
  for (const char* file : {"packed.npz", "plain.npz"}) {
    auto back = ReadNpzFile(folder / file);
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(back->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i].name == "scalar") continue;  // asfortranarray makes it a vector
      EXPECT_EQ((*back)[i].name, expected[i].name);
      EXPECT_TRUE((*back)[i].tensor == expected[i].tensor) << file << " " << expected[i].name;
    }
  }
}

}  // namespace
}  // namespace heddle::ir
