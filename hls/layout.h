// Where the elements of a tensor lie: storages (channels-last boxes of bytes) and views of them.
//
// A storage is a dense-indexed box [n][h][w][c] with strides that are chosen late (hls/plan.h). A view says which byte of a
// storage an element of a value is: its row-major element order, as a list of atoms, each a factor of one storage axis. So
// Reshape, Flatten, Transpose, Slice and Split cost nothing wherever the next layer can follow the atoms.
#ifndef HEDDLE_HLS_LAYOUT_H_
#define HEDDLE_HLS_LAYOUT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/types.h"

namespace heddle::hls {

enum StorageAxis : int { kAxisN = 0, kAxisH = 1, kAxisW = 2, kAxisC = 3 };
using Box = std::array<int64_t, 4>;  // one entry per StorageAxis

// A digit of a view's element order: `extent` positions, `multiple` steps of the storage axis apart.
struct Atom {
  int axis = kAxisC;
  int64_t multiple = 1;
  int64_t extent = 1;
  bool operator==(const Atom&) const = default;
};

struct View {
  int storage = -1;
  Box offset{};             // of the first element, in steps of each axis
  std::vector<Atom> atoms;  // outermost first; extents above 1 only
};

// How a loop steps through a storage: `multiple` steps of `axis` for each iteration; axis -1: it does not move.
struct DimRef {
  int axis = -1;
  int64_t multiple = 0;
  bool operator==(const DimRef&) const = default;
};

// The atoms of each logical dimension of `shape` (product of the atoms' extents = product of shape), splitting atoms where
// a dimension ends within one; nullopt where extents do not divide.
std::optional<std::vector<std::vector<Atom>>> GroupAtoms(std::vector<Atom> atoms, const ir::Shape& shape);

// Joins neighbours that together are one longer atom.
std::vector<Atom> MergeAtoms(const std::vector<Atom>& atoms);

// The loop over one dimension, where its atoms are at most one after merging.
std::optional<DimRef> DimRefOf(const std::vector<Atom>& atoms);

// The atoms of a storage whose elements are in row-major order of `axes` (outermost first).
std::vector<Atom> AtomsInOrder(const Box& extents, const std::vector<int>& axes);

// A box with one axis range for each axis that the view's atoms use, and the same view of it: what an element-wise layer
// writes. False where an axis's atoms do not tile it evenly.
bool DenseCopyOf(const View& view, Box& extents, std::vector<Atom>& atoms);

// A digit that two views of the same elements share: how each steps through its storage.
struct CommonDigit {
  Atom a, b;
};

// The fewest digits that both views of one row-major order have in common, outermost first; nullopt where the digits of one end
// within those of the other and do not divide them.
std::optional<std::vector<CommonDigit>> CommonDigits(const std::vector<Atom>& a, const std::vector<Atom>& b);

// For a loop nest over the axes of `reference` (whose atoms are dense): how to step through `other`, whose logical shape
// broadcasts to `shape`. nullopt where it is not a linear step on each axis.
std::optional<std::array<DimRef, 4>> AlignViews(const View& reference, const ir::Shape& shape, const View& other,
                                                const ir::Shape& other_shape);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_LAYOUT_H_
