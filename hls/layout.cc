// Views as mixed-radix digits over storage axes: splitting, merging and lining up two of them.

#include "hls/layout.h"

#include <algorithm>

namespace heddle::hls {
namespace {

// A run of elements that both operands step through evenly.
struct Piece {
  Atom reference;
  std::optional<Atom> other;  // nullopt: broadcast
};

// Cuts the atoms of one dimension of both operands at the same places, innermost first.
bool Refine(std::vector<Atom> reference, std::vector<Atom> other, std::vector<Piece>& pieces) {
  while (!reference.empty() && !other.empty()) {
    Atom& r = reference.back();
    Atom& o = other.back();
    const int64_t extent = std::min(r.extent, o.extent);
    if (r.extent % extent != 0 || o.extent % extent != 0) return false;
    pieces.push_back({{r.axis, r.multiple, extent}, Atom{o.axis, o.multiple, extent}});
    for (auto* list : {&reference, &other}) {
      Atom& atom = list->back();
      atom = {atom.axis, atom.multiple * extent, atom.extent / extent};
      if (atom.extent == 1) list->pop_back();
    }
  }
  return reference.empty() && other.empty();
}

}  // namespace

std::optional<std::vector<std::vector<Atom>>> GroupAtoms(std::vector<Atom> atoms, const ir::Shape& shape) {
  std::vector<std::vector<Atom>> result(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    int64_t need = shape[d];
    while (need > 1) {
      if (atoms.empty()) return std::nullopt;
      Atom& atom = atoms.back();
      if (need % atom.extent == 0) {
        need /= atom.extent;
        result[d].insert(result[d].begin(), atom);
        atoms.pop_back();
      } else if (atom.extent % need == 0) {
        result[d].insert(result[d].begin(), {atom.axis, atom.multiple, need});
        atom = {atom.axis, atom.multiple * need, atom.extent / need};
        need = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  if (!atoms.empty()) return std::nullopt;
  return result;
}

std::vector<Atom> MergeAtoms(const std::vector<Atom>& atoms) {
  std::vector<Atom> merged;
  for (const Atom& atom : atoms) {
    if (!merged.empty() && merged.back().axis == atom.axis && merged.back().multiple == atom.multiple * atom.extent) {
      merged.back() = {atom.axis, atom.multiple, merged.back().extent * atom.extent};
    } else {
      merged.push_back(atom);
    }
  }
  return merged;
}

std::optional<DimRef> DimRefOf(const std::vector<Atom>& atoms) {
  const std::vector<Atom> merged = MergeAtoms(atoms);
  if (merged.empty()) return DimRef{};
  if (merged.size() > 1) return std::nullopt;
  return DimRef{merged[0].axis, merged[0].multiple};
}

std::vector<Atom> AtomsInOrder(const Box& extents, const std::vector<int>& axes) {
  std::vector<Atom> atoms;
  for (int axis : axes) {
    if (extents[axis] > 1) atoms.push_back({axis, 1, extents[axis]});
  }
  return atoms;
}

bool DenseCopyOf(const View& view, Box& extents, std::vector<Atom>& atoms) {
  extents = {1, 1, 1, 1};
  atoms = view.atoms;
  std::vector<Atom*> by_multiple;
  for (Atom& atom : atoms) by_multiple.push_back(&atom);
  std::sort(by_multiple.begin(), by_multiple.end(), [](const Atom* a, const Atom* b) { return a->multiple < b->multiple; });
  for (Atom* atom : by_multiple) {
    // A digit must be a whole number of the digits below it, or the copy's steps would not be linear in the original's.
    if (extents[atom->axis] == 1) {
      atom->multiple = 1;
    } else if (atom->multiple % extents[atom->axis] != 0) {
      return false;
    } else {
      atom->multiple = extents[atom->axis];
    }
    extents[atom->axis] *= atom->extent;
  }
  return true;
}

std::optional<std::vector<CommonDigit>> CommonDigits(const std::vector<Atom>& a, const std::vector<Atom>& b) {
  std::vector<Piece> pieces;
  if (!Refine(a, b, pieces)) return std::nullopt;
  std::vector<CommonDigit> digits;  // innermost first
  for (const Piece& piece : pieces) {
    const Atom &outer_a = piece.reference, &outer_b = *piece.other;
    CommonDigit* inner = digits.empty() ? nullptr : &digits.back();
    const auto continues = [](const Atom& i, const Atom& o) { return i.axis == o.axis && o.multiple == i.multiple * i.extent; };
    if (inner && continues(inner->a, outer_a) && continues(inner->b, outer_b)) {
      inner->a.extent *= outer_a.extent;
      inner->b.extent *= outer_b.extent;
    } else {
      digits.push_back({outer_a, outer_b});
    }
  }
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::optional<std::array<DimRef, 4>> AlignViews(const View& reference, const ir::Shape& shape, const View& other,
                                                const ir::Shape& other_shape) {
  ir::Shape padded(shape.size() - std::min(shape.size(), other_shape.size()), 1);
  padded.insert(padded.end(), other_shape.begin(), other_shape.end());
  const auto reference_dims = GroupAtoms(reference.atoms, shape);
  const auto other_dims = GroupAtoms(other.atoms, padded);
  if (!reference_dims || !other_dims || padded.size() != shape.size()) return std::nullopt;
  std::vector<Piece> pieces;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (padded[d] == 1) {
      for (const Atom& atom : (*reference_dims)[d]) pieces.push_back({atom, std::nullopt});
    } else if (!Refine((*reference_dims)[d], (*other_dims)[d], pieces)) {
      return std::nullopt;
    }
  }
  std::array<std::optional<DimRef>, 4> found;
  for (const Piece& piece : pieces) {
    DimRef ref;
    if (piece.other) {
      if (piece.other->multiple % piece.reference.multiple != 0) return std::nullopt;
      ref = {piece.other->axis, piece.other->multiple / piece.reference.multiple};
    }
    std::optional<DimRef>& axis = found[piece.reference.axis];
    if (axis && *axis != ref) return std::nullopt;
    axis = ref;
  }
  std::array<DimRef, 4> result;
  for (int axis = 0; axis < 4; ++axis) result[axis] = found[axis].value_or(DimRef{});
  return result;
}

}  // namespace heddle::hls
