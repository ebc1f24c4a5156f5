// Draws by remainder from mt19937, which is the same everywhere.
#include "ir/partition/random_problem.h"

#include <cmath>
#include <random>

namespace heddle::ir::partition {

Problem RandomProblem(unsigned seed, const Shape& shape) {
  std::mt19937 random(seed);
  auto draw = [&](int low, int high) { return static_cast<int>(random() % (high - low + 1)) + low; };
  std::vector<Device> devices;
  for (int device = 0; device < shape.devices; ++device) {
    Device info{"device" + std::to_string(device), device == 0 ? "cpu" : "accelerator"};
    if (shape.launches && draw(0, 2) > 0) info.launch_us = draw(0, 24) / 4.0;
    if (shape.region_limits && device > 0 && draw(0, 1)) info.max_regions = draw(0, 2);
    if (shape.capacities && draw(0, 1)) info.capacity = draw(2, 16);
    if (shape.capacities) info.area = draw(0, 3);
    if (shape.energies) info.launch_uj = draw(0, 8) / 4.0;
    devices.push_back(info);
  }
  Problem problem = Problem::WithDevices(devices);
  if (shape.capacities && draw(0, 1)) problem.max_area = draw(1, 6);
  problem.host = draw(0, 3) == 0 ? shape.devices - 1 : 0;
  for (auto& row : problem.links) {
    for (Link& link : row) link = {draw(0, 8) / 4.0, std::exp2(draw(0, 2)), shape.energies ? std::exp2(-draw(0, 2)) : 0};
  }
  const int nodes = draw(1, shape.max_nodes);
  for (int node = 0; node < nodes; ++node) {
    std::vector<Option> on;
    for (int device = 0; device < shape.devices; ++device) {
      if (device > 0 && draw(0, 5) == 0) {
        on.push_back(Option::Refused("E-TEST-001", "kernel of at most 3, found 5"));
      } else {
        on.push_back(Option::Cost(draw(0, device == 0 ? 60 : 30) / 4.0, "assumed", draw(0, 4)));
        if (shape.energies) on.back().energy_uj = draw(0, 40) / 4.0;
      }
    }
    problem.AddNode("node" + std::to_string(node), std::move(on), shape.groups && draw(0, 2) == 0 ? draw(0, 1) : -1);
  }
  for (int producer = -1; producer < nodes; ++producer) {
    Tensor tensor{"tensor" + std::to_string(producer), producer, {}, draw(0, 4) == 0, draw(0, 16) * 1.0};
    for (int consumer = producer + 1; consumer < nodes; ++consumer) {
      if (draw(0, 9) < shape.readers_of_ten) tensor.consumers.push_back(consumer);
    }
    problem.tensors.push_back(std::move(tensor));
  }
  return problem;
}

}  // namespace heddle::ir::partition
