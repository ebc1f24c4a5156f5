// .npz: a zip (PKWARE's APPNOTE) whose entries are .npy files. The central directory at the end is what counts; zip64 fields
// are read because numpy writes them.

#include "ir/npz.h"

#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace heddle::ir {
namespace {

constexpr uint32_t kEndRecord = 0x06054b50, kEnd64Record = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint32_t kCentralRecord = 0x02014b50, kLocalRecord = 0x04034b50;
constexpr size_t kEndBytes = 22, kEnd64LocatorBytes = 20, kEnd64Bytes = 56, kCentralBytes = 46, kLocalBytes = 30;
constexpr uint16_t kFixedDate = 0x0021;  // 1 January 1980, the first that the format can say

absl::Status Damaged(std::string_view what) { return UserError("E-INPUT-110", fmt::format("not an .npz file or damaged: {}", what)); }

// Little-endian, 0 beyond the end: callers have checked the record's length.
uint64_t Get(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count && at + i < bytes.size(); ++i) value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

bool Holds(std::string_view bytes, uint64_t at, uint64_t count) { return at <= bytes.size() && count <= bytes.size() - at; }

struct Entry {
  std::string name;
  uint64_t method = 0, flags = 0, crc = 0, packed_bytes = 0, bytes = 0, local_at = 0;
};

struct Directory {
  uint64_t at = 0, entries = 0;
};

absl::StatusOr<Directory> FindDirectory(std::string_view bytes) {
  if (bytes.size() < kEndBytes) return Damaged("it is too short");
  const size_t lowest = bytes.size() - std::min<size_t>(bytes.size(), kEndBytes + 65535);
  for (size_t at = bytes.size() - kEndBytes + 1; at-- > lowest;) {
    if (Get(bytes, at, 4) != kEndRecord) continue;
    Directory directory{Get(bytes, at + 16, 4), Get(bytes, at + 10, 2)};
    if (directory.at != 0xffffffff && directory.entries != 0xffff) return directory;
    if (at < kEnd64LocatorBytes || Get(bytes, at - kEnd64LocatorBytes, 4) != kEnd64Locator) return Damaged("the zip64 locator is missing");
    const uint64_t end64 = Get(bytes, at - kEnd64LocatorBytes + 8, 8);
    if (!Holds(bytes, end64, kEnd64Bytes) || Get(bytes, end64, 4) != kEnd64Record) return Damaged("the zip64 record is missing");
    return Directory{Get(bytes, end64 + 48, 8), Get(bytes, end64 + 32, 8)};
  }
  return Damaged("the end record is missing");
}

// Sizes and offset that do not fit 32 bits stand in the extra field 1, in this order, only those that are needed.
void ReadZip64(std::string_view extra, Entry& entry) {
  for (size_t at = 0; at + 4 <= extra.size();) {
    const uint64_t id = Get(extra, at, 2), size = Get(extra, at + 2, 2);
    if (id == 1) {
      size_t field = at + 4;
      for (uint64_t* value : {&entry.bytes, &entry.packed_bytes, &entry.local_at}) {
        if (*value != 0xffffffff || field + 8 > std::min<size_t>(extra.size(), at + 4 + size)) continue;
        *value = Get(extra, field, 8);
        field += 8;
      }
    }
    at += 4 + size;
  }
}

absl::StatusOr<std::vector<Entry>> ReadDirectory(std::string_view bytes) {
  HEDDLE_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(bytes));
  if (directory.entries > bytes.size() / kCentralBytes) return Damaged("more entries than the file can hold");
  std::vector<Entry> entries;
  uint64_t at = directory.at;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (!Holds(bytes, at, kCentralBytes) || Get(bytes, at, 4) != kCentralRecord) return Damaged("a directory entry is missing");
    const uint64_t name = Get(bytes, at + 28, 2), extra = Get(bytes, at + 30, 2), comment = Get(bytes, at + 32, 2);
    if (!Holds(bytes, at + kCentralBytes, name + extra + comment)) return Damaged("a directory entry ends too early");
    Entry entry{std::string(bytes.substr(at + kCentralBytes, name)), Get(bytes, at + 10, 2), Get(bytes, at + 8, 2),
                Get(bytes, at + 16, 4), Get(bytes, at + 20, 4), Get(bytes, at + 24, 4), Get(bytes, at + 42, 4)};
    ReadZip64(bytes.substr(at + kCentralBytes + name, extra), entry);
    entries.push_back(std::move(entry));
    at += kCentralBytes + name + extra + comment;
  }
  return entries;
}

absl::StatusOr<std::string> Inflate(std::string_view packed, uint64_t bytes, const std::string& name) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Damaged("zlib does not start");
  std::string out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  size_t in_left = packed.size();
  int result = Z_OK;
  // Memory grows with what really comes out, so that a false size costs nothing.
  while (result == Z_OK && out.size() <= bytes) {
    const size_t chunk = std::min<uint64_t>(bytes - out.size() + 1, std::max<size_t>(1 << 16, out.size()));
    const size_t had = out.size();
    out.resize(had + chunk);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = static_cast<uInt>(std::min<size_t>(chunk, 1u << 30));
    const uInt offered = stream.avail_out;
    const auto feed = static_cast<uInt>(std::min<size_t>(in_left, 1u << 30));
    stream.avail_in = feed;
    result = inflate(&stream, Z_NO_FLUSH);
    in_left -= feed - stream.avail_in;
    out.resize(had + (offered - stream.avail_out));
    if (result == Z_OK && out.size() == had && in_left == 0) break;  // it ends too early
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || out.size() != bytes) return Damaged(fmt::format("entry '{}' does not unpack to its size", name));
  return out;
}

