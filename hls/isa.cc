// Encoder, decoder, disassembler and checks of the instruction set, all over the field lists of isa.h.

#include "hls/isa.h"

#include <fmt/format.h>

#include <type_traits>

#include "ir/check.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

// Lays fields out in order; a field that would cross a 32-bit word moves to the next one.
class Layout {
 public:
  explicit Layout(int offset) : offset_(offset) {}
  void Add(std::string_view name, int bits, bool is_signed, std::string_view doc) {
    if (offset_ / 32 != (offset_ + bits - 1) / 32) offset_ = (offset_ / 32 + 1) * 32;
    places_.push_back({name, offset_, bits, is_signed, doc});
    offset_ += bits;
    HEDDLE_CHECK(offset_ <= kInstructionBytes * 8, "instruction fields exceed an instruction");
  }
  std::vector<FieldPlace> Take() { return std::move(places_); }

 private:
  int offset_;
  std::vector<FieldPlace> places_;
};

#define HEDDLE_ADD_PLACE(type, name, bits, doc) layout.Add(#name, bits, std::is_same_v<type, int32_t>, doc);
std::vector<FieldPlace> MakeHeaderPlaces() {
  Layout layout(0);
  HEDDLE_HEADER_FIELDS(HEDDLE_ADD_PLACE)
  return layout.Take();
}
std::vector<FieldPlace> MakeTransferPlaces() {
  Layout layout(32);
  HEDDLE_TRANSFER_FIELDS(HEDDLE_ADD_PLACE)
  return layout.Take();
}
std::vector<FieldPlace> MakeComputePlaces() {
  Layout layout(32);
  HEDDLE_COMPUTE_FIELDS(HEDDLE_ADD_PLACE)
  return layout.Take();
}
#undef HEDDLE_ADD_PLACE

// Values of a body in the order of its places, and back.
#define HEDDLE_PUSH_VALUE(type, name, bits, doc) values.push_back(static_cast<int64_t>(fields.name));
std::vector<int64_t> ValuesOf(const HeaderFields& fields) {
  std::vector<int64_t> values;
  HEDDLE_HEADER_FIELDS(HEDDLE_PUSH_VALUE)
  return values;
}
std::vector<int64_t> ValuesOf(const TransferFields& fields) {
  std::vector<int64_t> values;
  HEDDLE_TRANSFER_FIELDS(HEDDLE_PUSH_VALUE)
  return values;
}
std::vector<int64_t> ValuesOf(const ComputeFields& fields) {
  std::vector<int64_t> values;
  HEDDLE_COMPUTE_FIELDS(HEDDLE_PUSH_VALUE)
  return values;
}
#undef HEDDLE_PUSH_VALUE

#define HEDDLE_TAKE_VALUE(type, name, bits, doc) fields.name = static_cast<type>(*value++);
void SetValues(const std::vector<int64_t>& values, HeaderFields& fields) {
  auto value = values.begin();
  HEDDLE_HEADER_FIELDS(HEDDLE_TAKE_VALUE)
}
void SetValues(const std::vector<int64_t>& values, TransferFields& fields) {
  auto value = values.begin();
  HEDDLE_TRANSFER_FIELDS(HEDDLE_TAKE_VALUE)
}
void SetValues(const std::vector<int64_t>& values, ComputeFields& fields) {
  auto value = values.begin();
  HEDDLE_COMPUTE_FIELDS(HEDDLE_TAKE_VALUE)
}
#undef HEDDLE_TAKE_VALUE

std::vector<int64_t> BodyValues(const Instruction& instruction) {
  switch (instruction.header.opcode) {
    case Opcode::kLoad:
    case Opcode::kStore: return ValuesOf(instruction.transfer);
    case Opcode::kCompute: return ValuesOf(instruction.compute);
    case Opcode::kEnd: break;
  }
  return {};
}

absl::Status PutFields(const std::vector<FieldPlace>& places, const std::vector<int64_t>& values, EncodedInstruction& words) {
  for (size_t i = 0; i < places.size(); ++i) {
    const FieldPlace& place = places[i];
    const int64_t low = place.is_signed ? -(int64_t{1} << (place.bits - 1)) : 0;
    const int64_t high = (int64_t{1} << (place.is_signed ? place.bits - 1 : place.bits)) - 1;
    if (values[i] < low || values[i] > high) {
      return ir::UserError("E-PROGRAM-001", fmt::format("instruction field {} is {}; its {} bits hold {} to {}", place.name,
                                                        values[i], place.bits, low, high));
    }
    const uint32_t mask = place.bits == 32 ? ~0u : (1u << place.bits) - 1;
    words[place.offset / 32] |= (static_cast<uint32_t>(values[i]) & mask) << (place.offset % 32);
  }
  return absl::OkStatus();
}

