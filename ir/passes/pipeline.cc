// The passes that every model goes through, in order, each with the reason why it stands there.

#include "ir/passes/pass.h"

namespace heddle::ir {

const std::vector<PipelineStep>& DefaultPipeline() {
  static const auto& steps = *new std::vector<PipelineStep>{
      {"infer-shapes", "everything later needs static types; shapes that are computed become constants on the way"},
      {"fold-constants", "weights that are computed become constants; dequantised weights stay, their pattern is needed below"},
      {"simplify", "identities and reshape chains would hide patterns from batch-norm folding and quantisation"},
      {"fold-batch-norm", "before quantisation is read off the graph: a folded convolution is one pattern, not three"},
      {"eliminate-common-subexpressions", "equal quantisers of one tensor become one, so that its producer has one reader"},
      {"legalise-quantisation", "from here on quantised layers are exact integer ops"},
      {"fold-constants:dequantize=1", "dequantised weights that no pattern took are plain float constants now"},
      {"simplify", "legalisation leaves pads before integer convolutions and reshapes of reshapes"},
      {"eliminate-common-subexpressions", "layers share lookups and rescaled inputs"},
      {"eliminate-dead-code", "nothing that is not needed may be costed or placed"},
      {"fuse-vertical", "last: groups name nodes that no later pass moves"},
  };
  return steps;
}

}  // namespace heddle::ir
