// A layered drawing of an acyclic graph (after Sugiyama, Tagawa and Toda, 1981): layers by longest path, few crossings
// by barycentres, long edges led through the layers between.
#ifndef HEDDLE_REPORT_GRAPH_LAYOUT_H_
#define HEDDLE_REPORT_GRAPH_LAYOUT_H_

#include <utility>
#include <vector>

namespace heddle::report {

struct Point {
  double x = 0;
  double y = 0;
};

struct LayoutOptions {
  double node_width = 190;
  double node_height = 46;
  double gap_x = 26;
  double gap_y = 34;
  double bend_width = 14;  // room for an edge that passes a layer
};

struct Layout {
  double width = 0;
  double height = 0;
  std::vector<Point> nodes;               // upper left corners
  std::vector<std::vector<Point>> edges;  // from the source's lower middle through bends to the target's upper middle
};

// `edges`: (from, to) with from ≠ to, free of cycles; an edge on a cycle is drawn as if it were the other way round.
Layout LayOut(int node_count, const std::vector<std::pair<int, int>>& edges, const LayoutOptions& options = {});

}  // namespace heddle::report

#endif  // HEDDLE_REPORT_GRAPH_LAYOUT_H_