std::vector<int64_t> GetFields(const std::vector<FieldPlace>& places, const EncodedInstruction& words) {
  std::vector<int64_t> values;
  for (const FieldPlace& place : places) {
    const uint64_t mask = (uint64_t{1} << place.bits) - 1;
    int64_t value = static_cast<int64_t>((words[place.offset / 32] >> (place.offset % 32)) & mask);
    if (place.is_signed && (value >> (place.bits - 1)) != 0) value -= int64_t{1} << place.bits;
    values.push_back(value);
  }
  return values;
}

}  // namespace

const std::vector<FieldPlace>& HeaderPlaces() {
  static const std::vector<FieldPlace>* const places = new std::vector<FieldPlace>(MakeHeaderPlaces());
  return *places;
}

const std::vector<FieldPlace>& FieldsOf(Opcode opcode) {
  static const std::vector<FieldPlace>* const transfer = new std::vector<FieldPlace>(MakeTransferPlaces());
  static const std::vector<FieldPlace>* const compute = new std::vector<FieldPlace>(MakeComputePlaces());
  static const std::vector<FieldPlace>* const none = new std::vector<FieldPlace>;
  if (opcode == Opcode::kEnd) return *none;
  return opcode == Opcode::kCompute ? *compute : *transfer;
}

const FieldPlace& PlaceOf(Opcode opcode, std::string_view field) {
  for (const std::vector<FieldPlace>* places : {&HeaderPlaces(), &FieldsOf(opcode)}) {
    for (const FieldPlace& place : *places) {
      if (place.name == field) return place;
    }
  }
  HEDDLE_CHECK(false, "no instruction field " + std::string(field));
  return HeaderPlaces().front();
}

absl::StatusOr<EncodedInstruction> Encode(const Instruction& instruction) {
  EncodedInstruction words{};
  HEDDLE_RETURN_IF_ERROR(PutFields(HeaderPlaces(), ValuesOf(instruction.header), words));
  HEDDLE_RETURN_IF_ERROR(PutFields(FieldsOf(instruction.header.opcode), BodyValues(instruction), words));
  return words;
}

absl::StatusOr<Instruction> Decode(const EncodedInstruction& words) {
  Instruction instruction;
  SetValues(GetFields(HeaderPlaces(), words), instruction.header);
  const Opcode opcode = instruction.header.opcode;
  if (opcode > Opcode::kStore) {
    return ir::UserError("E-PROGRAM-002", fmt::format("unknown opcode {}; expected 0 to 3", static_cast<int>(opcode)));
  }
  const std::vector<int64_t> values = GetFields(FieldsOf(opcode), words);
  if (opcode == Opcode::kCompute) {
    SetValues(values, instruction.compute);
    if (instruction.compute.drain > Drain::kMultiply) {
      return ir::UserError("E-PROGRAM-002", "unknown value 3 of instruction field drain; expected 0 to 2");
    }
  } else if (opcode != Opcode::kEnd) {
    SetValues(values, instruction.transfer);
  }
  return instruction;
}

absl::StatusOr<std::vector<uint8_t>> EncodeProgram(const std::vector<Instruction>& program) {
  std::vector<uint8_t> bytes;
  bytes.reserve(program.size() * kInstructionBytes);
  for (const Instruction& instruction : program) {
    HEDDLE_ASSIGN_OR_RETURN(const EncodedInstruction words, Encode(instruction));
    for (uint32_t word : words) {
      for (int byte = 0; byte < 4; ++byte) bytes.push_back(static_cast<uint8_t>(word >> (8 * byte)));
    }
  }
  return bytes;
}

absl::StatusOr<std::vector<Instruction>> DecodeProgram(const std::vector<uint8_t>& bytes) {
  std::vector<Instruction> program;
  for (size_t start = 0; start + kInstructionBytes <= bytes.size(); start += kInstructionBytes) {
    EncodedInstruction words{};
    for (int i = 0; i < kInstructionBytes; ++i) words[i / 4] |= static_cast<uint32_t>(bytes[start + i]) << (8 * (i % 4));
    HEDDLE_ASSIGN_OR_RETURN(Instruction instruction, Decode(words));
    program.push_back(instruction);
    if (instruction.header.opcode == Opcode::kEnd) return program;
  }
  return ir::UserError("E-PROGRAM-003", fmt::format("program of {} bytes has no end instruction", bytes.size()));
}

std::string Disassemble(const Instruction& instruction) {
  static constexpr const char* kNames[] = {"end", "load", "compute", "store"};
  std::string line = kNames[static_cast<int>(instruction.header.opcode)];
  const auto append = [&line](const std::vector<FieldPlace>& places, const std::vector<int64_t>& values, size_t first) {
    for (size_t i = first; i < places.size(); ++i) {
      if (values[i] != 0) line += fmt::format(" {}={}", std::string(places[i].name), values[i]);
    }
  };
  append(HeaderPlaces(), ValuesOf(instruction.header), 1);
  append(FieldsOf(instruction.header.opcode), BodyValues(instruction), 0);
  return line;
}

}  // namespace heddle::hls