absl::StatusOr<Tensor> ReadEntry(std::string_view bytes, const Entry& entry) {
  if (entry.flags & 1) return UserError("E-INPUT-111", fmt::format("entry '{}' is encrypted", entry.name));
  if (entry.method != 0 && entry.method != 8) {
    return UserError("E-INPUT-111", fmt::format("entry '{}' is packed by method {}", entry.name, entry.method), "use numpy.savez or savez_compressed");
  }
  if (!Holds(bytes, entry.local_at, kLocalBytes) || Get(bytes, entry.local_at, 4) != kLocalRecord) {
    return Damaged(fmt::format("entry '{}' is missing", entry.name));
  }
  const uint64_t data_at = entry.local_at + kLocalBytes + Get(bytes, entry.local_at + 26, 2) + Get(bytes, entry.local_at + 28, 2);
  if (!Holds(bytes, data_at, entry.packed_bytes)) return Damaged(fmt::format("entry '{}' ends too early", entry.name));
  const std::string_view packed = bytes.substr(data_at, entry.packed_bytes);
  std::string unpacked;
  std::string_view npy = packed;
  if (entry.method == 8) {
    HEDDLE_ASSIGN_OR_RETURN(unpacked, Inflate(packed, entry.bytes, entry.name));
    npy = unpacked;
  }
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(npy.data()), npy.size());
  if (npy.size() != entry.bytes || crc != entry.crc) return Damaged(fmt::format("the checksum of entry '{}' is wrong", entry.name));
  auto tensor = ReadNpy(npy);
  if (tensor.ok()) return tensor;
  return UserError(ErrorCode(tensor.status()), fmt::format("entry '{}': {}", entry.name, std::string(tensor.status().message())));
}

void Put(std::string& out, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i));
}

// The fields that local header and directory entry share, from "version needed" to the length of the extra field.
void PutShared(std::string& out, const std::string& name, const std::string& npy) {
  Put(out, 20, 2);
  Put(out, 0x0800, 2);  // names are UTF-8
  Put(out, 0, 2);       // stored
  Put(out, 0, 2);
  Put(out, kFixedDate, 2);
  Put(out, crc32_z(0, reinterpret_cast<const Bytef*>(npy.data()), npy.size()), 4);
  Put(out, npy.size(), 4);
  Put(out, npy.size(), 4);
  Put(out, name.size(), 2);
  Put(out, 0, 2);
}

absl::StatusOr<std::string> ReadWhole(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  if (!error && in && size <= static_cast<uintmax_t>(kMaxNpzBytes)) {
    bytes.resize(size);
    if (in.read(bytes.data(), static_cast<std::streamsize>(size))) return bytes;
  }
  return UserError("E-INPUT-120", fmt::format("'{}' cannot be read", path.string()), "check that the file exists and is an .npy or .npz of at most 4 GiB");
}

absl::Status WriteWhole(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(temporary, path, error);
  if (!out || error) return UserError("E-INPUT-121", fmt::format("'{}' cannot be written", path.string()), "check the folder and the free space");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> ReadNpz(std::string_view bytes, int64_t max_bytes, std::vector<std::string>* skipped) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadDirectory(bytes));
  std::vector<NamedTensor> tensors;
  std::set<std::string> names;
  uint64_t left = static_cast<uint64_t>(max_bytes);
  for (const Entry& entry : entries) {
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!names.insert(name).second) return UserError("E-INPUT-112", fmt::format("entry '{}' is there twice", name));
    if (entry.bytes > left) return UserError("E-INPUT-113", fmt::format("more than {} bytes of tensors", max_bytes));
    left -= entry.bytes;
    auto tensor = ReadEntry(bytes, entry);
    if (ErrorCode(tensor.status()) == "E-INPUT-102") {
      if (skipped) skipped->push_back(name);
      continue;
    }
    if (!tensor.ok()) return tensor.status();
    tensors.push_back({std::move(name), std::move(*tensor)});
  }
  return tensors;
}

absl::StatusOr<std::string> WriteNpz(const std::vector<NamedTensor>& tensors) {
  std::string out, directory;
  for (const NamedTensor& named : tensors) {
    const std::string name = named.name + ".npy";
    const std::string npy = WriteNpy(named.tensor);
    if (out.size() + npy.size() + directory.size() >= 0xf0000000 || name.size() > 0xffff) {
      return UserError("E-INPUT-114", "more than 4 GiB of tensors, or a name of more than 65535 bytes, in one .npz");
    }
    Put(directory, kCentralRecord, 4);
    Put(directory, 20, 2);
    PutShared(directory, name, npy);
    directory.append(10, '\0');  // length of comment, disk, attributes
    Put(directory, out.size(), 4);
    directory += name;
    Put(out, kLocalRecord, 4);
    PutShared(out, name, npy);
    out += name;
    out += npy;
  }
  const size_t directory_at = out.size();
  out += directory;
  Put(out, kEndRecord, 4);
  Put(out, 0, 4);
  Put(out, tensors.size(), 2);
  Put(out, tensors.size(), 2);
  Put(out, directory.size(), 4);
  Put(out, directory_at, 4);
  Put(out, 0, 2);
  return out;
}

absl::StatusOr<Tensor> ReadNpyFile(const std::filesystem::path& path) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(path));
  return ReadNpy(bytes);
}

absl::StatusOr<std::vector<NamedTensor>> ReadNpzFile(const std::filesystem::path& path) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(path));
  return ReadNpz(bytes);
}

absl::Status WriteNpyFile(const std::filesystem::path& path, const Tensor& tensor) { return WriteWhole(path, WriteNpy(tensor)); }

absl::Status WriteNpzFile(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, WriteNpz(tensors));
  return WriteWhole(path, bytes);
}

}  // namespace heddle::ir
